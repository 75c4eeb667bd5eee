/* Graphs, as far as their nodes allocate memory (graph_memory.h). */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "account.h"
#include "aliquot_abi.h"
#include "cuda_devices.h"
#include "governor.h"
#include "graph_memory.h"
#include "ledger.h"
#include "pools.h"
#include "surface.h"

/* Whether this process ever made a node that allocates: until then graphs are only passed on. */
static atomic_bool nodes_were_made;

/* ---- nodes ---- */

static CUresult know_pool(CUdevice device, unsigned *index)
{
    uint64_t pool = pools_of_graphs(device);
    CUresult result = pools_device(pool, index) ? CUDA_SUCCESS : pools_remember(pool, device);
    return result == CUDA_SUCCESS && !pools_device(pool, index) ? CUDA_ERROR_NOT_SUPPORTED : result;
}

/* On top of what is reserved: nothing says that the driver takes it from there. */
CUresult graph_memory_node_begins(CUdevice device, uint64_t bytes)
{
    unsigned index;
    CUresult result = know_pool(device, &index);
    return result != CUDA_SUCCESS ? result : account_charge(index, bytes);
}

/* The bytes are the executable graph's to answer for; until there is one, what the driver has reserved. */
void graph_memory_node_ended(CUdevice device, uint64_t bytes)
{
    atomic_store(&nodes_were_made, true);
    pools_absorb(pools_of_graphs(device), bytes);
}

static CUresult begin_node(const CUDA_MEM_ALLOC_NODE_PARAMS *asked)
{
    CUmemLocation where = asked->poolProps.location;
    if (where.type != LOCATION_DEVICE || devices_share_index(where.id) < 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return graph_memory_node_begins(where.id, asked->bytesize);
}

#define WITH_NODE(asked, call)                                                                     \
    do {                                                                                           \
        CUresult result = begin_node(asked);                                                       \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        CUdevice device = (asked)->poolProps.location.id;                                          \
        uint64_t bytes = (asked)->bytesize;                                                        \
        result = (call);                                                                           \
        graph_memory_node_ended(device, bytes);                                                    \
        return result;                                                                             \
    } while (0)

EXPORTED CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                         CUDA_MEM_ALLOC_NODE_PARAMS *asked)
{
    typedef CUresult add(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *);
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (asked == NULL)
        return REAL(cuGraphAddMemAllocNode, add *)(node, graph, after, count, asked);
    WITH_NODE(asked, REAL(cuGraphAddMemAllocNode, add *)(node, graph, after, count, asked));
}

static bool allocates(const CUgraphNodeParams *asked)
{
    return asked != NULL && asked->type == GRAPH_NODE_MEM_ALLOC;
}

EXPORTED CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                 CUgraphNodeParams *asked)
{
    typedef CUresult add(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *);
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    add *real = REAL(cuGraphAddNode, add *);
    if (!allocates(asked))
        return real(node, graph, after, count, asked);
    WITH_NODE(&asked->alloc, real(node, graph, after, count, asked));
}

#define ADD_NODE(name)                                                                             \
    EXPORTED CUresult name(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, \
                           size_t count, CUgraphNodeParams *asked)                                 \
    {                                                                                              \
        typedef CUresult add(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, CUgraphNodeParams *); \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        add *real = REAL(name, add *);                                                             \
        if (!allocates(asked))                                                                     \
            return real(node, graph, after, edges, count, asked);                                  \
        WITH_NODE(&asked->alloc, real(node, graph, after, edges, count, asked));                   \
    }

ADD_NODE(cuGraphAddNode_v2)
ADD_NODE(cuGraphAddNode_v3)

/* ---- executable graphs ---- */

/* By device of the share. */
struct needs {
    uint64_t bytes[ALIQUOT_DEVICES_MAX];
    CUdevice device[ALIQUOT_DEVICES_MAX];
};

static CUresult add_needs(CUgraph graph, struct needs *needs, int depth);

static CUresult add_node_s_needs(CUgraphNode node, struct needs *needs, int depth)
{
    CUDA_MEM_ALLOC_NODE_PARAMS asked;
    CUgraph child;
    int type = 0;
    CUresult result = REAL(cuGraphNodeGetType, CUresult (*)(CUgraphNode, int *))(node, &type);
    if (result != CUDA_SUCCESS)
        return result;
    if (type == GRAPH_NODE_CHILD) {
        result = REAL(cuGraphChildGraphNodeGetGraph, CUresult (*)(CUgraphNode, CUgraph *))(node, &child);
        return result != CUDA_SUCCESS ? result : add_needs(child, needs, depth + 1);
    }
    if (type != GRAPH_NODE_MEM_ALLOC)
        return CUDA_SUCCESS;
    result = REAL(cuGraphMemAllocNodeGetParams, CUresult (*)(CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *))(node, &asked);
    int index = result == CUDA_SUCCESS ? devices_share_index(asked.poolProps.location.id) : -1;
    if (index < 0)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_SUPPORTED;
    uint64_t *bytes = &needs->bytes[index];
    *bytes = asked.bytesize > UINT64_MAX - *bytes ? UINT64_MAX : *bytes + asked.bytesize;
    needs->device[index] = asked.poolProps.location.id;
    return CUDA_SUCCESS;
}

static CUresult add_needs(CUgraph graph, struct needs *needs, int depth)
{
    typedef CUresult get_nodes(CUgraph, CUgraphNode *, size_t *);
    enum { DEEPEST = 64 };
    size_t count = 0;
    CUresult result = REAL(cuGraphGetNodes, get_nodes *)(graph, NULL, &count);
    if (result != CUDA_SUCCESS || count == 0)
        return result;
    size_t bytes = count * sizeof(CUgraphNode);
    CUgraphNode *nodes = depth >= DEEPEST ? MAP_FAILED
                                          : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = REAL(cuGraphGetNodes, get_nodes *)(graph, nodes, &count);
    for (size_t at = 0; at < count && at < bytes / sizeof *nodes && result == CUDA_SUCCESS; at++)
        result = add_node_s_needs(nodes[at], needs, depth);
    munmap(nodes, bytes);
    return result;
}

static void give_back(const struct needs *needs, unsigned below)
{
    for (unsigned index = 0; index < below; index++)
        if (needs->bytes[index] != 0)
            pools_freed(pools_of_graphs(needs->device[index]), needs->bytes[index]);
}

/* A graph that cannot be looked into is for the driver to refuse. */
static CUresult begin_executable(CUgraph graph, struct needs *needs)
{
    *needs = (struct needs){0};
    if (!atomic_load(&nodes_were_made))
        return CUDA_SUCCESS;
    CUresult result = graph != NULL ? add_needs(graph, needs, 0) : CUDA_SUCCESS;
    for (unsigned index = 0; index < ALIQUOT_DEVICES_MAX && result == CUDA_SUCCESS; index++) {
        if (needs->bytes[index] == 0)
            continue;
        unsigned of;
        result = book_has_room() ? know_pool(needs->device[index], &of) : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS)
            result = pools_make_room(pools_of_graphs(needs->device[index]), needs->bytes[index], &of);
        if (result != CUDA_SUCCESS)
            give_back(needs, index);
    }
    return result;
}

/* One entry for each device: an address has room above for its number. */
static uint64_t key_of(CUgraphExec executable, unsigned index)
{
    return (uint64_t)executable ^ (uint64_t)index << 58;
}

static void end_executable(CUresult result, CUgraphExec executable, const struct needs *needs)
{
    if (result != CUDA_SUCCESS) {
        give_back(needs, ALIQUOT_DEVICES_MAX);
        return;
    }
    for (unsigned index = 0; index < ALIQUOT_DEVICES_MAX; index++) {
        struct entry entry = {.kind = KIND_GRAPH, .key = key_of(executable, index), .bytes = needs->bytes[index],
                              .device = (uint8_t)index, .references = 1};
        if (entry.bytes == 0)
            continue;
        entry.pool = pools_of_graphs(needs->device[index]);
        book_lock();
        book_put(&entry);
        book_unlock();
    }
    pools_settle();
}

#define INSTANTIATE(name, parameters, arguments)                                                   \
    EXPORTED CUresult name parameters                                                              \
    {                                                                                              \
        struct needs needs;                                                                        \
        CUgraphExec got = NULL, *place = out != NULL ? &got : NULL;                                \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        CUresult result = begin_executable(graph, &needs);                                         \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        result = REAL(name, CUresult(*) parameters) arguments;                                     \
        end_executable(result, got, &needs);                                                       \
        if (result == CUDA_SUCCESS && out != NULL)                                                 \
            *out = got;                                                                            \
        return result;                                                                             \
    }

INSTANTIATE(cuGraphInstantiate, (CUgraphExec *out, CUgraph graph, CUgraphNode *wrong, char *log, size_t size),
            (place, graph, wrong, log, size))
INSTANTIATE(cuGraphInstantiate_v2, (CUgraphExec *out, CUgraph graph, CUgraphNode *wrong, char *log, size_t size),
            (place, graph, wrong, log, size))
INSTANTIATE(cuGraphInstantiateWithFlags, (CUgraphExec *out, CUgraph graph, unsigned long long flags),
            (place, graph, flags))
INSTANTIATE(cuGraphInstantiateWithParams, (CUgraphExec *out, CUgraph graph, void *asked), (place, graph, asked))
INSTANTIATE(cuGraphInstantiateWithParams_ptsz, (CUgraphExec *out, CUgraph graph, void *asked), (place, graph, asked))

EXPORTED CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    struct entry entries[ALIQUOT_DEVICES_MAX];
    bool known[ALIQUOT_DEVICES_MAX] = {false};
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    bool any = atomic_load(&nodes_were_made);
    for (unsigned index = 0; any && index < ALIQUOT_DEVICES_MAX; index++)
        known[index] = account_take(KIND_GRAPH, key_of(executable, index), &entries[index]);
    CUresult result = REAL(cuGraphExecDestroy, CUresult (*)(CUgraphExec))(executable);
    for (unsigned index = 0; any && index < ALIQUOT_DEVICES_MAX; index++)
        account_gave(known[index], &entries[index], result);
    return result;
}

/* What goes with a graph, or is handed back by name, the driver no longer has reserved. */
EXPORTED CUresult cuGraphDestroy(CUgraph graph)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuGraphDestroy, CUresult (*)(CUgraph))(graph);
    if (atomic_load(&nodes_were_made))
        pools_settle();
    return result;
}

EXPORTED CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuDeviceGraphMemTrim, CUresult (*)(CUdevice))(device);
    if (atomic_load(&nodes_were_made))
        pools_settle();
    return result;
}
