#ifndef SG_ARRAYS_H
#define SG_ARRAYS_H

#include "memory.h"

/* CUDA_ARRAY3D_... of cuda.h */
enum { SG_ARRAY_LAYERED = 1, SG_ARRAY_SURFACE = 2, SG_ARRAY_CUBE = 4, SG_ARRAY_GATHER = 8 };

struct CUarray_st {
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR shape; /* as it was asked for: 0 where a dimension is not there */
    unsigned element_bytes;
    size_t pitch, slice, bytes;
    sg_span *span;
    size_t offset;          /* in the span */
    CUmipmappedArray whole; /* of which it is a level, and which has the span; NULL: of none */
    CUarray next;           /* in the context */
};

/* Bytes of a channel; 0: a format that there is not. */
unsigned sg_channel_bytes(int format);
unsigned char *sg_array_host(CUarray array);
bool sg_array_commit(CUarray array);
/* Layers one above the other, six for each cube; 0: it has none. */
size_t sg_array_layers(const CUDA_ARRAY3D_DESCRIPTOR *shape);
/* Is it a shape that an array can have? */
CUresult sg_array_check(const CUDA_ARRAY3D_DESCRIPTOR *shape);
/* Where its rows lie, from the shape. */
void sg_array_lay_out(CUarray array, CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *shape);
void sg_mipmaps_release_all(CUcontext context);

#endif
