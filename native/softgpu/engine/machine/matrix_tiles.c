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

/* A tile that is one column: its rows follow one another there. The sizes are constants, or copying
 * costs more than multiplying. */
static inline void take_rows(const unsigned char *column, unsigned char *tile, size_t row_bytes, size_t tile_bytes) {
    for (unsigned row = 0; row < TILE_ROWS; row++)
        memcpy(tile + row * row_bytes, column + row * tile_bytes, tile_bytes);
}

static inline void put_rows(unsigned char *column, const unsigned char *tile, size_t row_bytes, size_t tile_bytes) {
    for (unsigned row = 0; row < TILE_ROWS; row++)
        memcpy(column + row * tile_bytes, tile + row * row_bytes, tile_bytes);
}

/* A tile that is two: elements alternate. */
#define PAIRS(T)                                                                                     \
    static inline void take_pair_##T(const T *even, const T *odd, T *tile, size_t row_elements) {    \
        for (unsigned row = 0; row < TILE_ROWS; row++)                                               \
            for (unsigned i = 0; i < LANES_A_ROW; i++) {                                             \
                tile[row * row_elements + 2 * i] = even[row * LANES_A_ROW + i];                      \
                tile[row * row_elements + 2 * i + 1] = odd[row * LANES_A_ROW + i];                   \
            }                                                                                        \
    }                                                                                                \
    static inline void put_pair_##T(T *even, T *odd, const T *tile, size_t row_elements) {           \
        for (unsigned row = 0; row < TILE_ROWS; row++)                                               \
            for (unsigned i = 0; i < LANES_A_ROW; i++) {                                             \
                even[row * LANES_A_ROW + i] = tile[row * row_elements + 2 * i];                      \
                odd[row * LANES_A_ROW + i] = tile[row * row_elements + 2 * i + 1];                   \
            }                                                                                        \
    }
PAIRS(uint32_t)
PAIRS(uint64_t)

void SG_NAME(take_tiles)(const sg_warp *warp, const sg_tiles *tiles, unsigned char *matrix) {
    grid_of_tiles grid = measure(tiles);
    bool wide = tiles->type == W_f64;
    for (unsigned r = 0; r < grid.total; r += tiles->paired ? 2 : 1) {
        const unsigned char *column = register_of(warp, tiles->registers[r]);
        unsigned char *tile = matrix + tile_at(tiles, &grid, tiles->paired ? r / 2 : r);
        if (!tiles->paired) {
            wide ? take_rows(column, tile, grid.row_bytes, 32) : take_rows(column, tile, grid.row_bytes, 16);
            continue;
        }
        const unsigned char *odd = register_of(warp, tiles->registers[r + 1]);
        if (wide)
            take_pair_uint64_t((const void *)column, (const void *)odd, (void *)tile, grid.row_bytes / 8);
        else
            take_pair_uint32_t((const void *)column, (const void *)odd, (void *)tile, grid.row_bytes / 4);
    }
}

void SG_NAME(put_tiles)(sg_warp *warp, const sg_tiles *tiles, const unsigned char *matrix) {
    grid_of_tiles grid = measure(tiles);
    bool wide = tiles->type == W_f64;
    for (unsigned r = 0; r < tiles->count; r += tiles->paired ? 2 : 1) {
        unsigned char *column = register_of(warp, tiles->registers[r]);
        const unsigned char *tile = matrix + tile_at(tiles, &grid, r % grid.total / (tiles->paired ? 2 : 1));
        if (!tiles->paired) {
            wide ? put_rows(column, tile, grid.row_bytes, 32) : put_rows(column, tile, grid.row_bytes, 16);
            continue;
        }
        unsigned char *odd = register_of(warp, tiles->registers[r + 1]);
        if (wide)
            put_pair_uint64_t((void *)column, (void *)odd, (const void *)tile, grid.row_bytes / 8);
        else
            put_pair_uint32_t((void *)column, (void *)odd, (const void *)tile, grid.row_bytes / 4);
    }
}
