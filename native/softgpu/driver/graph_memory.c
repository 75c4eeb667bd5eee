/* Memory of graphs. A node that allocates has its address as soon as it is made, and other nodes name
 * it, so the memory is the graph's from then until the last graph, executable graph and waiting launch
 * that has the node is gone. Between the node that allocates and whatever frees it, it is lent out.
 *
 * Memory that is not lent out is still there: a kernel that uses it too early or too late is not
 * caught. Mapping it anew for each launch would catch that, and cost each launch what mapping costs. */
#include <stdlib.h>

#include "failing.h"
#include "graphs.h"

typedef struct {
    CUdeviceptr address;
    size_t size;
    sg_gpu *gpu;
    unsigned references;
    bool lent;
} region;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static region *regions;
static size_t count, room;

typedef struct {
    uint64_t used, used_high, reserved, reserved_high;
} amounts;

static amounts high[SG_MAXIMUM_DEVICES]; /* only the two marks are kept; the sums are counted */

static region *find(CUdeviceptr address) {
    for (size_t i = 0; i < count; i++)
        if (regions[i].address == address)
            return &regions[i];
    return NULL;
}

/* Under `lock`. */
static amounts count_of(const sg_gpu *gpu) {
    amounts *marks = &high[gpu->ordinal], sum = {0};
    for (size_t i = 0; i < count; i++)
        if (regions[i].gpu == gpu) {
            sum.reserved += regions[i].size;
            sum.used += regions[i].lent ? regions[i].size : 0;
        }
    if (sum.used > marks->used_high)
        marks->used_high = sum.used;
    if (sum.reserved > marks->reserved_high)
        marks->reserved_high = sum.reserved;
    sum.used_high = marks->used_high;
    sum.reserved_high = marks->reserved_high;
    return sum;
}

static bool note(CUcontext context, size_t size, CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    if (count == room) {
        size_t wanted = room ? 2 * room : 16;
        region *grown = realloc(regions, wanted * sizeof *grown);
        if (grown != NULL) {
            regions = grown;
            room = wanted;
        }
    }
    bool noted = count < room;
    if (noted)
        regions[count++] = (region){address, size, context->gpu, 1, false};
    if (noted)
        (void)count_of(context->gpu);
    pthread_mutex_unlock(&lock);
    return noted;
}

CUresult sg_graph_memory_make(CUcontext context, size_t size, CUdeviceptr *address) {
    sg_allocation made, was;
    CUresult result = sg_failing_allocation(context->gpu);
    if (result == CUDA_SUCCESS)
        result = sg_memory_allocate(context, size, SG_MEMORY_DEVICE, &made);
    if (result != CUDA_SUCCESS)
        return result;
    if (!note(context, size, made.address)) {
        (void)sg_memory_release(made.address, 1u << SG_MEMORY_DEVICE, &was);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = made.address;
    return CUDA_SUCCESS;
}

void sg_graph_memory_retain(CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    region *found = find(address);
    if (found != NULL)
        found->references++;
    pthread_mutex_unlock(&lock);
}

void sg_graph_memory_release(CUdeviceptr address) {
    sg_allocation was;
    pthread_mutex_lock(&lock);
    region *found = find(address);
    bool last = found != NULL && --found->references == 0;
    if (last)
        *found = regions[--count];
    pthread_mutex_unlock(&lock);
    if (last) /* it may have gone with its context: then there is nothing to release */
        (void)sg_memory_release(address, 1u << SG_MEMORY_DEVICE, &was);
}

bool sg_graph_memory_owns(CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    bool is = find(address) != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}

bool sg_graph_memory_lent(CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    region *found = find(address);
    bool is = found != NULL && found->lent;
    pthread_mutex_unlock(&lock);
    return is;
}

CUresult sg_graph_memory_lend(CUdeviceptr address, bool lent) {
    pthread_mutex_lock(&lock);
    region *found = find(address);
    bool possible = found != NULL && found->lent != lent;
    if (possible) {
        found->lent = lent;
        (void)count_of(found->gpu);
    }
    pthread_mutex_unlock(&lock);
    return possible ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void sg_graph_memory_forget(void) {
    pthread_mutex_init(&lock, NULL);
}

SG_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || attribute < 0 || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    amounts now = count_of(gpu);
    pthread_mutex_unlock(&lock);
    const uint64_t values[] = {now.used, now.used_high, now.reserved, now.reserved_high};
    *(uint64_t *)value = values[attribute];
    return CUDA_SUCCESS;
}

/* The marks can only be set to zero. */
SG_EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void *value) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || *(uint64_t *)value != 0 ||
        (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        high[device].used_high = 0;
    else
        high[device].reserved_high = 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* What is reserved belongs to graphs that still are: nothing is left to give back. */
SG_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    sg_gpu *gpu;
    return sg_gpu_get(device, &gpu);
}
