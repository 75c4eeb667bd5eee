/* What ends a launch: the first cause that a worker meets, and where. */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* Between the blocks of a launch no lane runs and the place is unknown. */
static bool begin(sg_warp *warp, const sg_insn *insn, unsigned lane, sg_status status, uint64_t address) {
    sg_fault *fault = &warp->worker->fault;
    warp->stop = true;
    if (fault->status != SG_OK)
        return false; /* the first one is the cause */
    fault->status = status;
    fault->address = address;
    fault->insn = insn;
    fault->placed = lane < LANES;
    for (int i = 0; fault->placed && i < 3; i++) {
        fault->block[i] = warp->block->index[i];
        fault->thread[i] = warp->tid[i][lane];
    }
    return true;
}

static unsigned first_running(const sg_warp *warp) {
    return warp->mask ? (unsigned)__builtin_ctz(warp->mask) : LANES;
}

void sg_fault_lane(sg_warp *warp, const sg_insn *insn, unsigned lane, sg_status status, uint64_t address,
                   const char *format, ...) {
    sg_fault *fault = &warp->worker->fault;
    va_list arguments;
    if (!begin(warp, insn, lane, status, address))
        return;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
}

void sg_fault_at(sg_warp *warp, const sg_insn *insn, sg_status status, uint64_t address, const char *format, ...) {
    sg_fault *fault = &warp->worker->fault;
    va_list arguments;
    if (!begin(warp, insn, first_running(warp), status, address))
        return;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
}

const sg_instruction *sg_instruction_of(const sg_module *module, const sg_insn *insn) {
    return insn ? module->sources[insn - module->insns] : NULL;
}

static const char *kind_of_access(const sg_warp *warp, const sg_insn *insn, bool store) {
    const sg_instruction *source = sg_instruction_of(warp->block->grid->kernel->module, insn);
    if (source && (!strcmp(source->opcode, "atom") || !strcmp(source->opcode, "red")))
        return "an atomic access";
    return store ? "a store" : "a load";
}

void sg_fault_access(sg_warp *warp, const sg_insn *insn, unsigned lane, sg_status status, uint64_t address,
                     unsigned size, bool store, bool global, const char *wrong, ...) {
    sg_fault *fault = &warp->worker->fault;
    va_list arguments;
    if (!begin(warp, insn, lane, status, address))
        return;
    fault->global_bytes = global ? size : 0;
    int used = snprintf(fault->message, sizeof fault->message, "%s of %u byte%s at 0x%llx ",
                        kind_of_access(warp, insn, store), size, size == 1 ? "" : "s", (unsigned long long)address);
    va_start(arguments, wrong);
    vsnprintf(fault->message + used, sizeof fault->message - (size_t)used, wrong, arguments);
    va_end(arguments);
}

const sg_insn *sg_where(const sg_warp *warp, unsigned *lane) {
    *lane = first_running(warp);
    if (warp->mask)
        return warp->pc;
    if (!warp->fragment_count)
        return NULL;
    const sg_fragment *first = &warp->fragments[0];
    *lane = (unsigned)__builtin_ctz(first->mask);
    /* At a barrier it is to go on behind it. */
    return first->state == FRAGMENT_BARRIER || first->state == FRAGMENT_GRID ? first->pc - 1 : first->pc;
}

void sg_fault_timeout(sg_warp *warp, const sg_insn *insn) {
    sg_grid *grid = warp->block->grid;
    unsigned lane = first_running(warp);
    uint64_t begun = atomic_load_explicit(&grid->next_block, memory_order_relaxed);
    if (!insn)
        insn = sg_where(warp, &lane);
    sg_fault_lane(warp, insn, lane, SG_TIMEOUT, 0, "the kernel ran longer than %llu ms; %llu of its %llu blocks had begun",
                  (unsigned long long)(grid->launch->timeout_ns / 1000000),
                  (unsigned long long)(begun < grid->block_total && !grid->launch->cooperative ? begun : grid->block_total),
                  (unsigned long long)grid->block_total);
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
