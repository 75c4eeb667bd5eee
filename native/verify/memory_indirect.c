/* Memory that comes with something else: pools, handles, graphs, contexts, modules, heaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "driver.h"

/* CUmemAllocationProp and the head of CUmemPoolProps: pinned, no handle type, on a device. */
struct placement {
    int type, handle_types, location_type, location;
    unsigned char rest[72];
};

static struct placement on_device(int device)
{
    return (struct placement){1, 0, 1, device, {0}};
}

static struct finding begun(void)
{
    int result = driver_begin(0);
    return judged(0, share.limit[0], result);
}

/* ---- handles of virtual memory ---- */

static size_t granularity(void)
{
    struct placement place = on_device(0);
    size_t step = 0;
    int result = CALL("cuMemGetAllocationGranularity", (size_t *, const void *, int), &step, &place, 0);
    return result == 0 && step > 0 ? step : 2 * MIB;
}

static int one_handle(uint64_t bytes, uint64_t *granted, unsigned long long *handle, uint64_t *size)
{
    struct placement place = on_device(0);
    size_t step = granularity();
    *size = (bytes + step - 1) / step * step;
    int result = CALL("cuMemCreate", (unsigned long long *, size_t, const void *, unsigned long long), handle, *size,
                      &place, 0);
    *granted += result == 0 ? *size : 0;
    return result;
}

static int one_virtual(uint64_t bytes, uint64_t *granted)
{
    unsigned long long handle;
    uint64_t size;
    return one_handle(bytes, granted, &handle, &size);
}

/* Mapped, then its handle is released: the mapping keeps the memory. */
static int one_virtual_mapped(uint64_t bytes, uint64_t *granted)
{
    unsigned long long handle;
    uint64_t size;
    device_pointer address = 0;
    int result = one_handle(bytes, granted, &handle, &size);
    if (result != 0)
        return result;
    if (CALL("cuMemAddressReserve", (device_pointer *, size_t, size_t, device_pointer, unsigned long long), &address,
             size, 0, 0, 0) == 0 &&
        CALL("cuMemMap", (device_pointer, size_t, size_t, unsigned long long, unsigned long long), address, size, 0,
             handle, 0) == 0)
        CALL("cuMemRelease", (unsigned long long), handle);
    return 0;
}

static struct finding filled(allocate *one)
{
    struct finding finding = begun();
    if (finding.result != 0)
        return finding;
    uint64_t granted = fill(one, 0, &finding.result);
    return judged(granted, share.limit[0], finding.result);
}

struct finding try_virtual(void)
{
    return filled(one_virtual);
}

struct finding try_virtual_mapped(void)
{
    return filled(one_virtual_mapped);
}

/* ---- pools and graphs ---- */

static void *own_pool;

static int one_of_pool(uint64_t bytes, uint64_t *granted)
{
    device_pointer pointer;
    int result = CALL("cuMemAllocFromPoolAsync", (device_pointer *, size_t, void *, void *), &pointer, bytes, own_pool,
                      NULL);
    *granted += result == 0 ? bytes : 0;
    return result;
}

struct finding try_pool(void)
{
    struct placement place = on_device(0);
    struct finding finding = begun();
    if (finding.result == 0)
        finding.result = CALL("cuMemPoolCreate", (void **, const void *), &own_pool, &place);
    return finding.result == 0 ? filled(one_of_pool) : finding;
}

static int launched(void *graph)
{
    void *runnable = NULL;
    int result = CALL("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &runnable, graph, 0);
    if (result == 0)
        result = CALL("cuGraphLaunch", (void *, void *), runnable, NULL);
    return result != 0 ? result : CALL("cuCtxSynchronize", (void), );
}

/* CUDA_MEM_ALLOC_NODE_PARAMS_v1 */
struct memory_node {
    struct placement pool;
    const void *access;
    size_t access_count, bytes;
    device_pointer pointer;
};

static int one_graph_node(uint64_t bytes, uint64_t *granted)
{
    struct memory_node wanted = {.pool = on_device(0), .bytes = bytes};
    void *graph = NULL, *node = NULL;
    int result = CALL("cuGraphCreate", (void **, unsigned), &graph, 0);
    if (result == 0)
        result = CALL("cuGraphAddMemAllocNode", (void **, void *, const void *, size_t, void *), &node, graph, NULL, 0,
                      &wanted);
    if (result == 0)
        result = launched(graph);
    *granted += result == 0 ? bytes : 0;
    return result;
}

struct finding try_graph_node(void)
{
    return filled(one_graph_node);
}

static int one_captured(uint64_t bytes, uint64_t *granted)
{
    void *stream = NULL, *graph = NULL;
    device_pointer pointer;
    int result = CALL("cuStreamCreate", (void **, unsigned), &stream, 1);
    if (result == 0)
        result = CALL("cuStreamBeginCapture_v2", (void *, int), stream, 2);
    if (result != 0)
        return result;
    result = CALL("cuMemAllocAsync", (device_pointer *, size_t, void *), &pointer, bytes, stream);
    int ended = CALL("cuStreamEndCapture", (void *, void **), stream, &graph);
    if (result == 0)
        result = ended == 0 ? launched(graph) : ended;
    *granted += result == 0 ? bytes : 0;
    return result;
}

struct finding try_captured(void)
{
    return filled(one_captured);
}

/* ---- what comes with contexts and modules ---- */

struct finding try_contexts(void)
{
    struct finding finding = begun();
    uint64_t each = share.context_bytes[0], granted = each;
    if (each == 0)
        return with_note(finding, UNTRIED, "the card does not tell what a context takes");
    for (unsigned made = 0; finding.result == 0 && made < 4096 && granted <= 2 * share.limit[0]; made++) {
        void *context;
        finding.result = CALL("cuCtxCreate_v2", (void **, unsigned, int), &context, 0, 0);
        granted += finding.result == 0 ? each : 0;
    }
    return judged(granted, share.limit[0], finding.result);
}

enum { MODULE_BYTES = 64 << 20 };

struct finding try_module(void)
{
    struct finding finding = begun();
    char text[256];
    uint64_t granted = 0, bytes = share.limit[0] < 16ull * MODULE_BYTES ? share.limit[0] / 16 : MODULE_BYTES;
    snprintf(text, sizeof text,
             ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 taken[%llu];\n",
             (unsigned long long)bytes);
    while (finding.result == 0 && granted <= 2 * share.limit[0]) {
        void *module;
        device_pointer pointer;
        size_t size;
        finding.result = CALL("cuModuleLoadData", (void **, const void *), &module, text);
        if (finding.result == 0) /* with lazy loading it is taken only now */
            finding.result = CALL("cuModuleGetGlobal_v2", (device_pointer *, size_t *, void *, const char *), &pointer,
                                  &size, module, "taken");
        granted += finding.result == 0 ? bytes : 0;
    }
    return judged(granted, share.limit[0], finding.result);
}

enum { LIMIT_MALLOC_HEAP = 2 };

struct finding try_heap(void)
{
    struct finding finding = begun();
    uint64_t wanted = share.limit[0] + MIB;
    if (finding.result != 0)
        return finding;
    finding.result = CALL("cuCtxSetLimit", (int, size_t), LIMIT_MALLOC_HEAP, wanted);
    size_t given = 0;
    int asked = CALL("cuCtxGetLimit", (size_t *, int), &given, LIMIT_MALLOC_HEAP);
    return judged(finding.result == 0 && asked == 0 ? given : 0, share.limit[0], finding.result);
}

/* ---- bookkeeping led astray ---- */

struct finding try_double_free(void)
{
    struct finding finding = begun();
    device_pointer first = 0;
    if (finding.result != 0)
        return finding;
    if (CALL("cuMemAlloc_v2", (device_pointer *, size_t), &first, share.limit[0] / 4) == 0) {
        for (int round = 0; round < 20; round++)
            CALL("cuMemFree_v2", (device_pointer), first);
        CALL("cuMemFree_v2", (device_pointer), 0x1234567ull << 12);
        CALL("cuMemRelease", (unsigned long long), 0x4321);
    }
    return fill_directly();
}
