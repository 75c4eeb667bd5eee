/* Our own declarations of the driver API against NVIDIA's header. Both define the same names, so ours
 * are compiled in one file and NVIDIA's in the other; the program compares what each measured. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef REAL_HEADER
#include <cuda.h>
#define MEASURE real
#else
#include "cuda_graph_types.h"
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
    SIZE(CUDA_ARRAY_DESCRIPTOR),
    FIELD(CUDA_ARRAY_DESCRIPTOR, NumChannels),
    SIZE(CUDA_ARRAY3D_DESCRIPTOR),
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags),
    SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS),
    SIZE(CUDA_RESOURCE_DESC),
    FIELD(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes),
    FIELD(CUDA_RESOURCE_DESC, flags),
    SIZE(CUDA_TEXTURE_DESC),
    FIELD(CUDA_TEXTURE_DESC, borderColor),
    VALUE(CU_AD_FORMAT_HALF),
    VALUE(CU_RESOURCE_TYPE_PITCH2D),
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
    SIZE(CUstreamBatchMemOpParams),
    FIELD(CUstreamBatchMemOpParams, waitValue.value64),
    FIELD(CUstreamBatchMemOpParams, writeValue.flags),
    FIELD(CUstreamBatchMemOpParams, atomicReduction.value),
    SIZE(CUgraphEdgeData),
    FIELD(CUgraphEdgeData, type),
    SIZE(CUDA_KERNEL_NODE_PARAMS_v1),
    SIZE(CUDA_KERNEL_NODE_PARAMS),
    FIELD(CUDA_KERNEL_NODE_PARAMS, kernelParams),
    FIELD(CUDA_KERNEL_NODE_PARAMS, ctx),
    SIZE(CUDA_MEMCPY_NODE_PARAMS),
    FIELD(CUDA_MEMCPY_NODE_PARAMS, copyParams),
    SIZE(CUDA_MEMSET_NODE_PARAMS),
    SIZE(CUDA_MEMSET_NODE_PARAMS_v2),
    FIELD(CUDA_MEMSET_NODE_PARAMS_v2, ctx),
    SIZE(CUDA_HOST_NODE_PARAMS),
    SIZE(CUDA_HOST_NODE_PARAMS_v2),
    FIELD(CUDA_HOST_NODE_PARAMS_v2, ctx),
    SIZE(CUDA_CHILD_GRAPH_NODE_PARAMS),
    SIZE(CUDA_EVENT_RECORD_NODE_PARAMS),
    SIZE(CUDA_EVENT_WAIT_NODE_PARAMS),
    SIZE(CUDA_MEM_ALLOC_NODE_PARAMS),
    FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize),
    FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, dptr),
    SIZE(CUDA_BATCH_MEM_OP_NODE_PARAMS),
    FIELD(CUDA_BATCH_MEM_OP_NODE_PARAMS, flags),
    SIZE(CUgraphNodeParams),
    FIELD(CUgraphNodeParams, kernel),
    FIELD(CUgraphNodeParams, reserved2),
    SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS),
    FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out),
    FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out),
    SIZE(CUgraphExecUpdateResultInfo),
    FIELD(CUgraphExecUpdateResultInfo, errorFromNode),
    VALUE(CU_STREAM_MEM_OP_BARRIER),
    VALUE(CU_STREAM_MEM_OP_WRITE_VALUE_64),
    VALUE(CU_STREAM_WAIT_VALUE_NOR),
    VALUE(CU_STREAM_WAIT_VALUE_FLUSH),
    VALUE(CU_GRAPH_NODE_TYPE_WAIT_EVENT),
    VALUE(CU_GRAPH_NODE_TYPE_CONDITIONAL),
    VALUE(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE),
    VALUE(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
    VALUE(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE),
    VALUE(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH),
    VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED),
    VALUE(CU_STREAM_CAPTURE_MODE_RELAXED),
    VALUE(CU_STREAM_SET_CAPTURE_DEPENDENCIES),
    VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    VALUE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
    VALUE(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE),
    VALUE(CUDA_ERROR_LOSSY_QUERY),
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
