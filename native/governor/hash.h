/* FNV-1a, by which handles, leases and processes are told in files that others write too. Keepers make the same:
 * _fnv of enforcement/keeping.py. */
#ifndef GOVERNOR_HASH_H
#define GOVERNOR_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Never 0, which is a free place. */
static inline uint64_t hash_of(const void *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t at = 0; at < size; at++)
        hash = (hash ^ ((const unsigned char *)bytes)[at]) * UINT64_C(0x100000001b3);
    return hash != 0 ? hash : 1;
}

#endif
