/* The few types of the CUDA driver API that the wrappers look into, and its result codes.
 *
 * NVIDIA's header is not vendored (its licence is not ours to hand on); every layout here is held
 * against it by tests/native/governor where the header is at hand. Handles are plain words.
 */
#ifndef GOVERNOR_CUDA_API_H
#define GOVERNOR_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef void *CUcontext;
typedef void *CUgreenCtx;
typedef void *CUstream;
typedef void *CUevent;
typedef void *CUfunction;
typedef void *CUarray;
typedef void *CUmipmappedArray;
typedef void *CUmemoryPool;
typedef void *CUgraph;
typedef void *CUgraphNode;
typedef void *CUgraphExec;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
};

typedef struct {
    int type; /* CU_MEM_LOCATION_TYPE_… */
    int id;
} CUmemLocation;

enum {
    LOCATION_DEVICE = 1,
    LOCATION_HOST = 2,
    LOCATION_HOST_NUMA = 3,
    LOCATION_HOST_NUMA_CURRENT = 4,
    LOCATION_DEVICE_LOCALITY_DOMAIN = 6, /* id's low byte is the device */
};
enum { ALLOCATION_PINNED = 1 };

typedef struct {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
} CUmemAllocationProp; /* its head */

typedef struct {
    int allocType;
    int handleTypes;
    CUmemLocation location;
    uint64_t rest[9];
} CUmemPoolProps;

typedef struct {
    CUmemPoolProps poolProps;
    const void *accessDescs;
    size_t accessDescCount;
    size_t bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
    char reserved[64];
} CUipcMemHandle;

typedef struct {
    unsigned char reserved[64];
} CUmemPoolPtrExportData;

typedef struct {
    size_t size, alignment;
    unsigned reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

typedef struct {
    size_t Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    unsigned Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct {
    size_t Width, Height;
    int Format;
    unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    unsigned Width, Height;
    int Format;
    unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

enum { ARRAY_LAYERED = 0x1, ARRAY_CUBEMAP = 0x4, ARRAY_SPARSE = 0x40, ARRAY_DEFERRED_MAPPING = 0x80 };

typedef struct {
    int type;
    int reserved0[3];
    CUDA_MEM_ALLOC_NODE_PARAMS alloc; /* one of many */
} CUgraphNodeParams; /* as far as looked into */

typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
} CUlaunchConfig; /* its head */

typedef struct {
    CUfunction function;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void **kernelParams;
} CUDA_LAUNCH_PARAMS;

enum { GRAPH_NODE_CHILD = 4, GRAPH_NODE_MEM_ALLOC = 10 };
enum { GRAPH_MEMORY_RESERVED_CURRENT = 2 };
enum { LIMIT_STACK_SIZE = 0, LIMIT_PRINTF_FIFO_SIZE = 1, LIMIT_MALLOC_HEAP_SIZE = 2 };
enum { ATTRIBUTE_MULTIPROCESSORS = 16, ATTRIBUTE_THREADS_PER_MULTIPROCESSOR = 39 };
enum { POOL_ATTRIBUTE_RESERVED_CURRENT = 5 };

#endif
