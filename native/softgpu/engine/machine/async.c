/* cp.async, which is done at once, and barriers in shared memory (mbarrier). A block runs on one
 * thread, so its barriers are plain words. */
#include "addresses.h"

/* ---- cp.async: operand 1 where from, 2 how much of it is read (flags: 1) or whether nothing is
 * (flags: 2); count: the bytes written ---- */

static bool copy_lane(sg_warp *warp, const sg_insn *insn, int i, uint64_t from, unsigned read) {
    unsigned size = insn->count;
    unsigned char *to = sg_reach_lane(warp, insn, (unsigned)i, insn->space, sg_lane_address(warp, insn, i), size, true);
    if (!to)
        return false;
    unsigned char bytes[16] = {0};
    if (read == size) {
        const unsigned char *source = sg_reach_lane(warp, insn, (unsigned)i, SPACE_GLOBAL, from, size, false);
        if (!source)
            return false;
        memcpy(bytes, source, size);
    } else if (read && (from & (size - 1))) {
        sg_fault_access(warp, insn, (unsigned)i, SG_MISALIGNED, from, size, false, true,
                        "is not aligned: it has to be at a multiple of %u", size);
        return false;
    }
    for (unsigned k = 0; read < size && k < read; k++) { /* the last of an array: no byte behind it is touched */
        const unsigned char *source = sg_reach_lane(warp, insn, (unsigned)i, SPACE_GLOBAL, from + k, 1, false);
        if (!source)
            return false;
        bytes[k] = *source;
    }
    memcpy(to, bytes, size);
    return true;
}

HANDLER_FOR(cp_async) {
    const uint64_t *from = SOURCE(uint64_t, 1);
    uint32_t ignored = insn->flags & 2 ? PREDICATE(2) : 0;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        uint32_t read = ignored >> i & 1 ? 0 : insn->count;
        if (insn->flags & 1)
            read = SOURCE(uint32_t, 2)[i];
        if (read > insn->count) {
            sg_fault_lane(warp, insn, (unsigned)i, SG_ILLEGAL_ADDRESS, from[i], "cp.async reads %u bytes and writes %u", read, insn->count);
            return;
        }
        if (!copy_lane(warp, insn, i, from[i], read))
            return;
    }
}

/* ---- mbarrier: 64 bits ----
 *
 * The phase's parity, the bytes still expected, the arrivals that a phase takes, those that the
 * current one still lacks. A state, as arrive returns it, is the word before the arrival. */

enum { MOST_ARRIVALS = (1 << 20) - 1 };

typedef struct {
    uint32_t parity;
    int32_t bytes; /* may be below zero: completed before it was expected */
    uint32_t expected, pending;
} mbarrier;

static mbarrier unpack(uint64_t word) {
    return (mbarrier){(uint32_t)(word >> 63), (int32_t)((uint32_t)(word >> 40) << 10) >> 10, word >> 20 & MOST_ARRIVALS,
                      word & MOST_ARRIVALS};
}

static uint64_t pack(mbarrier b) {
    return (uint64_t)b.parity << 63 | (uint64_t)((uint32_t)b.bytes & 0x3fffff) << 40 | (uint64_t)b.expected << 20 |
           b.pending;
}

static void finish_phase(mbarrier *b) {
    if (b->pending || b->bytes)
        return;
    b->parity ^= 1;
    b->pending = b->expected;
}

static uint64_t *reach_barrier(sg_warp *warp, const sg_insn *insn, int i) {
    uint64_t address = sg_lane_address(warp, insn, i);
    unsigned char *place = sg_reach_lane(warp, insn, (unsigned)i, insn->space, address, 8, true);
    const unsigned char *shared = warp->block->shared;
    if (place && (place < shared || place >= shared + warp->block->grid->shared_bytes)) {
        sg_fault_lane(warp, insn, (unsigned)i, SG_ILLEGAL_ADDRESS, address,
                      "an mbarrier at 0x%llx, which is not shared memory", (unsigned long long)address);
        return NULL;
    }
    return (uint64_t *)(void *)place;
}

#define EACH_ACTIVE(i) \
    for (uint32_t left_ = warp->mask, i = left_ ? (uint32_t)__builtin_ctz(left_) : 0; left_; \
         left_ &= left_ - 1, i = left_ ? (uint32_t)__builtin_ctz(left_) : 0)

/* flags: 1 .inval, which ends its use: a barrier of no arrivals. */
HANDLER_FOR(mbarrier_init) {
    EACH_ACTIVE(i) {
        uint64_t *place = reach_barrier(warp, insn, (int)i);
        if (!place)
            return;
        uint32_t count = insn->flags & 1 ? 0 : SOURCE(uint32_t, 1)[i];
        if (!(insn->flags & 1) && (count == 0 || count > MOST_ARRIVALS)) {
            sg_fault_at(warp, insn, SG_TRAP, 0, "mbarrier.init: a count of %u; it is from 1 to %d", count, MOST_ARRIVALS);
            return;
        }
        *place = pack((mbarrier){0, 0, count, count});
    }
}

/* What a card leaves undefined ends the kernel here. */
static bool arrive(sg_warp *warp, const sg_insn *insn, mbarrier *b, uint32_t count, uint32_t bytes) {
    b->bytes += (int32_t)bytes;
    if (count > b->pending || bytes > MOST_ARRIVALS || b->bytes > MOST_ARRIVALS) {
        sg_fault_at(warp, insn, SG_TRAP, 0, "mbarrier: %u arrivals and %u bytes, where %u arrivals are pending", count, bytes,
                    b->pending);
        return false;
    }
    b->pending -= count;
    if (insn->flags & 2)
        b->expected -= count;
    return true;
}

/* Operands: 0 the state, 1 how many arrive, 2 bytes to expect; flags: 1 a state is wanted,
 * 2 they do not come again (.arrive_drop), 4 with bytes. */
HANDLER_FOR(mbarrier_arrive) {
    EACH_ACTIVE(i) {
        uint64_t *place = reach_barrier(warp, insn, (int)i);
        if (!place)
            return;
        uint64_t state = *place;
        mbarrier b = unpack(state);
        uint32_t count = SOURCE(uint32_t, 1)[i], bytes = insn->flags & 4 ? SOURCE(uint32_t, 2)[i] : 0;
        if (!arrive(warp, insn, &b, count, bytes))
            return;
        if (count)
            finish_phase(&b);
        *place = pack(b);
        if (insn->flags & 1)
            DESTINATION(uint64_t, 0)[i] = state;
    }
}

HANDLER_FOR(mbarrier_transaction) {
    EACH_ACTIVE(i) {
        uint64_t *place = reach_barrier(warp, insn, (int)i);
        if (!place)
            return;
        mbarrier b = unpack(*place);
        uint32_t bytes = SOURCE(uint32_t, 1)[i];
        int64_t sum = insn->flags & 1 ? (int64_t)b.bytes - bytes : (int64_t)b.bytes + bytes;
        if (sum > MOST_ARRIVALS || sum < -MOST_ARRIVALS) {
            sg_fault_at(warp, insn, SG_TRAP, 0, "mbarrier: a transaction count of %lld", (long long)sum);
            return;
        }
        b.bytes = (int32_t)sum;
        if (insn->flags & 1)
            finish_phase(&b);
        *place = pack(b);
    }
}

/* Whether the phase is over: of a state, or of a parity (flags: 1). try_wait (flags: 2) may
 * block: the warp then gives the others a turn at its next backward branch. */
HANDLER_FOR(mbarrier_wait) {
    uint32_t over = 0;
    EACH_ACTIVE(i) {
        const uint64_t *place = reach_barrier(warp, insn, (int)i);
        if (!place)
            return;
        uint32_t waited = insn->flags & 1 ? SOURCE(uint32_t, 1)[i] & 1 : (uint32_t)(SOURCE(uint64_t, 1)[i] >> 63);
        over |= (uint32_t)(unpack(*place).parity != waited) << i;
    }
    sg_set_predicate(warp, insn, 0, over);
    if (over != warp->mask && insn->flags & 2)
        warp->ticks = 1;
}

HANDLER_FOR(mbarrier_pending) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    FILL(uint32_t, 0, EACH_LANE out[i] = (uint32_t)a[i] & MOST_ARRIVALS);
}
