/* Between the registers of a warp and a matrix row after row. */
#include "matrix.h"

enum { TILE_ROWS = 8, LANES_A_ROW = 4 };

typedef struct {
    unsigned tile_bytes; /* of one row of a tile */
    unsigned row_bytes;  /* of the matrix */
    unsigned down, along; /* tiles */
    unsigned total;      /* registers that hold the matrix once */
} grid_of_tiles;

static inline grid_of_tiles measure(const sg_tiles *tiles) {
    unsigned bits = sg_words[tiles->type].bits;
    grid_of_tiles found = {.row_bytes = tiles->columns * bits / 8, .down = tiles->rows / TILE_ROWS};
    unsigned lane_bytes = tiles->type == W_f64 ? 8 : 4;
    found.tile_bytes = LANES_A_ROW * lane_bytes * (tiles->paired ? 2 : 1);
    found.along = found.row_bytes / found.tile_bytes;
    found.total = found.down * found.along * (tiles->paired ? 2 : 1);
    return found;
}

/* Where tile number `tile` begins in the matrix. */
static inline size_t tile_at(const sg_tiles *tiles, const grid_of_tiles *grid, unsigned tile) {
    unsigned row = tiles->across ? tile / grid->along : tile % grid->down;
    unsigned column = tiles->across ? tile % grid->along : tile / grid->down;
    return (size_t)row * TILE_ROWS * grid->row_bytes + (size_t)column * grid->tile_bytes;
}

static inline unsigned char *register_of(const sg_warp *warp, uint32_t operand) {
    return (unsigned char *)warp->base[operand & 1] + operand;
}

void SG_NAME(take_tiles)(const sg_warp *warp, const sg_tiles *tiles, unsigned char *matrix) {
    grid_of_tiles grid = measure(tiles);
    unsigned lane_bytes = tiles->type == W_f64 ? 8 : 4, pair = tiles->paired ? 2 : 1;
    for (unsigned r = 0; r < grid.total; r++) {
        const unsigned char *column = register_of(warp, tiles->registers[r]);
        unsigned char *tile = matrix + tile_at(tiles, &grid, r / pair) + r % pair * lane_bytes;
        for (unsigned row = 0; row < TILE_ROWS; row++)
            if (pair == 1)
                memcpy(tile + row * grid.row_bytes, column + row * grid.tile_bytes, grid.tile_bytes);
            else
                for (unsigned i = 0; i < LANES_A_ROW; i++)
                    memcpy(tile + row * grid.row_bytes + 2 * i * lane_bytes,
                           column + (row * LANES_A_ROW + i) * lane_bytes, lane_bytes);
    }
}

void SG_NAME(put_tiles)(sg_warp *warp, const sg_tiles *tiles, const unsigned char *matrix) {
    grid_of_tiles grid = measure(tiles);
    unsigned lane_bytes = tiles->type == W_f64 ? 8 : 4, pair = tiles->paired ? 2 : 1;
    for (unsigned r = 0; r < tiles->count; r++) {
        unsigned char *column = register_of(warp, tiles->registers[r]);
        const unsigned char *tile = matrix + tile_at(tiles, &grid, r % grid.total / pair) + r % pair * lane_bytes;
        for (unsigned row = 0; row < TILE_ROWS; row++)
            if (pair == 1)
                memcpy(column + row * grid.tile_bytes, tile + row * grid.row_bytes, grid.tile_bytes);
            else
                for (unsigned i = 0; i < LANES_A_ROW; i++)
                    memcpy(column + (row * LANES_A_ROW + i) * lane_bytes,
                           tile + row * grid.row_bytes + 2 * i * lane_bytes, lane_bytes);
    }
}
