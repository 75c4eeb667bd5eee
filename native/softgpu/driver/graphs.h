/* Graphs: operations with dependencies. A node's operation is its own copy. A graph that is instantiated
 * becomes a plan, a clone in an order in which it can be performed; launching performs the plan as one
 * operation of its stream. An executable graph that is changed while a launch of it waits gets a new
 * plan, so a plan never changes once it was launched.
 *
 * As in the driver, who uses one graph from several threads has to order that himself. */
#ifndef SG_GRAPHS_H
#define SG_GRAPHS_H

#include "cuda_graph_types.h"
#include "queues.h"

typedef struct {
    CUgraphNode node;
    CUgraphEdgeData data;
} sg_edge;

struct CUgraphNode_st {
    CUgraph graph;
    CUgraphNodeType type;
    CUcontext context; /* where it is performed; NULL: that of the stream */
    sg_operation operation;
    CUkernel kern;        /* what a kernel node was given, where that was not a function */
    void **pointers;      /* to the parameters of a kernel, made when somebody asks */
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
    CUgraph child;
    CUgraphNode origin; /* what it is a clone of */
    unsigned id;
    bool disabled; /* in a plan */
    bool placed;   /* while a plan is made, or a path searched */
    CUgraphNode twin; /* while a clone is made */
    sg_edge *in;
    size_t in_count, in_room;
    CUgraphNode next;
};

typedef struct sg_held {
    CUuserObject object;
    unsigned count;
    struct sg_held *next;
} sg_held;

struct CUgraph_st {
    unsigned id;
    CUgraphNode first, *last;
    size_t count;
    unsigned next_node;
    bool capturing; /* streams add to it: neither it nor its nodes may go */
    CUgraphNode within; /* the node that owns it */
    sg_held *held;
};

typedef struct sg_plan {
    _Atomic unsigned references;
    CUgraph graph;
    CUgraphNode *order;
    CUevent *waits, *records; /* of its event nodes, and `launched` */
    size_t wait_count, record_count;
    bool brief;
} sg_plan;

struct CUgraphExec_st {
    unsigned id;
    unsigned long long flags;
    sg_plan *plan;
    CUevent launched; /* the launch before: a graph never runs beside itself */
};

bool sg_is_graph(CUgraph graph);
bool sg_is_node(CUgraphNode node);

CUresult sg_graph_make(CUgraph *graph);
void sg_graph_discard(CUgraph graph);
/* Clones know their originals. `replan`: the clone of a plan, whose nodes stand for the same as before. */
CUresult sg_graph_clone(CUgraph graph, bool replan, CUgraph *clone);
bool sg_graph_has_memory_nodes(CUgraph graph);
/* Of a clone, children included. */
CUgraphNode sg_graph_clone_of(CUgraph clone, CUgraphNode original);

/* nodes: a blank one is not in any graph yet */
CUgraphNode sg_node_make(CUgraph graph, CUgraphNodeType type);
void sg_node_discard(CUgraphNode node);
CUresult sg_node_connect(CUgraphNode node, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count);
void sg_node_disconnect(CUgraphNode node, CUgraphNode dependency);
sg_edge *sg_node_edge(CUgraphNode node, CUgraphNode dependency);
CUresult sg_graph_append(CUgraphNode node, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count);
/* An operation as a node of a graph, for capture. */
CUresult sg_graph_append_operation(CUgraph graph, CUcontext context, const sg_operation *operation,
                                   const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                                   CUgraphNode *node);

/* parameters, in the one form that holds all kinds */
CUresult sg_node_set(CUgraphNode node, const CUgraphNodeParams *parameters);
CUresult sg_node_get(CUgraphNode node, CUgraphNodeParams *parameters);
CUresult sg_node_copy(CUgraphNode to, CUgraphNode from);
CUresult sg_graph_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                      size_t count, CUgraphNodeParams *parameters);

/* plans */
CUresult sg_plan_make(CUgraph graph, CUevent launched, sg_plan **plan, CUgraphNode *wrong);
void sg_plan_release(sg_plan *plan);
/* Rebuild what is derived from its nodes. */
CUresult sg_plan_refresh(sg_plan *plan, CUevent launched);
/* The node of the executable graph that stands for `original`, in a plan that may be changed. */
CUresult sg_exec_node(CUgraphExec exec, CUgraphNode original, CUgraphNode *node);

CUresult sg_exec_set(CUgraphExec exec, CUgraphNode original, const CUgraphNodeParams *parameters);

void sg_user_object_hold(CUuserObject object, unsigned count);
void sg_user_object_release(CUuserObject object, unsigned count);

/* memory of graphs: theirs until they are gone, lent out between the alloc node and the free node */
CUresult sg_graph_memory_make(CUcontext context, size_t size, CUdeviceptr *address);
void sg_graph_memory_retain(CUdeviceptr address);
void sg_graph_memory_release(CUdeviceptr address);
void sg_graph_memory_forget(void);

#endif
