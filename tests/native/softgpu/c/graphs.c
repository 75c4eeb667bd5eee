/* Graphs: every kind of node, their shape, copies of them, and what may be changed after instantiation.
 * Says nothing when all is well. */
#include "driver_program.h"

CUresult cuGraphClone(CUgraph *, CUgraph);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphAddMemsetNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS *,
                              CUcontext);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode, CUDA_MEMSET_NODE_PARAMS *);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS *, CUcontext);
CUresult cuGraphAddMemcpyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *, CUcontext);
CUresult cuGraphAddHostNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_HOST_NODE_PARAMS *);
CUresult cuGraphHostNodeGetParams(CUgraphNode, CUDA_HOST_NODE_PARAMS *);
CUresult cuGraphAddEmptyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t);
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph *);
CUresult cuGraphAddEventRecordNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent);
CUresult cuGraphAddEventWaitNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent);
CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *);
CUresult cuGraphAddMemFreeNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *);
CUresult cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
                           CUgraphNodeParams *);
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);
CUresult cuGraphRemoveDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);
CUresult cuGraphGetRootNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphGetEdges_v2(CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *);
CUresult cuGraphNodeGetDependencies(CUgraphNode, CUgraphNode *, size_t *);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode, CUgraphNode *, size_t *);
CUresult cuGraphNodeGetType(CUgraphNode, CUgraphNodeType *);
CUresult cuGraphNodeFindInClone(CUgraphNode *, CUgraphNode, CUgraph);
CUresult cuGraphDestroyNode(CUgraphNode);
CUresult cuGraphInstantiateWithParams(CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *);
CUresult cuGraphExecNodeSetParams(CUgraphExec, CUgraphNode, CUgraphNodeParams *);
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec, CUgraphNode, CUgraph);
CUresult cuGraphNodeSetEnabled(CUgraphExec, CUgraphNode, unsigned);
CUresult cuGraphNodeGetEnabled(CUgraphExec, CUgraphNode, unsigned *);
CUresult cuGraphUpload(CUgraphExec, CUstream);
CUresult cuDeviceGetGraphMemAttribute(CUdevice, int, void *);
CUresult cuUserObjectCreate(CUuserObject *, void *, CUhostFn, unsigned, unsigned);
CUresult cuUserObjectRelease(CUuserObject, unsigned);
CUresult cuGraphRetainUserObject(CUgraph, CUuserObject, unsigned, unsigned);

static CUcontext context;
static CUfunction add, twice;
static CUdeviceptr word;
static unsigned *pinned;

static unsigned value(void) {
    unsigned got = 0;
    DO(cuMemcpyDtoH_v2(&got, word, sizeof got));
    return got;
}

static CUgraphNode set_to(CUgraph graph, CUgraphNode after, unsigned what) {
    CUDA_MEMSET_NODE_PARAMS fill = {word, 0, what, 4, 1, 1};
    CUgraphNode node;
    DO(cuGraphAddMemsetNode(&node, graph, &after, after != NULL, &fill, context));
    return node;
}

static CUDA_KERNEL_NODE_PARAMS adding(unsigned *amount, void **parameters) {
    parameters[0] = &word;
    parameters[1] = amount;
    return (CUDA_KERNEL_NODE_PARAMS){.func = add, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                     .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters};
}

static CUgraphNode adds(CUgraph graph, CUgraphNode after, unsigned amount) {
    void *parameters[2];
    CUDA_KERNEL_NODE_PARAMS kernel = adding(&amount, parameters);
    CUgraphNode node;
    DO(cuGraphAddKernelNode_v2(&node, graph, &after, after != NULL, &kernel));
    return node;
}

static CUgraphNode doubles(CUgraph graph, CUgraphNode after) {
    void *parameters[] = {&word};
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = twice, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                      .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters};
    CUgraphNode node;
    DO(cuGraphAddKernelNode_v2(&node, graph, &after, after != NULL, &kernel));
    return node;
}

static CUgraphExec run(CUgraph graph) {
    CUgraphExec exec;
    DO(cuGraphInstantiateWithFlags(&exec, graph, 0));
    DO(cuGraphUpload(exec, NULL));
    DO(cuGraphLaunch(exec, NULL));
    DO(cuCtxSynchronize());
    return exec;
}

static void note(void *seen) {
    *(unsigned *)seen = *pinned;
}

static void nodes_run_in_the_order_of_their_edges(void) {
    CUgraph graph, child, inside;
    CUgraphNode set, sum, product, copy, host, empty, nested;
    CUevent event;
    unsigned seen = 0;
    CUDA_HOST_NODE_PARAMS call = {note, &seen};
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = word, .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = pinned, .WidthInBytes = 4, .Height = 1, .Depth = 1};
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphCreate(&child, 0));
    DO(cuEventCreate(&event, 0));
    adds(child, NULL, 100);
    /* Added against the order in which they run. */
    DO(cuGraphAddHostNode(&host, graph, NULL, 0, &call));
    DO(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &box, context));
    product = doubles(graph, NULL);
    sum = adds(graph, NULL, 3);
    set = set_to(graph, NULL, 4);
    DO(cuGraphAddEmptyNode(&empty, graph, &sum, 1));
    DO(cuGraphAddChildGraphNode(&nested, graph, &product, 1, child));
    CUgraphNode from[] = {set, empty, nested, copy}, to[] = {sum, product, copy, host};
    DO(cuGraphAddDependencies(graph, from, to, 4));
    CUgraphNode record, wait;
    DO(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, event));
    DO(cuGraphAddEventRecordNode(&record, graph, &host, 1, event));
    CUgraphExec exec = run(graph);
    CHECK(seen == (4 + 3) * 2 + 100);
    DO(cuEventQuery(event));
    DO(cuGraphChildGraphNodeGetGraph(nested, &inside));
    CHECK(inside != child);
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inside));
    DO(cuGraphDestroy(graph)); /* the executable graph needs it no more */
    DO(cuGraphDestroy(child));
    DO(cuEventDestroy_v2(event));
    DO(cuMemsetD32_v2(word, 0, 1));
    DO(cuGraphLaunch(exec, NULL));
    DO(cuCtxSynchronize());
    CHECK(seen == 114);
    DO(cuGraphExecDestroy(exec));
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, NULL));
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
}

static void a_graph_tells_its_shape(void) {
    CUgraph graph, clone;
    CUgraphNode nodes[8], to[8], found;
    CUgraphEdgeData data[8];
    CUgraphNodeType type;
    size_t count;
    DO(cuGraphCreate(&graph, 0));
    CUgraphNode a = set_to(graph, NULL, 1), b = adds(graph, a, 2), c = adds(graph, a, 3);
    CUgraphNode both[] = {b, c}, d;
    DO(cuGraphAddEmptyNode(&d, graph, both, 2));
    DO(cuGraphGetNodes(graph, NULL, &count));
    CHECK(count == 4);
    DO(cuGraphGetEdges(graph, NULL, NULL, &count));
    CHECK(count == 4);
    count = 8;
    DO(cuGraphGetEdges_v2(graph, nodes, to, data, &count));
    CHECK(count == 4 && nodes[0] == a && to[0] == b && nodes[3] == c && to[3] == d && to[4] == NULL);
    count = 8;
    DO(cuGraphGetRootNodes(graph, nodes, &count));
    CHECK(count == 1 && nodes[0] == a);
    count = 1;
    DO(cuGraphNodeGetDependencies(d, nodes, &count));
    CHECK(count == 1 && nodes[0] == b);
    DO(cuGraphNodeGetDependentNodes(a, NULL, &count));
    CHECK(count == 2);
    DO(cuGraphNodeGetType(b, &type));
    CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &a, &b, 1)); /* there already */
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &a, &a, 1));
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, &a, &d, 1));
    DO(cuGraphClone(&clone, graph));
    DO(cuGraphNodeFindInClone(&found, d, clone));
    DO(cuGraphNodeGetDependencies(found, NULL, &count));
    CHECK(found != d && count == 2);
    DO(cuGraphDestroyNode(b));
    DO(cuGraphGetEdges(graph, NULL, NULL, &count));
    CHECK(count == 2);
    DO(cuGraphGetEdges(clone, NULL, NULL, &count));
    CHECK(count == 4);
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(b, &type));
    CUgraphNodeParams edge_node = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    CUgraphEdgeData programmatic = {.from_port = 1, .type = 1};
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&found, graph, &c, &programmatic, 1, &edge_node));
    unsigned amount = 5;
    void *parameters[2];
    edge_node = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = adding(&amount, parameters)};
    DO(cuGraphAddNode_v2(&found, graph, &c, &programmatic, 1, &edge_node));
    count = 8;
    MUST(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(graph, nodes, to, &count));
    edge_node = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    MUST(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode_v2(&found, graph, NULL, NULL, 0, &edge_node));
    DO(cuGraphDestroy(graph));
    DO(cuGraphDestroy(clone));
}

static void a_cycle_is_found_when_it_is_instantiated(void) {
    CUgraph graph;
    CUgraphExec exec;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
    DO(cuGraphCreate(&graph, 0));
    CUgraphNode a = set_to(graph, NULL, 1), b = adds(graph, a, 2);
    DO(cuGraphAddDependencies(graph, &b, &a, 1));
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &parameters));
    CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE && parameters.hErrNode_out == a);
    DO(cuGraphRemoveDependencies(graph, &b, &a, 1));
    DO(cuGraphInstantiateWithParams(&exec, graph, &parameters));
    CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
}

static void parameters_change_in_the_graph_or_in_what_was_made_of_it(void) {
    CUgraph graph, other, larger;
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS read;
    unsigned amount = 50, enabled = 9;
    void *parameters[2];
    DO(cuGraphCreate(&graph, 0));
    CUgraphNode set = set_to(graph, NULL, 1), sum = adds(graph, set, 2);
    DO(cuGraphKernelNodeGetParams_v2(sum, &read));
    CHECK(read.func == add && *(unsigned *)read.kernelParams[1] == 2 && read.blockDimX == 1);
    CUgraphExec exec = run(graph);
    CHECK(value() == 3);
    CUDA_KERNEL_NODE_PARAMS changed = adding(&amount, parameters);
    DO(cuGraphExecKernelNodeSetParams_v2(exec, sum, &changed));
    DO(cuGraphLaunch(exec, NULL));
    CHECK(value() == 51);
    DO(cuGraphNodeSetEnabled(exec, sum, 0));
    DO(cuGraphNodeGetEnabled(exec, sum, &enabled));
    DO(cuGraphLaunch(exec, NULL));
    CHECK(value() == 1 && enabled == 0);
    DO(cuGraphNodeSetEnabled(exec, sum, 1));
    CUDA_MEMSET_NODE_PARAMS fill = {word, 0, 7, 4, 1, 1};
    DO(cuGraphExecMemsetNodeSetParams(exec, set, &fill, context));
    DO(cuGraphLaunch(exec, NULL));
    CHECK(value() == 57);
    CHECK(cuGraphMemsetNodeGetParams(set, &fill) == CUDA_SUCCESS && fill.value == 1); /* the graph is as it was */
    DO(cuGraphCreate(&other, 0));
    CUgraphNode other_set = set_to(other, NULL, 1000);
    adds(other, other_set, 1);
    DO(cuGraphExecUpdate_v2(exec, other, &info));
    DO(cuGraphLaunch(exec, NULL));
    CHECK(value() == 1001 && info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
    DO(cuGraphClone(&larger, other));
    CUgraphNode extra = set_to(larger, NULL, 0);
    MUST(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, larger, &info));
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    DO(cuGraphDestroyNode(extra));
    DO(cuGraphDestroyNode(other_set));
    extra = doubles(other, NULL);
    MUST(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, other, &info));
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode != NULL);
    DO(cuGraphLaunch(exec, NULL));
    CHECK(value() == 1001); /* what failed changed nothing */
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    DO(cuGraphDestroy(other));
    DO(cuGraphDestroy(larger));
}

static void a_launch_that_waits_keeps_what_it_was_launched_with(void) {
    gate held = GATE_CLOSED;
    CUgraph graph;
    CUgraphExec exec;
    CUstream stream;
    unsigned amount = 500;
    void *parameters[2];
    DO(cuStreamCreate(&stream, 1));
    DO(cuGraphCreate(&graph, 0));
    CUgraphNode sum = adds(graph, NULL, 1);
    DO(cuGraphInstantiateWithFlags(&exec, graph, 0));
    DO(cuMemsetD32_v2(word, 0, 1));
    DO(cuLaunchHostFunc(stream, pass, &held));
    DO(cuGraphLaunch(exec, stream));
    CUDA_KERNEL_NODE_PARAMS changed = adding(&amount, parameters);
    DO(cuGraphExecKernelNodeSetParams_v2(exec, sum, &changed));
    DO(cuGraphLaunch(exec, CU_STREAM_PER_THREAD)); /* and never beside the first */
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    open_gate(&held);
    DO(cuCtxSynchronize());
    CHECK(value() == 501);
    DO(cuStreamDestroy_v2(stream));
}

static void memory_of_a_graph_is_lent_out(void) {
    CUgraph graph, clone;
    CUgraphNode allocated, filled, copied, freed;
    CUgraphExec exec, reusing;
    uint64_t used, reserved;
    size_t before, after, total;
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {.bytesize = 4 << 20};
    memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0};
    DO(cuMemGetInfo_v2(&before, &total));
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphAddMemAllocNode(&allocated, graph, NULL, 0, &memory));
    CHECK(memory.dptr != 0);
    CUDA_MEMSET_NODE_PARAMS fill = {memory.dptr, 0, 31, 4, 1 << 20, 1};
    DO(cuGraphAddMemsetNode(&filled, graph, &allocated, 1, &fill, context));
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory.dptr + (4 << 20) - 4,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = word, .WidthInBytes = 4, .Height = 1,
                         .Depth = 1};
    DO(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &box, context));
    DO(cuGraphInstantiateWithFlags(&exec, graph, 0));
    DO(cuGraphLaunch(exec, NULL));
    CHECK(value() == 31);
    DO(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    CHECK(used == 4 << 20);
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, NULL)); /* nobody freed it */
    DO(cuGraphInstantiateWithFlags(&reusing, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    DO(cuGraphLaunch(reusing, NULL));
    DO(cuMemFreeAsync(memory.dptr, NULL));
    DO(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    CHECK(used == 0);
    DO(cuGraphLaunch(exec, NULL));
    DO(cuMemFree_v2(memory.dptr));
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphExecDestroy(reusing));
    DO(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, memory.dptr));
    MUST(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
    exec = run(graph);
    DO(cuGraphLaunch(exec, NULL)); /* it frees itself */
    DO(cuGraphDestroy(graph));
    DO(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
    CHECK(reserved == 4 << 20);
    DO(cuGraphExecDestroy(exec));
    DO(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
    CHECK(reserved == 0);
    DO(cuMemGetInfo_v2(&after, &total));
    CHECK(before == after);
}

static void a_branch_may_wait_for_what_another_writes(void) {
    CUgraph graph;
    CUgraphNode node;
    CUstreamBatchMemOpParams wait = {.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, word, {.value = 77},
                                                   CU_STREAM_WAIT_VALUE_EQ, 0}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {context, 1, &wait, 0};
    DO(cuMemsetD32_v2(word, 0, 1));
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
    adds(graph, node, 1);
    set_to(graph, NULL, 77);
    DO(cuGraphExecDestroy(run(graph)));
    CHECK(value() == 78);
    DO(cuGraphDestroy(graph));
}

static void count_up(void *counter) {
    *(int *)counter += 1;
}

static void user_objects_live_as_long_as_a_graph_needs_them(void) {
    CUgraph graph;
    CUuserObject object;
    int gone = 0;
    DO(cuGraphCreate(&graph, 0));
    DO(cuUserObjectCreate(&object, &gone, count_up, 1, 1));
    DO(cuGraphRetainUserObject(graph, object, 1, 1)); /* moved */
    CUgraphExec exec = run(graph);
    DO(cuGraphDestroy(graph));
    CHECK(gone == 0);
    DO(cuGraphExecDestroy(exec));
    CHECK(gone == 1);
    MUST(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1));
}

int main(void) {
    CUmodule module;
    DO(cuInit(0));
    DO(cuCtxCreate_v2(&context, 0, 0));
    DO(cuModuleLoadData(&module, ADD_PTX));
    DO(cuModuleGetFunction(&add, module, "add"));
    DO(cuModuleGetFunction(&twice, module, "twice"));
    DO(cuMemAlloc_v2(&word, 4));
    DO(cuMemHostAlloc((void **)&pinned, 4, 0));
    nodes_run_in_the_order_of_their_edges();
    a_graph_tells_its_shape();
    a_cycle_is_found_when_it_is_instantiated();
    parameters_change_in_the_graph_or_in_what_was_made_of_it();
    a_launch_that_waits_keeps_what_it_was_launched_with();
    memory_of_a_graph_is_lent_out();
    a_branch_may_wait_for_what_another_writes();
    user_objects_live_as_long_as_a_graph_needs_them();
    DO(cuMemFreeHost(pinned));
    DO(cuCtxDestroy_v2(context));
    return 0;
}
