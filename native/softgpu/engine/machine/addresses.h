/* The address that one lane's access goes to. */
#ifndef SG_MACHINE_ADDRESSES_H
#define SG_MACHINE_ADDRESSES_H

#include "lanes.h"

static inline uint64_t sg_lane_address(const sg_warp *warp, const sg_insn *insn, int i) {
    uint64_t offset = (uint64_t)insn->immediate;
    switch (insn->mode) {
    case ADDRESS_WIDE: return SOURCE(uint64_t, 4)[i] + offset;
    case ADDRESS_NARROW: return (uint32_t)(SOURCE(uint32_t, 4)[i] + (uint32_t)offset);
    case ADDRESS_FRAME: return warp->frame->local_base + offset;
    default: return offset;
    }
}

#endif
