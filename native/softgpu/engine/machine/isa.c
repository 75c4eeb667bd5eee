/* Which compilation of the handlers this processor gets. */
#include "../code/code.h"

#include <string.h>

extern sg_handler *const sg_base_handlers[HANDLER_COUNT];
#ifdef SG_HAVE_X86_LEVELS
extern sg_handler *const sg_v3_handlers[HANDLER_COUNT];
extern sg_handler *const sg_v4_handlers[HANDLER_COUNT];
#endif

static const char *chosen; /* NULL: the best; tests set it before they make modules */

bool sg_choose_level(const char *level) {
    bool known = !level || !strcmp(level, "base");
#ifdef SG_HAVE_X86_LEVELS
    __builtin_cpu_init();
    known |= level && !strcmp(level, "v3") && __builtin_cpu_supports("x86-64-v3");
    known |= level && !strcmp(level, "v4") && __builtin_cpu_supports("x86-64-v4");
#endif
    if (known)
        chosen = level;
    return known;
}

#ifdef SG_HAVE_X86_LEVELS
static bool takes(const char *level) { return !chosen || !strcmp(chosen, level); }
#endif

sg_handler *const *sg_handlers(void) {
#ifdef SG_HAVE_X86_LEVELS
    __builtin_cpu_init();
    if (takes("v4") && __builtin_cpu_supports("x86-64-v4"))
        return sg_v4_handlers;
    if (takes("v3") && __builtin_cpu_supports("x86-64-v3"))
        return sg_v3_handlers;
#endif
    return sg_base_handlers;
}
