#ifndef SG_POOLS_H
#define SG_POOLS_H

#include "driver.h"

struct CUmemPoolHandle_st {
    sg_gpu *gpu;
    bool is_default;
    bool shareable;
    bool imported; /* another process's: nothing is allocated from it here */
    uint32_t number; /* by which processes know a shared pool; 0 until it is exported */
    uint64_t release_threshold;
    int reuse[4];
    _Atomic uint64_t high;
};

CUmemoryPool sg_pool_make(sg_gpu *gpu, bool is_default);

#endif
