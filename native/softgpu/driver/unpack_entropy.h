/* The two entropy coders of Zstandard (RFC 8878, sections 4.1 and 4.2): finite state entropy and Huffman. */
#ifndef SG_UNPACK_ENTROPY_H
#define SG_UNPACK_ENTROPY_H

#include "unpack.h"

enum { SG_FSE_LARGEST_LOG = 9, SG_FSE_SYMBOLS = 256, SG_HUFFMAN_LARGEST_LOG = 11 };

/* Bits read from the end of `from` to its beginning. `at`: how many are left; below zero: so many zeros were
 * read that are not there. */
typedef struct {
    const unsigned char *from;
    int64_t at;
} sg_bits_back;

/* False where there is no end mark. */
bool sg_bits_begin(sg_bits_back *bits, const unsigned char *from, size_t size);
uint32_t sg_bits_read(sg_bits_back *bits, unsigned count); /* at most 32 */

typedef struct {
    unsigned log; /* of the number of states */
    struct {
        uint8_t symbol, bits;
        uint16_t base; /* the next state, with so many bits added */
    } states[1 << SG_FSE_LARGEST_LOG];
} sg_fse;

/* From the probabilities, in parts of 1 << log; -1: less than one. */
bool sg_fse_build(sg_fse *table, const int16_t *parts, unsigned count, unsigned log);
/* From their description; *used is its length. */
bool sg_fse_read(sg_fse *table, const unsigned char *from, size_t size, unsigned largest_log, unsigned symbols,
                 size_t *used);
void sg_fse_single(sg_fse *table, uint8_t symbol);

static inline unsigned sg_fse_first(const sg_fse *table, sg_bits_back *bits) {
    return sg_bits_read(bits, table->log);
}

static inline unsigned sg_fse_next(const sg_fse *table, unsigned state, sg_bits_back *bits) {
    return table->states[state].base + sg_bits_read(bits, table->states[state].bits);
}

typedef struct {
    unsigned log; /* 0: none was read yet */
    struct {
        uint8_t symbol, bits;
    } codes[1 << SG_HUFFMAN_LARGEST_LOG];
} sg_huffman;

bool sg_huffman_read(sg_huffman *tree, const unsigned char *from, size_t size, size_t *used);
/* One stream; exactly `count` symbols. */
bool sg_huffman_decode(const sg_huffman *tree, const unsigned char *from, size_t size, unsigned char *to, size_t count);

#endif
