/* Which compilation of the handlers this processor gets. */
#include "../code/code.h"

extern sg_handler *const sg_base_handlers[HANDLER_COUNT];
#ifdef SG_HAVE_X86_LEVELS
extern sg_handler *const sg_v3_handlers[HANDLER_COUNT];
extern sg_handler *const sg_v4_handlers[HANDLER_COUNT];
#endif

sg_handler *const *sg_handlers(void) {
#ifdef SG_HAVE_X86_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4"))
        return sg_v4_handlers;
    if (__builtin_cpu_supports("x86-64-v3"))
        return sg_v3_handlers;
#endif
    return sg_base_handlers;
}
