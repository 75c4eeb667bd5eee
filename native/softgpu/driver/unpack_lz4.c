/* An LZ4 block, by its public description ("LZ4 Block Format Description"): runs of literals and copies of
 * earlier output. The last sequence is literals alone. */
#include <string.h>

#include "unpack.h"

enum { LEAST_MATCH = 4, MORE_FOLLOWS = 15, MORE_YET = 255 };

/* A length of four bits, and the bytes that prolong it. */
static bool prolong(const unsigned char *from, size_t size, size_t *at, size_t *length) {
    unsigned char more = MORE_YET;
    if (*length != MORE_FOLLOWS)
        return true;
    while (more == MORE_YET) {
        if (*at == size)
            return false;
        more = from[(*at)++];
        *length += more;
    }
    return true;
}

bool sg_unpack_lz4(const unsigned char *from, size_t size, unsigned char *to, size_t to_size) {
    size_t at = 0, done = 0;
    while (at < size) {
        size_t literals = from[at] >> 4, match = from[at] & 15;
        at++;
        if (!prolong(from, size, &at, &literals) || literals > size - at || literals > to_size - done)
            return false;
        memcpy(to + done, from + at, literals);
        at += literals;
        done += literals;
        if (at == size)
            break;
        if (size - at < 2)
            return false;
        size_t distance = from[at] | (size_t)from[at + 1] << 8;
        at += 2;
        if (!prolong(from, size, &at, &match) || distance == 0 || distance > done ||
            match + LEAST_MATCH > to_size - done)
            return false;
        sg_unpack_match(to + done, distance, match + LEAST_MATCH);
        done += match + LEAST_MATCH;
    }
    return done == to_size;
}
