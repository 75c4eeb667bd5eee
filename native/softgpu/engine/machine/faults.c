#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void sg_fault_at(sg_warp *warp, const sg_insn *insn, sg_status status, uint64_t address, const char *format, ...) {
    sg_fault *fault = &warp->worker->fault;
    warp->stop = true;
    if (fault->status != SG_OK)
        return; /* the first one is the cause */
    fault->status = status;
    fault->address = address;
    fault->insn = insn;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
}

const char *sg_space_text(unsigned space) {
    static const char *const names[] = {"global", "generic", "shared", "local", "param"};
    return names[space];
}

uint64_t sg_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
