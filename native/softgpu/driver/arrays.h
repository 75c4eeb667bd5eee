#ifndef SG_ARRAYS_H
#define SG_ARRAYS_H

#include "memory.h"

struct CUarray_st {
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR shape; /* as it was asked for: 0 where a dimension is not there */
    unsigned element_bytes;
    size_t pitch, slice, bytes;
    sg_span *span;
    CUarray next; /* in the context */
};

/* Bytes of a channel; 0: a format that there is not. */
unsigned sg_channel_bytes(int format);
unsigned char *sg_array_host(CUarray array);
bool sg_array_commit(CUarray array);

#endif
