/* A Zstandard frame, by RFC 8878. */
#include <stdlib.h>
#include <string.h>

#include "unpack_entropy.h"

enum { LARGEST_BLOCK = 128 * 1024, LITERAL_CODES = 36, OFFSET_CODES = 32, MATCH_CODES = 53 };
enum { RAW, RLE, COMPRESSED, TREELESS }; /* of literals; of blocks the first three */
enum { PREDEFINED, SINGLE, DESCRIBED, REPEATED };

static const int16_t default_literals[] = {
    4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1,
    -1};
static const int16_t default_offsets[] = {
    1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
static const int16_t default_matches[] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
static const uint32_t literal_base[LITERAL_CODES] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512,
    1024, 2048, 4096, 8192, 16384, 32768, 65536};
static const uint8_t literal_bits[LITERAL_CODES] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16};
static const uint32_t match_base[MATCH_CODES] = {
    3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771,
    65539};
static const uint8_t match_bits[MATCH_CODES] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1,
    2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* What goes from one block of a frame to the next. */
typedef struct {
    sg_huffman tree;
    sg_fse literal, offset, match;
    bool known; /* the three tables */
    uint32_t offsets[3]; /* the last ones, latest first */
    unsigned char literals[LARGEST_BLOCK];
    size_t literal_count;
    unsigned char *to;
    size_t done, to_size;
} frame;

typedef struct {
    const unsigned char *at, *end;
} input;

static bool take(input *in, size_t count, uint64_t *value) {
    *value = 0;
    if ((size_t)(in->end - in->at) < count)
        return false;
    for (size_t i = 0; i < count; i++)
        *value |= (uint64_t)in->at[i] << 8 * i;
    in->at += count;
    return true;
}

/* ---- literals ---- */

static bool decode_streams(frame *f, const unsigned char *from, size_t size, bool four) {
    if (!four)
        return sg_huffman_decode(&f->tree, from, size, f->literals, f->literal_count);
    size_t each = (f->literal_count + 3) / 4, at = 6, done = 0;
    if (size < 6 || 3 * each > f->literal_count)
        return false;
    for (int i = 0; i < 4; i++) {
        size_t length = i < 3 ? from[2 * i] | (size_t)from[2 * i + 1] << 8 : size - at;
        size_t count = i < 3 ? each : f->literal_count - done;
        if (length > size - at || !sg_huffman_decode(&f->tree, from + at, length, f->literals + done, count))
            return false;
        at += length;
        done += count;
    }
    return true;
}

static bool read_coded(frame *f, input *in, bool with_tree, unsigned format) {
    static const uint8_t bytes[] = {3, 3, 4, 5}, bits[] = {10, 10, 14, 18};
    uint64_t head;
    size_t used = 0;
    if (!take(in, bytes[format], &head))
        return false;
    uint64_t mask = (UINT64_C(1) << bits[format]) - 1;
    size_t size = (size_t)(head >> (4 + bits[format]) & mask);
    f->literal_count = (size_t)(head >> 4 & mask);
    if (f->literal_count > LARGEST_BLOCK || size > (size_t)(in->end - in->at))
        return false;
    if (with_tree && !sg_huffman_read(&f->tree, in->at, size, &used))
        return false;
    bool decoded = decode_streams(f, in->at + used, size - used, format != 0);
    in->at += size;
    return decoded;
}

static bool read_literals(frame *f, input *in) {
    static const uint8_t bytes[] = {1, 2, 1, 3}, shifts[] = {3, 4, 3, 4};
    uint64_t head;
    if (in->at == in->end)
        return false;
    unsigned type = *in->at & 3, format = *in->at >> 2 & 3;
    if (type == COMPRESSED || type == TREELESS)
        return read_coded(f, in, type == COMPRESSED, format);
    if (!take(in, bytes[format], &head))
        return false;
    f->literal_count = (size_t)(head >> shifts[format]);
    size_t size = type == RAW ? f->literal_count : 1;
    if (f->literal_count > LARGEST_BLOCK || size > (size_t)(in->end - in->at))
        return false;
    if (type == RAW)
        memcpy(f->literals, in->at, size);
    else
        memset(f->literals, *in->at, f->literal_count);
    in->at += size;
    return true;
}

/* ---- sequences ---- */

static bool read_table(sg_fse *table, unsigned mode, input *in, const int16_t *parts, unsigned part_count,
                       unsigned default_log, unsigned largest_log, unsigned symbols, bool known) {
    size_t used;
    switch (mode) {
    case PREDEFINED: return sg_fse_build(table, parts, part_count, default_log);
    case SINGLE:
        if (in->at == in->end || *in->at >= symbols)
            return false;
        sg_fse_single(table, *in->at++);
        return true;
    case DESCRIBED:
        if (!sg_fse_read(table, in->at, (size_t)(in->end - in->at), largest_log, symbols, &used))
            return false;
        in->at += used;
        return true;
    default: return known;
    }
}

static bool read_tables(frame *f, input *in) {
    uint64_t modes;
    if (!take(in, 1, &modes) || (modes & 3) != 0)
        return false;
    bool read = read_table(&f->literal, modes >> 6 & 3, in, default_literals, LITERAL_CODES, 6, 9, LITERAL_CODES,
                           f->known) &&
                read_table(&f->offset, modes >> 4 & 3, in, default_offsets, 29, 5, 8, OFFSET_CODES, f->known) &&
                read_table(&f->match, modes >> 2 & 3, in, default_matches, MATCH_CODES, 6, 9, MATCH_CODES, f->known);
    f->known = read;
    return read;
}

/* Values up to 3 are of the last three offsets, shifted by one where no literals came before. */
static bool resolve_offset(frame *f, uint32_t value, bool no_literals, uint32_t *offset) {
    unsigned which = value > 3 ? 3 : value - 1 + no_literals;
    if (value > 3)
        *offset = value - 3;
    else
        *offset = which < 3 ? f->offsets[which] : f->offsets[0] - 1;
    for (unsigned i = which < 2 ? which : 2; i > 0; i--)
        f->offsets[i] = f->offsets[i - 1];
    f->offsets[0] = *offset;
    return *offset != 0;
}

static bool append_literals(frame *f, size_t *used, size_t count) {
    if (count > f->literal_count - *used || count > f->to_size - f->done)
        return false;
    memcpy(f->to + f->done, f->literals + *used, count);
    *used += count;
    f->done += count;
    return true;
}

static bool perform(frame *f, size_t *used, uint32_t literals, uint32_t match, uint32_t offset_value) {
    uint32_t offset;
    if (!append_literals(f, used, literals) || !resolve_offset(f, offset_value, literals == 0, &offset) ||
        offset > f->done || match > f->to_size - f->done)
        return false;
    sg_unpack_match(f->to + f->done, offset, match);
    f->done += match;
    return true;
}

static bool decode_sequences(frame *f, const input *in, unsigned count) {
    sg_bits_back bits;
    size_t used = 0;
    if (!sg_bits_begin(&bits, in->at, (size_t)(in->end - in->at)))
        return false;
    unsigned literal = sg_fse_first(&f->literal, &bits), offset = sg_fse_first(&f->offset, &bits);
    unsigned match = sg_fse_first(&f->match, &bits);
    for (unsigned i = 0; i < count; i++) {
        unsigned of = f->offset.states[offset].symbol, ml = f->match.states[match].symbol;
        unsigned ll = f->literal.states[literal].symbol;
        if (of > 31)
            return false;
        uint32_t offset_value = (uint32_t)((UINT64_C(1) << of) + sg_bits_read(&bits, of));
        uint32_t match_length = match_base[ml] + sg_bits_read(&bits, match_bits[ml]);
        uint32_t literal_length = literal_base[ll] + sg_bits_read(&bits, literal_bits[ll]);
        if (bits.at < 0 || !perform(f, &used, literal_length, match_length, offset_value))
            return false;
        if (i + 1 == count)
            break;
        literal = sg_fse_next(&f->literal, literal, &bits);
        match = sg_fse_next(&f->match, match, &bits);
        offset = sg_fse_next(&f->offset, offset, &bits);
    }
    return bits.at == 0 && append_literals(f, &used, f->literal_count - used);
}

static bool read_compressed(frame *f, input in) {
    uint64_t first, more = 0;
    size_t used = 0;
    if (!read_literals(f, &in) || !take(&in, 1, &first))
        return false;
    if (first == 0)
        return in.at == in.end && append_literals(f, &used, f->literal_count);
    if (first >= 128 && !take(&in, first == 255 ? 2 : 1, &more))
        return false;
    unsigned count = (unsigned)(first < 128 ? first : first < 255 ? ((first - 128) << 8) + more : more + 0x7F00);
    return read_tables(f, &in) && decode_sequences(f, &in, count);
}

/* ---- blocks and frames ---- */

static bool read_block(frame *f, input *in, bool *last) {
    uint64_t head;
    if (!take(in, 3, &head))
        return false;
    unsigned type = head >> 1 & 3;
    size_t size = (size_t)(head >> 3), held = type == RLE ? 1 : size;
    *last = head & 1;
    if (held > (size_t)(in->end - in->at) || size > LARGEST_BLOCK)
        return false;
    input block = {in->at, in->at + held};
    in->at += held;
    if (type == COMPRESSED)
        return read_compressed(f, block);
    if (type > COMPRESSED || size > f->to_size - f->done)
        return false;
    if (type == RAW)
        memcpy(f->to + f->done, block.at, size);
    else
        memset(f->to + f->done, *block.at, size);
    f->done += size;
    return true;
}

/* The window and the size of the content are passed over: the room that there is bounds both. */
static bool read_header(input *in) {
    static const uint8_t dictionary_bytes[] = {0, 1, 2, 4}, size_bytes[] = {0, 2, 4, 8};
    uint64_t magic, head, dictionary, skipped;
    if (!take(in, 4, &magic) || magic != 0xFD2FB528 || !take(in, 1, &head) || (head & 8) != 0)
        return false;
    bool one_segment = head & 0x20;
    return (one_segment || take(in, 1, &skipped)) && take(in, dictionary_bytes[head & 3], &dictionary) &&
           dictionary == 0 && take(in, head >> 6 == 0 && one_segment ? 1 : size_bytes[head >> 6], &skipped);
}

bool sg_unpack_zstd(const unsigned char *from, size_t from_size, unsigned char *to, size_t to_size) {
    input in = {from, from + from_size};
    bool last = false, good = read_header(&in);
    frame *f = good ? calloc(1, sizeof *f) : NULL;
    if (f == NULL)
        return false;
    f->offsets[0] = 1;
    f->offsets[1] = 4;
    f->offsets[2] = 8;
    f->to = to;
    f->to_size = to_size;
    while (good && !last)
        good = read_block(f, &in, &last);
    good = good && f->done == to_size;
    free(f);
    return good;
}
