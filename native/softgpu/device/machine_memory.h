#ifndef SG_MACHINE_MEMORY_H
#define SG_MACHINE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t total, available; /* of the machine, in bytes */
    uint64_t limit;            /* the smallest of our control groups; UINT64_MAX none */
    bool exhausted;            /* one of them is near its limit already */
} sg_machine_memory;

bool sg_machine_memory_read(sg_machine_memory *memory);

#endif
