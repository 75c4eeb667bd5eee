/* The time that a kernel would take on the card, as far as it depends on one warp alone: its instructions one
 * after another, and its sleep. How many warps share a multiprocessor, and what memory can deliver, is for
 * who launches (device/cost.c).
 *
 * A warp counts the instructions of lanes; divided by the lanes that it began with, that is its own number of
 * instructions as long as its lanes stay together. */
#include "machine.h"

/* From one instruction to the next that needs its result: four cycles for most arithmetic on every card since
 * Volta, by public measurements. */
enum { CYCLES_PER_INSTRUCTION = 4 };

static uint64_t lanes_at_begin(const sg_warp *warp) {
    uint32_t rest = warp->block->grid->threads_per_block - warp->number * LANES;
    return rest < LANES ? rest : LANES;
}

uint64_t sg_warp_ns(const sg_warp *warp) {
    uint64_t hertz = warp->block->grid->launch->clock_hz ? warp->block->grid->launch->clock_hz : 1000000000;
    uint64_t cycles = (warp->issued + warp->instructions) * CYCLES_PER_INSTRUCTION / lanes_at_begin(warp);
    return warp->slept_ns + (uint64_t)((unsigned __int128)cycles * 1000000000 / hertz);
}

void sg_note_block_time(sg_worker *worker, const sg_block *block) {
    uint64_t longest = 0;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        uint64_t ns = sg_warp_ns(&block->warps[w]);
        longest = ns > longest ? ns : longest;
    }
    worker->all_blocks_ns += longest;
    if (longest > worker->longest_block_ns)
        worker->longest_block_ns = longest;
}
