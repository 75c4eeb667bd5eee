#include "batches.h"

#include <stddef.h>
#include <string.h>

#include "surface.h"

#define SEEN_LATE UINT64_C(100000)

static struct batch *at(struct batches *batches, unsigned index)
{
    return &batches->ring[(batches->first + index) % BATCHES_MAX];
}

/* Two events in `context`, kept for the batches that take this place later. */
static bool have_events(struct batch *batch, CUcontext context)
{
    typedef CUresult create(CUevent *, unsigned);
    if (batch->begin != NULL && batch->end != NULL && batch->context == context)
        return true;
    batch->context = context;
    batch->begin = batch->end = NULL; /* those of another context end with it */
    return REAL(cuEventCreate, create *)(&batch->begin, 0) == CUDA_SUCCESS &&
           REAL(cuEventCreate, create *)(&batch->end, 0) == CUDA_SUCCESS;
}

struct batch *batches_begin(struct batches *batches, CUcontext context, CUstream stream, record_event *record)
{
    struct batch *batch = at(batches, batches->count++);
    CUevent begin = batch->begin, end = batch->end;
    CUcontext before = batch->context;
    *batch = (struct batch){.context = before, .begin = begin, .end = end, .stream = stream, .record = record};
    batch->measured = record != NULL && have_events(batch, context) && record(batch->begin, stream) == CUDA_SUCCESS;
    batches->open = true;
    return batch;
}

void batches_allow(struct batches *batches, uint64_t ns)
{
    struct batch *open = at(batches, batches->count - 1);
    batches->credit_given = ((uint64_t)(BATCHES_LAUNCHES - 1) << 48) | (ns < BATCHES_NS ? ns : BATCHES_NS);
    __atomic_store_n(&batches->open_stream, open->stream, __ATOMIC_RELAXED);
    __atomic_store_n(&batches->credit, batches->credit_given, __ATOMIC_RELEASE);
}

uint64_t batches_close(struct batches *batches, uint64_t now)
{
    if (!batches->open)
        return 0;
    struct batch *open = at(batches, batches->count - 1);
    uint64_t left = __atomic_exchange_n(&batches->credit, 0, __ATOMIC_SEQ_CST);
    uint64_t joined = batches->credit_given - left;
    batches->credit_given = 0;
    batches->open = false;
    open->closed = true;
    open->closed_ns = now;
    open->launches += (unsigned)(joined >> 48);
    joined &= 0xffffffffffff;
    open->predicted += joined;
    batches->queued += joined;
    batches->horizon += joined;
    if (open->measured && open->record(open->end, open->stream) != CUDA_SUCCESS)
        open->measured = false;
    return joined;
}

static bool elapsed_ns(CUevent from, CUevent to, uint64_t *ns)
{
    typedef CUresult elapsed(float *, CUevent, CUevent);
    float ms = 0;
    CUresult result = REAL(cuEventElapsedTime_v2, elapsed *)(&ms, from, to);
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        result = REAL(cuEventElapsedTime, elapsed *)(&ms, from, to);
    if (result != CUDA_SUCCESS)
        return false;
    *ns = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return true;
}

/* Batches of several streams overlap: what lies before the end of the one before was charged to that. */
static bool own_span(const struct batches *batches, const struct batch *batch, uint64_t *span)
{
    uint64_t since;
    if (!elapsed_ns(batch->begin, batch->end, span))
        return false;
    if (batches->last_end != NULL && batches->last_context == batch->context && batches->last_end != batch->end &&
        elapsed_ns(batches->last_end, batch->end, &since) && since < *span)
        *span = since;
    return true;
}

enum batch_state batches_oldest(struct batches *batches, struct batch **oldest, uint64_t *span, bool ask)
{
    struct batch *batch = at(batches, 0);
    if (batches->count == 0 || !batch->closed)
        return BATCH_NONE;
    *oldest = batch;
    *span = 0;
    if (!batch->measured || !ask)
        return BATCH_LOST;
    CUresult result = REAL(cuEventQuery, CUresult (*)(CUevent))(batch->end);
    if (result == CUDA_ERROR_NOT_READY)
        return BATCH_RUNS;
    if (result != CUDA_SUCCESS || !own_span(batches, batch, span))
        batch->measured = false;
    return batch->measured ? BATCH_ENDED : BATCH_LOST;
}

void batches_drop(struct batches *batches, struct batch *oldest, uint64_t now)
{
    batches->queued -= oldest->predicted < batches->queued ? oldest->predicted : batches->queued;
    batches->last_end = oldest->measured ? oldest->end : NULL;
    batches->last_context = oldest->context;
    batches->first = (batches->first + 1) % BATCHES_MAX;
    batches->count--;
    batches->queued = batches->count != 0 ? batches->queued : 0;
    /* What is left begins now; or a little before, for it is seen late. */
    uint64_t horizon = now + batches->queued;
    if (batches->count == 0 || horizon < batches->horizon || horizon > batches->horizon + SEEN_LATE)
        batches->horizon = horizon;
}

void batches_forget(struct batches *batches)
{
    memset(batches, 0, sizeof *batches);
}
