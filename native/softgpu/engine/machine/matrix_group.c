/* wgmma.mma_async. Each of the four warps of a group multiplies its 16 rows when it comes to the instruction:
 * what it reads from shared memory must be there by then, as fence and barrier make it on a card.
 *
 * A descriptor (PTX ISA, "matrix descriptor"): bits 0-13 the address, 16-29 the leading and 32-45 the stride
 * byte offset, each divided by 16; 49-51 the base offset; 62-63 the swizzle. The matrix lies in cores of
 * eight lines, each line of 1, 2, 4 or 8 pieces of 16 bytes (by the swizzle: none, 32, 64, 128 bytes). With
 * k running fastest a line is one row of a (column of b); transposed, one k. */
#include "matrix.h"

enum { PIECE = 16, CORE_LINES = 8, WARPS_OF_GROUP = 4, DEPTH_BYTES = 32 };

typedef struct {
    uint64_t start, leading, stride; /* bytes */
    unsigned pieces;                 /* of a line */
    unsigned base_offset;
} descriptor;

static descriptor read_descriptor(uint64_t bits) {
    static const uint8_t pieces[] = {1, 8, 4, 2};
    return (descriptor){(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4,
                        pieces[bits >> 62], bits >> 49 & 7};
}

/* The swizzle exchanges pieces by the lines' number, both taken from the address itself. */
static uint64_t swizzled(const descriptor *d, uint64_t address) {
    return address ^ (address >> 7 & (d->pieces - 1)) << 4;
}

/* Row `line` with k fastest: its two pieces follow one another, or lie `leading` apart. */
static uint64_t straight(const descriptor *d, unsigned line, unsigned piece) {
    uint64_t core = d->start + line / CORE_LINES * d->stride + line % CORE_LINES * d->pieces * PIECE;
    return swizzled(d, core + piece * (d->pieces == 1 ? d->leading : PIECE));
}

/* Eight rows from 8 * `group` on, at depth `k`: where rows run fastest. Without a swizzle the two offsets
 * change their parts. */
static uint64_t crosswise(const descriptor *d, unsigned group, unsigned k) {
    uint64_t along = d->pieces == 1 ? d->stride : d->leading, down = d->pieces == 1 ? d->leading : d->stride;
    return swizzled(d, d->start + group % d->pieces * PIECE + group / d->pieces * along +
                           k % CORE_LINES * d->pieces * PIECE + k / CORE_LINES * down);
}

static const unsigned char *reach_piece(sg_warp *warp, const sg_insn *insn, uint64_t address) {
    return sg_reach_span(warp, insn, 0, SPACE_SHARED, address, PIECE, PIECE, false);
}

/* Rows [first, first + count) of 32 bytes each. */
static bool load_straight(sg_warp *warp, const sg_insn *insn, const descriptor *d, unsigned first, unsigned count,
                          unsigned char *matrix) {
    for (unsigned i = 0; i < count; i++)
        for (unsigned piece = 0; piece < DEPTH_BYTES / PIECE; piece++) {
            const unsigned char *from = reach_piece(warp, insn, straight(d, first + i, piece));
            if (!from)
                return false;
            memcpy(matrix + i * DEPTH_BYTES + piece * PIECE, from, PIECE);
        }
    return true;
}

/* The same of 16-bit elements whose rows run fastest. */
static bool load_crosswise(sg_warp *warp, const sg_insn *insn, const descriptor *d, unsigned first, unsigned count,
                           unsigned char *matrix) {
    enum { DEPTH = DEPTH_BYTES / 2, ROWS = PIECE / 2 };
    uint16_t *out = (uint16_t *)matrix;
    for (unsigned i = 0; i < count; i += ROWS)
        for (unsigned k = 0; k < DEPTH; k++) {
            uint16_t rows[ROWS];
            const unsigned char *from = reach_piece(warp, insn, crosswise(d, (first + i) / ROWS, k));
            if (!from)
                return false;
            memcpy(rows, from, sizeof rows);
            for (unsigned r = 0; r < ROWS; r++)
                out[(i + r) * DEPTH + k] = rows[r];
        }
    return true;
}

static bool load_matrix(sg_warp *warp, const sg_insn *insn, int operand, bool transposed, unsigned first,
                        unsigned count, unsigned char *matrix) {
    descriptor d = read_descriptor(SOURCE(uint64_t, operand)[0]);
    if (d.base_offset) {
        sg_fault_at(warp, insn, SG_UNSUPPORTED, d.start,
                    "a wgmma descriptor with base offset %u: the matrix must begin where its swizzle does", d.base_offset);
        return false;
    }
    return transposed ? load_crosswise(warp, insn, &d, first, count, matrix)
                      : load_straight(warp, insn, &d, first, count, matrix);
}

HANDLER_FOR(wgmma) {
    if (!sg_whole_warp(warp, insn))
        return;
    const sg_product *product = sg_product_of(warp, insn);
    sg_operands operands;
    unsigned share = warp->number % WARPS_OF_GROUP;
    if (warp->number - share + WARPS_OF_GROUP > warp->block->warp_count) {
        sg_fault_at(warp, insn, SG_TRAP, 0, "wgmma needs groups of %d warps; the block has %u", WARPS_OF_GROUP,
                    warp->block->warp_count);
        return;
    }
    if (!product->a_in_memory)
        SG_NAME(take_tiles)(warp, &product->a, operands.a);
    else if (!load_matrix(warp, insn, 0, product->a_transposed, share * product->m, product->m, operands.a))
        return;
    if (!load_matrix(warp, insn, 1, product->b_transposed, 0, product->n, operands.b))
        return;
    if (PREDICATE(2) & 1) /* scale-d */
        SG_NAME(take_tiles)(warp, &product->c, operands.sum);
    else
        memset(operands.sum, 0, sizeof operands.sum);
    SG_NAME(multiply)(product, &operands);
    SG_NAME(put_tiles)(warp, &product->d, operands.sum);
}
