/* Matrices as the handlers see them: between registers in tiles (see sg_tiles) and memory, a matrix is a
 * plain array of bytes, row after row; to be multiplied it becomes numbers. */
#ifndef SG_MACHINE_MATRIX_H
#define SG_MACHINE_MATRIX_H

#include "lanes.h"

/* The largest of each: wgmma multiplies 16 rows (a warp's share) of 32 bytes by 256 columns. */
enum { LARGEST_A = 16 * 64, LARGEST_B = 32 * 256, LARGEST_SUM = 16 * 256, OPERAND_BYTES = 256 * 32 };

typedef struct {
    unsigned char a[OPERAND_BYTES] __attribute__((aligned(64))); /* rows of k */
    unsigned char b[OPERAND_BYTES] __attribute__((aligned(64))); /* columns of k: the transpose of b */
    unsigned char sum[LARGEST_SUM * 8] __attribute__((aligned(64))); /* c, then d */
} sg_operands;

static inline const sg_product *sg_product_of(const sg_warp *warp, const sg_insn *insn) {
    return &warp->block->grid->kernel->module->products[insn->target];
}

/* All 32 threads must come. False: they wait, or it is a fault. */
static inline bool sg_whole_warp(sg_warp *warp, const sg_insn *insn) {
    if (!sg_meet(warp, insn, (uint32_t)FULL_MASK))
        return false;
    if (warp->mask == (uint32_t)FULL_MASK)
        return true;
    sg_fault_at(warp, insn, SG_TRAP, 0, "a matrix instruction needs all 32 threads of the warp; here are 0x%08x",
                warp->mask);
    return false;
}

/* ---- matrix_tiles.c ---- */

void SG_NAME(take_tiles)(const sg_warp *warp, const sg_tiles *tiles, unsigned char *matrix);
void SG_NAME(put_tiles)(sg_warp *warp, const sg_tiles *tiles, const unsigned char *matrix);

/* ---- matrix_multiply.c ---- */

/* From a, b and c of `operands` to d, in its place. */
void SG_NAME(multiply)(const sg_product *product, sg_operands *operands);

#endif
