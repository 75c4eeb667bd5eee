/* Matrices between memory and registers: ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store. */
#include "matrix.h"

/* ---- eight rows of 16 bytes, each where one lane says ---- */

enum { ROW_BYTES = 16, ROWS = 8 };

static uint64_t lane_address(const sg_warp *warp, const sg_insn *insn, unsigned lane) {
    uint64_t offset = (uint64_t)insn->immediate;
    switch (insn->mode) {
    case ADDRESS_WIDE: return SOURCE(uint64_t, 4)[lane] + offset;
    case ADDRESS_NARROW: return (uint32_t)(SOURCE(uint32_t, 4)[lane] + (uint32_t)offset);
    case ADDRESS_FRAME: return offset + warp->frame->local_base;
    default: return offset;
    }
}

/* Matrix by matrix: lane 8 i + r says where row r of the i-th lies. */
static bool reach_rows(sg_warp *warp, const sg_insn *insn, bool store, unsigned char **rows) {
    for (unsigned i = 0; i < insn->count * ROWS; i++)
        if (!(rows[i] = sg_reach_span(warp, insn, i, insn->space, lane_address(warp, insn, i), ROW_BYTES, ROW_BYTES,
                                      store)))
            return false;
    return true;
}

/* Rows and columns of 8 x 8 halves change places; as they lie in one register of all lanes. */
static void transpose(const uint16_t *restrict from, uint16_t *restrict to) {
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < ROWS; column++)
            to[column * ROWS + row] = from[row * ROWS + column];
}

HANDLER_FOR(ldmatrix) {
    unsigned char *rows[LANES];
    uint16_t matrix[ROWS * ROWS], turned[ROWS * ROWS];
    if (!sg_whole_warp(warp, insn) || !reach_rows(warp, insn, false, rows))
        return;
    for (unsigned i = 0; i < insn->count; i++) {
        for (unsigned row = 0; row < ROWS; row++)
            memcpy(&matrix[row * ROWS], rows[i * ROWS + row], ROW_BYTES);
        transpose(matrix, turned);
        memcpy(DESTINATION(uint32_t, i), insn->flags & 1 ? turned : matrix, sizeof matrix);
    }
}

HANDLER_FOR(stmatrix) {
    unsigned char *rows[LANES];
    uint16_t matrix[ROWS * ROWS], turned[ROWS * ROWS];
    if (!sg_whole_warp(warp, insn) || !reach_rows(warp, insn, true, rows))
        return;
    for (unsigned i = 0; i < insn->count; i++) {
        memcpy(matrix, SOURCE(uint32_t, i), sizeof matrix);
        transpose(matrix, turned);
        for (unsigned row = 0; row < ROWS; row++)
            memcpy(rows[i * ROWS + row], &(insn->flags & 1 ? turned : matrix)[row * ROWS], ROW_BYTES);
    }
}

HANDLER_FOR(movmatrix) {
    uint16_t matrix[ROWS * ROWS], turned[ROWS * ROWS];
    if (!sg_whole_warp(warp, insn))
        return;
    memcpy(matrix, SOURCE(uint32_t, 1), sizeof matrix);
    transpose(matrix, turned);
    memcpy(DESTINATION(uint32_t, 0), turned, sizeof turned);
}

/* ---- wmma: lines of elements, a stride apart. Address and stride are the same in all lanes: the first's. ---- */

typedef struct {
    unsigned lines, length; /* of the matrix in memory: rows or columns, and elements in one */
    unsigned bits;          /* of an element */
    uint64_t first, pitch;  /* bytes */
} lines_in_memory;

static bool find_lines(sg_warp *warp, const sg_insn *insn, const sg_tiles *tiles, lines_in_memory *found) {
    bool across = insn->flags & 1; /* a line is a column of the tiles */
    found->lines = across ? tiles->columns : tiles->rows;
    found->length = across ? tiles->rows : tiles->columns;
    found->bits = sg_words[tiles->type].bits;
    found->first = lane_address(warp, insn, 0);
    uint64_t stride = insn->flags & 2 ? found->length : SOURCE(uint32_t, 5)[0];
    if (stride * found->bits % 8) {
        sg_fault_at(warp, insn, SG_MISALIGNED, found->first, "a stride of %llu elements of %u bits is no number of bytes",
                    (unsigned long long)stride, found->bits);
        return false;
    }
    found->pitch = stride * found->bits / 8;
    return true;
}

static unsigned char *reach_line(sg_warp *warp, const sg_insn *insn, const lines_in_memory *in, unsigned line,
                                 bool store) {
    unsigned alignment = in->bits < 8 ? 1 : in->bits / 8;
    return sg_reach_span(warp, insn, 0, insn->space, in->first + line * in->pitch, in->length * in->bits / 8, alignment,
                         store);
}

/* Element i of line `line`, in the matrix row after row. */
static unsigned char *element(unsigned char *matrix, const lines_in_memory *in, unsigned line, unsigned i) {
    return matrix + ((size_t)i * in->lines + line) * (in->bits / 8);
}

HANDLER_FOR(wmma_load) {
    if (!sg_whole_warp(warp, insn))
        return;
    const sg_tiles *tiles = &sg_product_of(warp, insn)->d;
    unsigned char matrix[OPERAND_BYTES] __attribute__((aligned(64)));
    lines_in_memory in;
    if (!find_lines(warp, insn, tiles, &in))
        return;
    unsigned bytes = in.length * in.bits / 8;
    for (unsigned line = 0; line < in.lines; line++) {
        const unsigned char *from = reach_line(warp, insn, &in, line, false);
        if (!from)
            return;
        if (!(insn->flags & 1))
            memcpy(matrix + line * bytes, from, bytes);
        for (unsigned i = 0; insn->flags & 1 && i < in.length; i++)
            memcpy(element(matrix, &in, line, i), from + i * (in.bits / 8), in.bits / 8);
    }
    SG_NAME(put_tiles)(warp, tiles, matrix);
}

HANDLER_FOR(wmma_store) {
    if (!sg_whole_warp(warp, insn))
        return;
    const sg_tiles *tiles = &sg_product_of(warp, insn)->d;
    unsigned char matrix[OPERAND_BYTES] __attribute__((aligned(64)));
    lines_in_memory in;
    if (!find_lines(warp, insn, tiles, &in))
        return;
    SG_NAME(take_tiles)(warp, tiles, matrix);
    unsigned bytes = in.length * in.bits / 8;
    for (unsigned line = 0; line < in.lines; line++) {
        unsigned char *to = reach_line(warp, insn, &in, line, true);
        if (!to)
            return;
        if (!(insn->flags & 1))
            memcpy(to, matrix + line * bytes, bytes);
        for (unsigned i = 0; insn->flags & 1 && i < in.length; i++)
            memcpy(to + i * (in.bits / 8), element(matrix, &in, line, i), in.bits / 8);
    }
}
