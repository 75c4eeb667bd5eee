/* Functions that a card's runtime brings and that PTX only declares. */
#include "machine.h"

#include <stdio.h>

enum { BUILTIN_VPRINTF, BUILTIN_ASSERTFAIL, BUILTIN_GRID_HANDLE, BUILTIN_GRID_SYNC, BUILTIN_MALLOC, BUILTIN_FREE, BUILTIN_COUNT };

static const char *const names[BUILTIN_COUNT] = {
    [BUILTIN_VPRINTF] = "vprintf",
    [BUILTIN_ASSERTFAIL] = "__assertfail",
    /* numba's cuda.cg.this_grid() and its sync() */
    [BUILTIN_GRID_HANDLE] = "cudaCGGetIntrinsicHandle",
    [BUILTIN_GRID_SYNC] = "cudaCGSynchronize",
    [BUILTIN_MALLOC] = "malloc",
    [BUILTIN_FREE] = "free",
};

int sg_builtin_named(const char *name) {
    for (int i = 0; i < BUILTIN_COUNT; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static unsigned char *local_of(const sg_warp *warp, unsigned lane, size_t offset) {
    return warp->local + (size_t)lane * warp->block->grid->local_stride + warp->frame->local_base + offset;
}

static uint64_t argument(const sg_warp *warp, const sg_call *call, unsigned lane, size_t index) {
    uint64_t value = 0;
    if (index < call->argument_count) {
        const sg_copy *copy = &call->arguments[index];
        memcpy(&value, local_of(warp, lane, copy->from), copy->size < 8 ? copy->size : 8);
    }
    return value;
}

static void give_result(const sg_warp *warp, const sg_call *call, unsigned lane, uint64_t value) {
    if (call->return_count)
        memcpy(local_of(warp, lane, call->returns[0].to), &value, call->returns[0].size < 8 ? call->returns[0].size : 8);
}

static void copy_text(sg_warp *warp, unsigned lane, uint64_t address, char *out, size_t size) {
    size_t available = 0, used = 0;
    const char *text = sg_reach_text(warp, lane, address, &available);
    while (text && used < size - 1 && used < available && text[used]) {
        out[used] = text[used];
        used++;
    }
    out[used] = 0;
}

static void assertion_failed(sg_warp *warp, const sg_insn *insn, const sg_call *call) {
    unsigned lane = (unsigned)__builtin_ctz(warp->mask);
    char assertion[80], file[60];
    copy_text(warp, lane, argument(warp, call, lane, 0), assertion, sizeof assertion);
    copy_text(warp, lane, argument(warp, call, lane, 1), file, sizeof file);
    const uint32_t *at = warp->block->index;
    char text[320];
    int length = snprintf(text, sizeof text, "%s:%u: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
                          (unsigned)argument(warp, call, lane, 2), at[0], at[1], at[2], warp->tid[0][lane],
                          warp->tid[1][lane], warp->tid[2][lane], assertion);
    const sg_launch *launch = warp->block->grid->launch;
    if (launch->print && length > 0)
        launch->print(launch->print_context, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    sg_fault_at(warp, insn, SG_TRAP, 0, "assertion `%s` failed in %s", assertion, file);
}

/* The lanes wait; sg_recheck_grid counts the block in and lets them go. */
static void grid_sync(sg_warp *warp, const sg_insn *insn) {
    sg_grid *grid = warp->block->grid;
    if (!grid->launch->cooperative) {
        sg_fault_at(warp, insn, SG_TRAP, 0, "a grid-wide barrier in a launch that is not cooperative");
        return;
    }
    sg_park(warp, insn + 1, FRAGMENT_GRID, 0);
    warp->block->at_grid += (uint32_t)warp->active;
    sg_next(warp);
}

static void allocate(const sg_warp *warp, const sg_call *call) {
    const sg_launch *launch = warp->block->grid->launch;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t bytes = argument(warp, call, lane, 0);
        give_result(warp, call, lane, launch->heap_allocate ? launch->heap_allocate(launch->heap_context, bytes) : 0);
    }
}

/* A card goes on with a broken heap after a wrong free; nothing good comes of that. */
static void release(sg_warp *warp, const sg_insn *insn, const sg_call *call) {
    const sg_launch *launch = warp->block->grid->launch;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t address = argument(warp, call, lane, 0);
        if (address == 0 || (launch->heap_release && launch->heap_release(launch->heap_context, address)))
            continue;
        sg_fault_lane(warp, insn, lane, SG_ILLEGAL_ADDRESS, address, "free of 0x%llx, which malloc did not give",
                    (unsigned long long)address);
        return;
    }
}

void sg_run_builtin(sg_warp *warp, const sg_insn *insn, int builtin, const sg_call *call) {
    switch (builtin) {
    case BUILTIN_VPRINTF:
        for (uint32_t left = warp->mask; left && !warp->stop; left &= left - 1) {
            unsigned lane = (unsigned)__builtin_ctz(left);
            int printed = sg_print(warp, insn, lane, argument(warp, call, lane, 0), argument(warp, call, lane, 1));
            give_result(warp, call, lane, (uint64_t)(int64_t)printed);
        }
        return;
    case BUILTIN_ASSERTFAIL:
        assertion_failed(warp, insn, call);
        return;
    case BUILTIN_GRID_HANDLE:
        for (uint32_t left = warp->mask; left; left &= left - 1)
            give_result(warp, call, (unsigned)__builtin_ctz(left), SG_GRID_WINDOW);
        return;
    case BUILTIN_MALLOC:
        allocate(warp, call);
        return;
    case BUILTIN_FREE:
        release(warp, insn, call);
        return;
    default:
        for (uint32_t left = warp->mask; left; left &= left - 1)
            give_result(warp, call, (unsigned)__builtin_ctz(left), 0);
        grid_sync(warp, insn);
    }
}
