/* Compressed code of fat binaries: LZ4 blocks and Zstandard frames. Whatever `from` holds, nothing is read or
 * written outside of the two; true where exactly `to_size` bytes came out. */
#ifndef SG_UNPACK_H
#define SG_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool sg_unpack_lz4(const unsigned char *from, size_t from_size, unsigned char *to, size_t to_size);
/* One frame, without a dictionary; its checksum is not looked at. */
bool sg_unpack_zstd(const unsigned char *from, size_t from_size, unsigned char *to, size_t to_size);

/* `length` bytes from `distance` before, which may overlap what they become: the end of a match. */
static inline void sg_unpack_match(unsigned char *to, size_t distance, size_t length) {
    for (size_t i = 0; i < length; i++)
        to[i] = to[i - distance];
}

#endif
