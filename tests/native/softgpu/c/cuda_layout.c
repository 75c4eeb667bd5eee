/* Our own declarations of the driver API against NVIDIA's header. Both define the same names, so ours
 * are compiled in one file and NVIDIA's in the other; the program compares what each measured. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef REAL_HEADER
#include <cuda.h>
#define MEASURE real
#else
#include "cuda_types.h"
#define MEASURE ours
#endif

#define SIZE(type) {"sizeof " #type, sizeof(type)}
#define FIELD(type, field) {#type "." #field, offsetof(type, field)}
#define VALUE(name) {#name, (size_t)(name)}

typedef struct {
    const char *name;
    size_t value;
} measure;

const measure MEASURE[] = {
    SIZE(CUdeviceptr),
    SIZE(CUuuid),
    SIZE(CUDA_MEMCPY2D),
    FIELD(CUDA_MEMCPY2D, srcHost),
    FIELD(CUDA_MEMCPY2D, srcPitch),
    FIELD(CUDA_MEMCPY2D, dstDevice),
    FIELD(CUDA_MEMCPY2D, Height),
    SIZE(CUDA_MEMCPY3D),
    FIELD(CUDA_MEMCPY3D, srcHeight),
    FIELD(CUDA_MEMCPY3D, dstMemoryType),
    FIELD(CUDA_MEMCPY3D, dstPitch),
    FIELD(CUDA_MEMCPY3D, Depth),
    SIZE(CUdevprop),
    FIELD(CUdevprop, sharedMemPerBlock),
    FIELD(CUdevprop, textureAlign),
    SIZE(CUlaunchAttribute),
    FIELD(CUlaunchAttribute, value),
    SIZE(CUlaunchConfig),
    FIELD(CUlaunchConfig, hStream),
    FIELD(CUlaunchConfig, attrs),
    FIELD(CUlaunchConfig, numAttrs),
    SIZE(CUmemLocation),
    SIZE(CUmemAccessDesc),
    SIZE(CUmemAllocationProp),
    FIELD(CUmemAllocationProp, requestedHandleTypes),
    FIELD(CUmemAllocationProp, allocFlags),
    SIZE(CUipcMemHandle),
    SIZE(CUipcEventHandle),
    SIZE(CUmemPoolPtrExportData),
    VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
    VALUE(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
    VALUE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED),
    VALUE(CUDA_ERROR_TOO_MANY_PEERS),
    SIZE(CUmemPoolProps),
    FIELD(CUmemPoolProps, location),
    FIELD(CUmemPoolProps, maxSize),
    FIELD(CUmemPoolProps, usage),
    SIZE(CUctxCreateParams),
    FIELD(CUctxCreateParams, cigParams),
    VALUE(CUDA_ERROR_OUT_OF_MEMORY),
    VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU),
    VALUE(CUDA_ERROR_INVALID_PTX),
    VALUE(CUDA_ERROR_ILLEGAL_ADDRESS),
    VALUE(CUDA_ERROR_HARDWARE_STACK_ERROR),
    VALUE(CUDA_ERROR_MISALIGNED_ADDRESS),
    VALUE(CUDA_ERROR_LAUNCH_FAILED),
    VALUE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED),
    VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED),
    VALUE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
    VALUE(CU_MEMORYTYPE_UNIFIED),
    VALUE(CU_LAUNCH_ATTRIBUTE_COOPERATIVE),
    VALUE(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION),
    VALUE(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
    VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES),
    VALUE(CU_JIT_INFO_LOG_BUFFER),
    VALUE(CU_JIT_INPUT_NVVM),
    VALUE(CU_LIMIT_PERSISTING_L2_CACHE_SIZE),
    VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
    VALUE(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE),
    VALUE(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE),
    VALUE(CU_POINTER_ATTRIBUTE_IS_MANAGED),
    VALUE(CU_STREAM_PER_THREAD),
    {NULL, 0},
};

#ifdef REAL_HEADER
extern const measure ours[];

int main(void) {
    int wrong = 0;
    for (int i = 0; real[i].name != NULL; i++)
        if (strcmp(real[i].name, ours[i].name) != 0 || real[i].value != ours[i].value) {
            printf("%s: %zu, in cuda.h %zu\n", real[i].name, ours[i].value, real[i].value);
            wrong++;
        }
    return wrong != 0;
}
#endif
