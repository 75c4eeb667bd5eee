/* From a device address to the host's memory, one lane at a time: the checked way that the
 * shapes of memory.c fall back to. */
#include "machine.h"

sg_cached_range *sg_find_range(sg_warp *warp, const sg_insn *insn, uint64_t address) {
    const sg_memory *memory = warp->block->grid->launch->memory;
    sg_cached_range *cached = &warp->worker->ranges[(size_t)((uintptr_t)insn / sizeof *insn) % RANGES];
    sg_range found = {0};
    if (!memory->find(memory->context, address, &found) || address < found.first || address >= found.last)
        return NULL;
    cached->range = found;
    cached->chunk = ~(uint64_t)0;
    return cached;
}

bool sg_commit_chunk(sg_warp *warp, const sg_insn *insn, unsigned lane, sg_cached_range *range, uint64_t address) {
    const sg_memory *memory = warp->block->grid->launch->memory;
    uint64_t chunk = address >> CHUNK_SHIFT;
    uint64_t *known = &warp->worker->chunks[chunk % CHUNKS_KNOWN];
    sg_status status = *known != chunk && memory->commit ? memory->commit(memory->context, address) : SG_OK;
    if (status != SG_OK) {
        sg_fault_access(warp, insn, lane, status, address, 1, true, true, "%s",
                        status == SG_NO_MEMORY ? "could not be backed" : "is to memory that may not be written to");
        return false;
    }
    *known = chunk;
    range->chunk = chunk;
    return true;
}

typedef struct {
    unsigned char *bytes;
    uint64_t first; /* generic address of bytes[0]; 0 for an address in the space itself */
    uint64_t size;
    bool writable;
    const char *name;
} window;

/* The window that a generic address lies in; none: global memory. */
static bool find_window(const sg_warp *warp, unsigned lane, unsigned space, uint64_t address, window *found) {
    sg_grid *grid = warp->block->grid;
    uint64_t base = 0;
    if (space == SPACE_GENERIC || space == SPACE_GLOBAL) {
        if (address < SG_SHARED_WINDOW || address >= SG_CODE_WINDOW)
            return false;
        base = address / SG_WINDOW_BYTES * SG_WINDOW_BYTES;
        if (base >= SG_LOCAL_WINDOW && base < SG_PARAM_WINDOW)
            base = SG_LOCAL_WINDOW;
    }
    if (space == SPACE_SHARED || base == SG_SHARED_WINDOW)
        *found = (window){warp->block->shared, base, grid->shared_bytes, true, "shared"};
    else if (space == SPACE_LOCAL || base == SG_LOCAL_WINDOW)
        *found = (window){warp->local + (size_t)lane * grid->local_stride, base, grid->local_limit, true, "local"};
    else if (space == SPACE_PARAM || base == SG_PARAM_WINDOW)
        *found = (window){(unsigned char *)grid->launch->parameters, base, grid->kernel->parameter_bytes, false, "param"};
    else if (base == SG_GRID_WINDOW && grid->launch->cooperative)
        *found = (window){grid->workspace, base, sizeof grid->workspace, true, "grid"};
    else
        return false;
    return true;
}

#define COLD __attribute__((cold, noinline))

/* A lane's access of `size` bytes. */
typedef struct {
    sg_warp *warp;
    const sg_insn *insn;
    unsigned lane;
    uint64_t address;
    unsigned size;
    bool store;
} lane_access;

COLD static unsigned char *outside_window(const lane_access *a, const window *in) {
    const char *wrong = a->store && !in->writable ? "is to the parameters of a kernel, which are read-only" : NULL;
    if (wrong)
        sg_fault_access(a->warp, a->insn, a->lane, SG_ILLEGAL_ADDRESS, a->address, a->size, a->store, false, "%s", wrong);
    else
        sg_fault_access(a->warp, a->insn, a->lane, SG_ILLEGAL_ADDRESS, a->address, a->size, a->store, false,
                        "is outside the %llu bytes of .%s memory", (unsigned long long)in->size, in->name);
    return NULL;
}

COLD static unsigned char *outside(const lane_access *a) {
    sg_fault_access(a->warp, a->insn, a->lane, SG_ILLEGAL_ADDRESS, a->address, a->size, a->store, true,
                    "is outside all memory that this context may reach");
    return NULL;
}

COLD static unsigned char *misaligned(const lane_access *a, unsigned alignment, bool global) {
    sg_fault_access(a->warp, a->insn, a->lane, SG_MISALIGNED, a->address, a->size, a->store, global,
                    "is not aligned: it has to be at a multiple of %u", alignment);
    return NULL;
}

static bool span_committed(const lane_access *a, sg_cached_range *range) {
    uint64_t last = a->address + a->size - 1;
    return (range->chunk == a->address >> CHUNK_SHIFT || sg_commit_chunk(a->warp, a->insn, a->lane, range, a->address)) &&
           (range->chunk == last >> CHUNK_SHIFT || sg_commit_chunk(a->warp, a->insn, a->lane, range, last));
}

unsigned char *sg_reach_span(sg_warp *warp, const sg_insn *insn, unsigned lane, unsigned space, uint64_t address,
                             unsigned size, unsigned alignment, bool store) {
    const lane_access a = {warp, insn, lane, address, size, store};
    window in;
    bool windowed = find_window(warp, lane, space, address, &in);
    if (address & (alignment - 1))
        return misaligned(&a, alignment, !windowed);
    if (windowed) {
        uint64_t offset = address - in.first;
        if (offset > in.size || in.size - offset < size || (store && !in.writable))
            return outside_window(&a, &in);
        return in.bytes + offset;
    }
    sg_cached_range *cached = &warp->worker->ranges[(size_t)((uintptr_t)insn / sizeof *insn) % RANGES];
    if (address < cached->range.first || address >= cached->range.last)
        cached = sg_find_range(warp, insn, address);
    if (!cached || cached->range.last - address < size)
        return outside(&a);
    if (store && !span_committed(&a, cached))
        return NULL;
    return cached->range.host + (address - cached->range.first);
}

unsigned char *sg_reach_lane(sg_warp *warp, const sg_insn *insn, unsigned lane, unsigned space, uint64_t address,
                             unsigned size, bool store) {
    return sg_reach_span(warp, insn, lane, space, address, size, size, store);
}

const char *sg_reach_text(sg_warp *warp, unsigned lane, uint64_t address, size_t *available) {
    window in;
    if (find_window(warp, lane, SPACE_GENERIC, address, &in)) {
        uint64_t offset = address - in.first;
        *available = offset < in.size ? in.size - offset : 0;
        return *available ? (const char *)in.bytes + offset : NULL;
    }
    const sg_memory *memory = warp->block->grid->launch->memory;
    sg_range found = {0};
    if (!memory->find(memory->context, address, &found) || address < found.first || address >= found.last)
        return NULL;
    *available = found.last - address;
    return (const char *)found.host + (address - found.first);
}
