/* cuDeviceGetAttribute. An attribute not listed is a feature that this device does not have: 0. */
#include "driver.h"

typedef struct {
    int attribute;
    int value;
} fixed_attribute;

/* The same for every profile. Numbers are those of cuda.h's CUdevice_attribute. */
static const fixed_attribute fixed[] = {
    {1, 1024},       /* MAX_THREADS_PER_BLOCK */
    {2, 1024},       /* MAX_BLOCK_DIM_X */
    {3, 1024},       /* MAX_BLOCK_DIM_Y */
    {4, 64},         /* MAX_BLOCK_DIM_Z */
    {5, INT32_MAX},  /* MAX_GRID_DIM_X */
    {6, 65535},      /* MAX_GRID_DIM_Y */
    {7, 65535},      /* MAX_GRID_DIM_Z */
    {9, 65536},      /* TOTAL_CONSTANT_MEMORY */
    {10, 32},        /* WARP_SIZE */
    {11, INT32_MAX}, /* MAX_PITCH */
    {14, 512},       /* TEXTURE_ALIGNMENT */
    {15, 1},         /* GPU_OVERLAP */
    {19, 1},         /* CAN_MAP_HOST_MEMORY */
    {21, 131072},    /* MAXIMUM_TEXTURE1D_WIDTH: as arrays.c has it, to 29, 42 and 43 */
    {22, 131072},    /* MAXIMUM_TEXTURE2D_WIDTH */
    {23, 65536},     /* MAXIMUM_TEXTURE2D_HEIGHT */
    {24, 16384},     /* MAXIMUM_TEXTURE3D_WIDTH */
    {25, 16384},     /* MAXIMUM_TEXTURE3D_HEIGHT */
    {26, 16384},     /* MAXIMUM_TEXTURE3D_DEPTH */
    {27, 32768},     /* MAXIMUM_TEXTURE2D_LAYERED_WIDTH */
    {28, 32768},     /* MAXIMUM_TEXTURE2D_LAYERED_HEIGHT */
    {29, 2048},      /* MAXIMUM_TEXTURE2D_LAYERED_LAYERS */
    {30, 512},       /* SURFACE_ALIGNMENT */
    {31, 1},         /* CONCURRENT_KERNELS */
    {40, 1},         /* ASYNC_ENGINE_COUNT */
    {41, 1},         /* UNIFIED_ADDRESSING */
    {42, 32768},     /* MAXIMUM_TEXTURE1D_LAYERED_WIDTH */
    {43, 2048},      /* MAXIMUM_TEXTURE1D_LAYERED_LAYERS */
    {51, 32},        /* TEXTURE_PITCH_ALIGNMENT */
    {78, 1},         /* STREAM_PRIORITIES_SUPPORTED */
    {79, 1},         /* GLOBAL_L1_CACHE_SUPPORTED */
    {80, 1},         /* LOCAL_L1_CACHE_SUPPORTED */
    {83, 1},         /* MANAGED_MEMORY */
    {87, 32},        /* SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO */
    {90, 1},         /* COMPUTE_PREEMPTION_SUPPORTED */
    {91, 1},         /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
    {92, 1},         /* CAN_USE_STREAM_MEM_OPS_V1 */
    {93, 1},         /* CAN_USE_64_BIT_STREAM_MEM_OPS_V1 */
    {94, 1},         /* CAN_USE_STREAM_WAIT_VALUE_NOR_V1 */
    {95, 1},         /* COOPERATIVE_LAUNCH */
    {99, 1},         /* HOST_REGISTER_SUPPORTED */
    {111, 0},        /* RESERVED_SHARED_MEMORY_PER_BLOCK */
    {102, 1},        /* VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    {103, 1},        /* HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
    {115, 1},        /* MEMORY_POOLS_SUPPORTED */
    {119, 1},        /* MEMPOOL_SUPPORTED_HANDLE_TYPES: by file descriptor */
    {122, 1},        /* CAN_USE_64_BIT_STREAM_MEM_OPS */
    {123, 1},        /* CAN_USE_STREAM_WAIT_VALUE_NOR */
    {125, 1},        /* IPC_EVENT_SUPPORTED */
    {126, 1},        /* MEM_SYNC_DOMAIN_COUNT */
    {130, 0},        /* NUMA_CONFIG: none */
    {131, -1},       /* NUMA_ID */
    {134, -1},       /* HOST_NUMA_ID */
};

enum { LAST_ATTRIBUTE = 161 };

static bool of_profile(const sg_facts *facts, int attribute, int *value) {
    switch (attribute) {
    case 8: *value = facts->shared_per_block_bytes; return true;
    case 12: *value = facts->registers_per_block; return true;
    case 13: *value = facts->clock_khz; return true;
    case 17: *value = facts->kernel_timeout_ms > 0; return true; /* KERNEL_EXEC_TIMEOUT */
    case 16: *value = facts->multiprocessors; return true;
    case 32: *value = facts->ecc == 1; return true; /* ECC_ENABLED */
    case 33: *value = (int)facts->pci_bus; return true;
    case 34: *value = (int)facts->pci_device; return true;
    case 36: *value = facts->memory_clock_khz; return true;
    case 37: *value = facts->bus_width_bits; return true;
    case 38: *value = facts->l2_bytes; return true;
    case 39: *value = facts->threads_per_multiprocessor; return true;
    case 50: *value = (int)facts->pci_domain; return true;
    case 75: *value = facts->compute_major; return true;
    case 76: *value = facts->compute_minor; return true;
    case 81: *value = facts->shared_per_multiprocessor_bytes; return true;
    case 82: *value = facts->registers_per_block; return true; /* per multiprocessor: equal on 7.x to 9.x */
    case 97: *value = facts->shared_per_block_optin_bytes; return true;
    case 106: *value = facts->blocks_per_multiprocessor; return true;
    default: return false;
    }
}

SG_EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || attribute < 1 || attribute > LAST_ATTRIBUTE)
        return CUDA_ERROR_INVALID_VALUE;
    if (of_profile(&gpu->device->facts, attribute, value))
        return CUDA_SUCCESS;
    *value = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i].attribute == attribute)
            *value = fixed[i].value;
    return CUDA_SUCCESS;
}
