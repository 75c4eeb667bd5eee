/* Unpacks fat binaries, whole and then damaged in many ways: `unpack_damaged TIMES FILE...`. Built with sanitizers,
 * which see every access outside of what was given. Exit 1 where the whole one does not come out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unpack.h"

enum { ENTRY = 16 };

static unsigned chance(unsigned below) {
    static uint64_t state = 2026;
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(state >> 33) % below;
}

static bool unpack(uint64_t flags, const unsigned char *packed, size_t size, size_t plain_size) {
    unsigned char *from = malloc(size > 0 ? size : 1), *to = malloc(plain_size > 0 ? plain_size : 1);
    memcpy(from, packed, size);
    bool good = (flags & 0x2000 ? sg_unpack_lz4 : sg_unpack_zstd)(from, size, to, plain_size);
    free(from);
    free(to);
    return good;
}

static void damage(unsigned char *packed, size_t *size) {
    for (unsigned i = 1 + chance(4); i > 0 && *size > 0; i--) {
        size_t at = chance((unsigned)(chance(2) ? *size : *size < 64 ? *size : 64));
        if (chance(8) == 0)
            *size = at;
        else
            packed[at] = (unsigned char)chance(256);
    }
}

static int try_file(const char *path, int times) {
    static unsigned char image[1 << 16], copy[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t length = file != NULL ? fread(image, 1, sizeof image, file) : 0;
    uint32_t header, packed_size;
    uint64_t flags, plain_size;
    if (length < ENTRY + 64)
        return 1;
    fclose(file);
    memcpy(&header, image + ENTRY + 4, 4);
    memcpy(&packed_size, image + ENTRY + 16, 4);
    memcpy(&flags, image + ENTRY + 40, 8);
    memcpy(&plain_size, image + ENTRY + 56, 8);
    const unsigned char *packed = image + ENTRY + header;
    if (!unpack(flags, packed, packed_size, plain_size) || unpack(flags, packed, packed_size, plain_size + 1) ||
        unpack(flags, packed, packed_size, plain_size - 1))
        return 1;
    for (int i = 0; i < times; i++) {
        size_t size = packed_size;
        memcpy(copy, packed, size);
        damage(copy, &size);
        (void)unpack(flags, copy, size, plain_size);
    }
    return 0;
}

int main(int count, char **names) {
    for (int i = 2; i < count; i++)
        if (try_file(names[i], atoi(names[1])) != 0)
            return 1;
    return 0;
}
