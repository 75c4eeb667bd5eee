#ifndef SG_MACHINE_MEMORY_H
#define SG_MACHINE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t total, available; /* of the machine, in bytes */
    uint64_t limit;            /* the smallest of our control groups; UINT64_MAX none */
    bool exhausted;            /* one of them is near its limit already */
} sg_machine_memory;

/* `root` comes before every path: empty, or a folder that looks like / in a test. False: nothing is known. */
bool sg_machine_memory_read(const char *root, sg_machine_memory *memory);

#endif
