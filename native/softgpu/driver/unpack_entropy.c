/* See unpack_entropy.h. */
#include "unpack_entropy.h"

#include <string.h>

static unsigned highest_bit(uint32_t value) {
    return 31 - (unsigned)__builtin_clz(value);
}

/* ---- bits ---- */

bool sg_bits_begin(sg_bits_back *bits, const unsigned char *from, size_t size) {
    if (size == 0 || from[size - 1] == 0)
        return false;
    *bits = (sg_bits_back){from, (int64_t)(size - 1) * 8 + highest_bit(from[size - 1])};
    return true;
}

/* Bits `at` to `at + count` of the bytes as one number; those before the first byte are zero. */
static uint32_t bits_at(const unsigned char *from, int64_t at, unsigned count) {
    unsigned missing = at < 0 ? (at < -32 ? 32 : (unsigned)-at) : 0;
    uint64_t value = 0;
    if (missing >= count)
        return 0;
    int64_t first = at + missing, last = at + count - 1;
    for (int64_t byte = last / 8; byte >= first / 8; byte--)
        value = value << 8 | from[byte];
    value >>= first % 8;
    return (uint32_t)((value & ((UINT64_C(1) << (count - missing)) - 1)) << missing);
}

uint32_t sg_bits_read(sg_bits_back *bits, unsigned count) {
    if (count == 0)
        return 0;
    bits->at -= count;
    return bits_at(bits->from, bits->at, count);
}

/* ---- finite state entropy ---- */

/* Symbols of less than one part stand at the end, the others are spread in steps that reach every place. */
static bool spread(sg_fse *table, const int16_t *parts, unsigned count) {
    unsigned size = 1u << table->log, end = size, at = 0, step = (size >> 1) + (size >> 3) + 3;
    for (unsigned s = 0; s < count; s++)
        if (parts[s] == -1)
            table->states[--end].symbol = (uint8_t)s;
    for (unsigned s = 0; s < count; s++)
        for (int i = 0; i < parts[s]; i++) {
            table->states[at].symbol = (uint8_t)s;
            do
                at = (at + step) & (size - 1);
            while (at >= end);
        }
    return at == 0;
}

bool sg_fse_build(sg_fse *table, const int16_t *parts, unsigned count, unsigned log) {
    uint16_t next[SG_FSE_SYMBOLS];
    int sum = 0;
    for (unsigned s = 0; s < count; s++) {
        next[s] = (uint16_t)(parts[s] == -1 ? 1 : parts[s]);
        sum += next[s];
    }
    table->log = log;
    if (sum != 1 << log || !spread(table, parts, count))
        return false;
    for (unsigned i = 0; i < 1u << log; i++) {
        unsigned state = next[table->states[i].symbol]++;
        table->states[i].bits = (uint8_t)(log - highest_bit(state));
        table->states[i].base = (uint16_t)((state << table->states[i].bits) - (1u << log));
    }
    return true;
}

void sg_fse_single(sg_fse *table, uint8_t symbol) {
    table->log = 0;
    table->states[0].symbol = symbol;
    table->states[0].bits = 0;
    table->states[0].base = 0;
}

/* Bits from the beginning on. */
typedef struct {
    const unsigned char *from;
    size_t at, end;
} bits_forth;

static bool take(bits_forth *bits, unsigned count, uint32_t *value) {
    if (bits->end - bits->at < count)
        return false;
    *value = bits_at(bits->from, (int64_t)bits->at, count);
    bits->at += count;
    return true;
}

/* A number from 0 to `most`, the smaller ones with a bit less. The last may need a bit that is not there. */
static bool take_part(bits_forth *bits, uint32_t most, uint32_t *value) {
    unsigned count = highest_bit(most) + 1;
    uint32_t low, high, few = (1u << count) - 1 - most;
    if (!take(bits, count - 1, &low))
        return false;
    *value = low;
    if (low < few)
        return true;
    if (!take(bits, 1, &high))
        return false;
    *value = high ? low + (1u << (count - 1)) - few : low;
    return true;
}

static bool take_zeros(bits_forth *bits, int16_t *parts, unsigned *count, unsigned symbols) {
    uint32_t more = 3;
    while (more == 3) {
        if (!take(bits, 2, &more) || *count + more > symbols)
            return false;
        for (uint32_t i = 0; i < more; i++)
            parts[(*count)++] = 0;
    }
    return true;
}

bool sg_fse_read(sg_fse *table, const unsigned char *from, size_t size, unsigned largest_log, unsigned symbols,
                 size_t *used) {
    int16_t parts[SG_FSE_SYMBOLS];
    bits_forth bits = {from, 0, size * 8};
    unsigned count = 0;
    uint32_t log, value;
    if (!take(&bits, 4, &log) || (log += 5) > largest_log)
        return false;
    for (uint32_t left = 1u << log; left > 0;) {
        if (count == symbols || !take_part(&bits, left + 1, &value))
            return false;
        parts[count++] = (int16_t)((int)value - 1);
        left -= value == 0 ? 1 : value - 1;
        if (value == 1 && !take_zeros(&bits, parts, &count, symbols))
            return false;
    }
    *used = (bits.at + 7) / 8;
    return sg_fse_build(table, parts, count, log);
}

/* ---- Huffman ---- */

enum { WEIGHTS = 256, WEIGHT_LOG = 6 };

/* Two states take turns until the bits are used up; what is left in the other one is the last. */
static bool read_packed_weights(const unsigned char *from, size_t size, uint8_t *weights, unsigned *count) {
    sg_fse table;
    sg_bits_back bits;
    size_t used;
    if (!sg_fse_read(&table, from, size, WEIGHT_LOG, SG_HUFFMAN_LARGEST_LOG + 1, &used) || used >= size ||
        !sg_bits_begin(&bits, from + used, size - used))
        return false;
    unsigned states[2] = {sg_fse_first(&table, &bits), 0};
    states[1] = sg_fse_first(&table, &bits);
    for (unsigned turn = 0; bits.at >= 0; turn ^= 1) {
        if (*count > WEIGHTS - 3)
            return false;
        weights[(*count)++] = table.states[states[turn]].symbol;
        states[turn] = sg_fse_next(&table, states[turn], &bits);
        if (bits.at < 0)
            weights[(*count)++] = table.states[states[turn ^ 1]].symbol;
    }
    return *count > 0;
}

static bool read_weights(const unsigned char *from, size_t size, uint8_t *weights, unsigned *count, size_t *used) {
    *count = 0;
    if (size == 0)
        return false;
    unsigned head = from[0];
    *used = 1 + (head < 128 ? head : (head - 127 + 1) / 2);
    if (*used > size)
        return false;
    if (head < 128)
        return read_packed_weights(from + 1, head, weights, count);
    for (*count = 0; *count < head - 127; ++*count)
        weights[*count] = *count % 2 == 0 ? from[1 + *count / 2] >> 4 : from[1 + *count / 2] & 15;
    return true;
}

/* The last weight is not written: it is what fills the sum up to a power of two. */
static bool add_last(uint8_t *weights, unsigned *count, unsigned *log) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < *count; i++) {
        if (weights[i] > SG_HUFFMAN_LARGEST_LOG)
            return false;
        sum += weights[i] > 0 ? 1u << (weights[i] - 1) : 0;
    }
    if (sum == 0 || highest_bit(sum) + 1 > SG_HUFFMAN_LARGEST_LOG)
        return false;
    *log = highest_bit(sum) + 1;
    uint32_t left = (1u << *log) - sum;
    if ((left & (left - 1)) != 0)
        return false;
    weights[(*count)++] = (uint8_t)(highest_bit(left) + 1);
    return true;
}

bool sg_huffman_read(sg_huffman *tree, const unsigned char *from, size_t size, size_t *used) {
    uint8_t weights[WEIGHTS];
    unsigned count, log, at = 0;
    tree->log = 0;
    if (!read_weights(from, size, weights, &count, used) || !add_last(weights, &count, &log))
        return false;
    /* The longest codes are the smallest numbers; among equals the symbols are in order. */
    for (unsigned weight = 1; weight <= log; weight++)
        for (unsigned s = 0; s < count; s++)
            for (unsigned i = 0; weights[s] == weight && i < 1u << (weight - 1); i++, at++) {
                tree->codes[at].symbol = (uint8_t)s;
                tree->codes[at].bits = (uint8_t)(log + 1 - weight);
            }
    tree->log = log;
    return at == 1u << log;
}

bool sg_huffman_decode(const sg_huffman *tree, const unsigned char *from, size_t size, unsigned char *to,
                       size_t count) {
    sg_bits_back bits;
    if (tree->log == 0 || !sg_bits_begin(&bits, from, size))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (bits.at <= 0)
            return false;
        unsigned code = bits_at(from, bits.at - tree->log, tree->log);
        to[i] = tree->codes[code].symbol;
        bits.at -= tree->codes[code].bits;
    }
    return bits.at == 0;
}
