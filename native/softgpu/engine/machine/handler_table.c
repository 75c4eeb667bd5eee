/* The handlers of one instruction set, by number. */
#include "lanes.h"

#define HANDLER(name) void SG_NAME(name)(sg_warp *, const sg_insn *);
#define CONTROL(name) void sg_run_##name(sg_warp *, const sg_insn *);
#include "../code/handlers.def"
#undef HANDLER

extern sg_handler *const SG_NAME(handlers)[HANDLER_COUNT];
sg_handler *const SG_NAME(handlers)[HANDLER_COUNT] = {
#define HANDLER(name) SG_NAME(name),
#define CONTROL(name) sg_run_##name,
#include "../code/handlers.def"
#undef HANDLER
};
