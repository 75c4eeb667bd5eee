/* What a stream does: one struct for everything that is ordered by a stream, one way in.
 *
 * Each call that queues work describes it as an operation and submits it. There, and nowhere else, is
 * decided when it is performed. Each kind has a check, which looks and changes nothing, and a
 * performance, which may come later and on another thread. */
#ifndef SG_OPERATION_H
#define SG_OPERATION_H

#include "cuda_graph_types.h"
#include "driver.h"

typedef enum {
    SG_OPERATION_NOTHING, /* only takes part in the order */
    SG_OPERATION_KERNEL,
    SG_OPERATION_COPY,
    SG_OPERATION_FILL,
    SG_OPERATION_HOST,
    SG_OPERATION_EVENT_RECORD,
    SG_OPERATION_EVENT_WAIT,
    SG_OPERATION_ALLOCATE,
    SG_OPERATION_FREE,
    SG_OPERATION_VALUES,
    SG_OPERATION_GRAPH
} sg_operation_kind;

typedef struct {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    bool cooperative;
} sg_geometry;

typedef struct {
    CUfunction function;
    sg_geometry shape;
    const unsigned char *parameters; /* packed, as long as the function says */
} sg_kernel_operation;

/* Every copy is a box. The side of a straight copy has one row. */
typedef struct {
    CUDA_MEMCPY3D box;
    CUcontext to_context, from_context; /* NULL: that of the stream */
} sg_copy_operation;

typedef struct {
    CUdeviceptr to;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height; /* width in elements */
} sg_fill_operation;

typedef struct {
    CUhostFn function;         /* one of the two */
    CUstreamCallback callback; /* is told the stream and its state */
    CUstream handle;
    void *data;
} sg_host_operation;

typedef struct {
    CUmemoryPool pool;
    size_t size;
    CUdeviceptr address; /* of an allocation: where it was made; in a graph: the memory that is lent out */
} sg_memory_operation;

typedef struct {
    const CUstreamBatchMemOpParams *list;
    unsigned count;
} sg_values_operation;

struct sg_plan;

typedef struct {
    struct sg_plan *plan;
    bool reuse; /* memory that the launch before left lent out */
} sg_graph_operation;

typedef struct {
    sg_operation_kind kind;
    bool awaited;  /* the call returns when it is done */
    bool external; /* an event that a capture does not take for a fork or a join */
    uint64_t record; /* of an event of several processes: which one; 0 none */
    union {
        sg_kernel_operation kernel;
        sg_copy_operation copy;
        sg_fill_operation fill;
        sg_host_operation host;
        CUevent event;
        sg_memory_operation memory;
        sg_values_operation values;
        sg_graph_operation graph;
    };
} sg_operation;

/* The one way in. What is wrong with the operation is the result; what goes wrong while it is
 * performed ends the context, as on a card. An allocation fills in its address. */
CUresult sg_submit(CUstream given, sg_operation *operation);

/* May `context` do this at all? */
CUresult sg_operation_check(CUcontext context, const sg_operation *operation);
/* Do it, now, on this thread. */
CUresult sg_operation_perform(CUcontext context, const sg_operation *operation);

/* Ends soon, whatever the program does: the thread that submits it may perform it. */
bool sg_operation_brief(const sg_operation *operation);
/* Is performed on a failed context too. */
bool sg_operation_survives(const sg_operation *operation);
/* The events that have to be passed before it, and those that mean it from now on. */
size_t sg_operation_waits(const sg_operation *operation, const CUevent **events);
size_t sg_operation_records(const sg_operation *operation, const CUevent **events);
/* A copy that owns what it points to, and its end. */
bool sg_operation_keep(sg_operation *kept, const sg_operation *operation);
void sg_operation_drop(sg_operation *kept);

/* ---- one pair for each kind ---- */

CUresult sg_kernel_check(CUcontext context, const sg_kernel_operation *kernel);
CUresult sg_kernel_perform(CUcontext context, const sg_kernel_operation *kernel);
CUresult sg_copy_check(CUcontext context, const sg_copy_operation *copy);
CUresult sg_copy_perform(CUcontext context, const sg_copy_operation *copy);
/* One side is memory of the program that the device does not know: the call cannot return before it. */
bool sg_copy_pageable(const sg_copy_operation *copy);
CUresult sg_fill_check(CUcontext context, const sg_fill_operation *fill);
CUresult sg_fill_perform(CUcontext context, const sg_fill_operation *fill);
CUresult sg_host_check(const sg_host_operation *host);
/* Call a function of the program, which may not call the driver meanwhile. */
void sg_host_call(CUhostFn function, void *data);
CUresult sg_host_perform(CUcontext context, const sg_host_operation *host);
CUresult sg_event_check(CUcontext context, CUevent event, bool record);
CUresult sg_event_make(CUcontext context, unsigned flags, CUevent *event);
CUresult sg_event_record(CUevent event, uint64_t record);
/* Waits for nothing where the event is of this process alone: that is what fences are for. */
CUresult sg_event_wait(CUcontext context, CUevent event, uint64_t record);
void sg_event_release(CUevent event);
CUresult sg_values_check(CUcontext context, const sg_values_operation *values);
CUresult sg_values_perform(CUcontext context, const sg_values_operation *values);
/* Every value it waits for is there now. */
bool sg_values_met(const sg_values_operation *values);
/* It waits for one at all. */
bool sg_values_wait(const sg_values_operation *values);
CUresult sg_plan_check(const sg_graph_operation *graph);
CUresult sg_plan_perform(CUcontext context, const struct sg_plan *plan);
/* Memory that a graph owns is lent, not made and freed. */
bool sg_graph_memory_owns(CUdeviceptr address);
bool sg_graph_memory_lent(CUdeviceptr address);
CUresult sg_graph_memory_lend(CUdeviceptr address, bool lent);
CUresult sg_allocate_perform(CUcontext context, sg_memory_operation *memory);
CUresult sg_free_check(CUcontext context, const sg_memory_operation *memory);
CUresult sg_free_perform(CUcontext context, const sg_memory_operation *memory);

#endif
