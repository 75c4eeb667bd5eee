/* Special registers and addresses that depend on the frame or the launch. */
#include "lanes.h"

static inline uint64_t time_of(const sg_warp *warp) {
    const sg_launch *launch = warp->block->grid->launch;
    return launch->modelled ? launch->model_ns + sg_warp_ns(warp) : sg_now_ns();
}

static inline uint64_t clock_of(const sg_warp *warp) {
    const sg_grid *grid = warp->block->grid;
    uint64_t hertz = grid->launch->clock_hz ? grid->launch->clock_hz : 1000000000;
    return (uint64_t)((unsigned __int128)time_of(warp) * hertz / 1000000000);
}

/* What all lanes of a warp share. */
static uint64_t uniform(const sg_warp *warp, int special) {
    const sg_block *block = warp->block;
    const sg_launch *launch = block->grid->launch;
    uint32_t processors = launch->multiprocessors ? launch->multiprocessors : 1;
    switch (special) {
    case SPECIAL_ntid_x: case SPECIAL_ntid_y: case SPECIAL_ntid_z: return launch->block[special - SPECIAL_ntid_x];
    case SPECIAL_ctaid_x: case SPECIAL_ctaid_y: case SPECIAL_ctaid_z: return block->index[special - SPECIAL_ctaid_x];
    case SPECIAL_nctaid_x: case SPECIAL_nctaid_y: case SPECIAL_nctaid_z: return launch->grid[special - SPECIAL_nctaid_x];
    /* A launch without clusters is a grid of clusters of one block. */
    case SPECIAL_clusterid_x: case SPECIAL_clusterid_y: case SPECIAL_clusterid_z:
        return block->index[special - SPECIAL_clusterid_x];
    case SPECIAL_nclusterid_x: case SPECIAL_nclusterid_y: case SPECIAL_nclusterid_z:
        return launch->grid[special - SPECIAL_nclusterid_x];
    case SPECIAL_cluster_nctaid_x: case SPECIAL_cluster_nctaid_y: case SPECIAL_cluster_nctaid_z:
    case SPECIAL_cluster_nctarank: return 1;
    case SPECIAL_warpid: return warp->number;
    case SPECIAL_nwarpid: return block->warp_count;
    case SPECIAL_smid:
        return (block->index[0] + (uint64_t)launch->grid[0] * (block->index[1] + (uint64_t)launch->grid[1] * block->index[2])) %
               processors;
    case SPECIAL_nsmid: return processors;
    case SPECIAL_clock: case SPECIAL_clock64: return clock_of(warp);
    case SPECIAL_clock_hi: return clock_of(warp) >> 32;
    case SPECIAL_globaltimer: case SPECIAL_globaltimer_lo: return time_of(warp);
    case SPECIAL_globaltimer_hi: return time_of(warp) >> 32;
    case SPECIAL_dynamic_smem_size: return launch->dynamic_shared_bytes;
    case SPECIAL_total_smem_size: case SPECIAL_aggr_smem_size: return block->grid->shared_bytes;
    /* The driver's words for grid barriers: the address of a workspace, high half first. */
    case SPECIAL_envreg1: return launch->cooperative ? SG_GRID_WINDOW >> 32 : 0;
    case SPECIAL_envreg2: return launch->cooperative ? (uint32_t)SG_GRID_WINDOW : 0;
    default: return 0;
    }
}

static uint32_t lane_mask(int special, uint32_t lane) {
    uint32_t own = 1u << lane;
    switch (special) {
    case SPECIAL_lanemask_eq: return own;
    case SPECIAL_lanemask_lt: return own - 1;
    case SPECIAL_lanemask_le: return own | (own - 1);
    case SPECIAL_lanemask_gt: return ~(own | (own - 1));
    default: return ~(own - 1);
    }
}

HANDLER_FOR(special) {
    int special = (int)insn->immediate;
    if (special >= SPECIAL_ctaid_x && special <= SPECIAL_ctaid_z) { /* the only ones that most blocks read */
        uint32_t index = warp->block->index[special - SPECIAL_ctaid_x];
        FILL(uint32_t, 0, EACH_LANE out[i] = index);
    } else if (special <= SPECIAL_tid_z) {
        const uint32_t *tid = warp->tid[special - SPECIAL_tid_x];
        FILL(uint32_t, 0, EACH_LANE out[i] = tid[i]);
    } else if (special == SPECIAL_laneid) {
        FILL(uint32_t, 0, EACH_LANE out[i] = (uint32_t)i);
    } else if (special >= SPECIAL_lanemask_eq && special <= SPECIAL_lanemask_gt) {
        FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) out[i] = lane_mask(special, (uint32_t)i));
    } else {
        uint64_t value = uniform(warp, special);
        if (sg_special_bits(special) == 64)
            FILL(uint64_t, 0, EACH_LANE out[i] = value);
        else
            FILL(uint32_t, 0, EACH_LANE out[i] = (uint32_t)value);
    }
}

/* flags: 1 the column is 64 bits wide. */
static inline void uniform_address(sg_warp *warp, const sg_insn *insn, uint64_t value) {
    if (insn->flags & 1)
        FILL(uint64_t, 0, EACH_LANE out[i] = value);
    else
        FILL(uint32_t, 0, EACH_LANE out[i] = (uint32_t)value);
}
HANDLER_FOR(local_address) { uniform_address(warp, insn, warp->frame->local_base + (uint64_t)insn->immediate); }
HANDLER_FOR(dynamic_shared) {
    uniform_address(warp, insn, warp->block->grid->dynamic_base + (uint64_t)insn->immediate);
}
