/* What work costs on the card that the profile describes. A roofline with a latency: a kernel takes as long
 * as the slowest of its arithmetic, its memory traffic and its longest chain of blocks, after the launch. It
 * tells a large kernel from a small one and a fast card from a slow one; it is no cycle simulator. */
#include "model.h"

static uint64_t at_rate(uint64_t amount, double per_second) {
    return per_second > 0 ? (uint64_t)((double)amount * 1e9 / per_second) : 0;
}

static uint64_t scaled(const sg_facts *facts, uint64_t ns) {
    unsigned __int128 product = (unsigned __int128)ns * (unsigned)facts->time_scale_ppm / 1000000;
    return product == 0 ? 1 : product > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)product;
}

static uint64_t longer(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Multiprocessors without a block do nothing. */
static uint64_t arithmetic_ns(const sg_facts *facts, const sg_kernel_cost *work) {
    uint64_t processors = (uint64_t)facts->multiprocessors;
    if (work->blocks != 0 && work->blocks < processors)
        processors = work->blocks;
    double lanes = (double)processors * facts->fp32_lanes_per_multiprocessor;
    return at_rate(work->instructions, lanes * facts->clock_khz * 1e3);
}

/* Blocks beyond those that fit wait for one to end. */
static uint64_t chain_ns(const sg_kernel_cost *work) {
    uint64_t room = work->resident_blocks != 0 ? work->resident_blocks : 1;
    return longer(work->longest_block_ns, work->all_blocks_ns / room);
}

/* Memory moves data on both edges of its clock. */
static double memory_bytes_per_second(const sg_facts *facts) {
    return facts->memory_clock_khz * 1e3 * 2 * facts->bus_width_bits / 8;
}

uint64_t sg_cost_of_kernel(const sg_facts *facts, const sg_kernel_cost *work) {
    uint64_t ns = longer(arithmetic_ns(facts, work), at_rate(work->bytes, memory_bytes_per_second(facts)));
    return scaled(facts, (uint64_t)facts->launch_ns + longer(ns, chain_ns(work)));
}

uint64_t sg_cost_of_bytes(const sg_facts *facts, uint64_t bytes) {
    return scaled(facts, (uint64_t)facts->launch_ns + at_rate(bytes, memory_bytes_per_second(facts)));
}

uint64_t sg_cost_of_transfer(const sg_facts *facts, uint64_t bytes) {
    return scaled(facts, (uint64_t)facts->launch_ns + at_rate(bytes, facts->host_link_mb_per_s * 1e6));
}
