#include "gate.h"

#include <stddef.h>

#include "clock.h"
#include "context_memory.h"
#include "cuda_devices.h"
#include "estimate.h"
#include "gates.h"
#include "ledger.h"
#include "surface.h"
#include "words.h"

/* What is assumed of a launch that was never seen, and how long a turn lasts with one. */
#define UNKNOWN_NS (300 * MICROSECOND)
#define UNKNOWN_TURN (20 * MILLISECOND)
/* Work of a neighbour that ends so soon after our launch only delays it. */
#define LEAD (150 * MICROSECOND)
/* What a device takes to change hands, or thereabouts. */
#define HANDS (40 * MICROSECOND)
/* Beside others' turns work may end so much later than it should. */
#define BESIDE (5 * MILLISECOND)
_Atomic int gate_captures;
static struct gate gates[ALIQUOT_DEVICES_MAX];
static bool opened;

/* ---- life ---- */

static void prepare(unsigned device, aliquot_turns *page)
{
    gates[device] = (struct gate){.lock = PTHREAD_MUTEX_INITIALIZER, .device = device, .ratio = ESTIMATE_NO_DRIFT};
    turns_begin(&gates[device].turns, page, ledger_own_number() + device);
}

/* The seat, the turn and the events are the parent's. */
static void in_child(void)
{
    estimate_forget();
    atomic_store(&gate_captures, 0);
    for (unsigned device = 0; device < share.devices; device++)
        prepare(device, gates[device].turns.page);
}

void gates_open(void)
{
    clock_open();
    for (unsigned device = 0; device < share.devices; device++)
        prepare(device, share_open_turns(device));
    pthread_atfork(NULL, NULL, in_child);
    opened = true;
}

/* Real time, and no processor: the pause ends by somebody's command. */
static void wait_while_paused(void)
{
    while (share_paused())
        clock_idle();
}

/* ---- the launch ---- */

struct gate *gate_here(void)
{
    CUdevice ordinal;
    if (!opened)
        return NULL;
    if (share.devices == 1)
        return &gates[0];
    if (REAL(cuCtxGetDevice, CUresult (*)(CUdevice *))(&ordinal) != CUDA_SUCCESS)
        return NULL;
    int index = devices_share_index(ordinal);
    return index >= 0 ? &gates[index] : NULL;
}

#define PER_THREAD_STREAM ((CUstream)0x2)

/* Whether a launch on `stream` is to be let through as it is: what is captured runs later, and in a host
 * function the driver refuses it. */
static bool is_exempt(CUstream stream, bool per_thread)
{
    typedef CUresult is_capturing(CUstream, int *);
    int status = 0;
    CUresult result = per_thread ? REAL(cuStreamIsCapturing_ptsz, is_capturing *)(stream, &status)
                                 : REAL(cuStreamIsCapturing, is_capturing *)(stream, &status);
    return status != 0 || (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED);
}

/* How much more may join the batch that is open. */
static uint64_t room_in_batch(struct gate *gate, uint64_t now)
{
    uint64_t room = gate->depth > gate->batches.queued ? gate->depth - gate->batches.queued : 0;
    if (gate->turns.page != NULL && turns_ours(&gate->turns)) {
        struct turns_others others = turns_look(&gate->turns, now);
        uint64_t left = turns_left(&gate->turns, &others);
        room = left < room ? left : room;
    }
    return room < BATCHES_NS ? room : BATCHES_NS;
}

/* What neighbours do while it begins. */
static void look_around(struct gate *gate, struct batch *batch, uint64_t now)
{
    batch->taken = gate->turns.taken;
    if (gate->turns.page == NULL)
        return;
    uint64_t beside = turns_beside(&gate->turns, now), lead = beside > now ? beside - now : 0;
    batch->others = turns_charged_to_others(&gate->turns);
    batch->disturbed = lead > LEAD || !turns_ours(&gate->turns);
    batch->lead = gate->batches.count == 1 ? lead : 0; /* behind own work that is past */
    batch->first = gate->turns.used == 0;
}

static void begin_batch(struct gate *gate, struct launch *launch, struct estimate *shape, uint64_t predicted,
                        CUcontext context, CUstream stream, bool per_thread)
{
    bool own_stream = per_thread ? stream == NULL || stream == PER_THREAD_STREAM : stream == PER_THREAD_STREAM;
    uint64_t now = clock_now(), assumed = predicted != 0 ? predicted : UNKNOWN_NS, credit = 0;
    struct batches *batches = &gate->batches;
    record_event *record = per_thread ? REAL(cuEventRecord_ptsz, record_event *) : REAL(cuEventRecord, record_event *);
    /* Asking for an event would spoil a capture that is going on, on whichever stream. */
    struct batch *batch = batches_begin(batches, context, stream, atomic_load(&gate_captures) == 0 ? record : NULL);
    launch->solo = own_stream || predicted == 0 || estimate_wants_solo(shape);
    batch->shape = shape;
    batch->known = predicted != 0;
    batch->solo = launch->solo;
    batch->launches = 1;
    batch->predicted = assumed;
    batch->opened_ns = now;
    look_around(gate, batch, now);
    batches->queued += assumed;
    uint64_t begins = now + (batch->lead <= LEAD ? batch->lead : 0) + (batch->first ? HANDS : 0);
    batches->horizon = (batches->horizon > begins ? batches->horizon : begins) + assumed;
    batch->due_ns = batches->horizon;
    charges_spend(gate, (int64_t)assumed, now);
    if (!launch->solo) {
        credit = room_in_batch(gate, now);
        batches_allow(batches, credit);
    }
    if (gate->turns.page != NULL && turns_ours(&gate->turns))
        tenure_renew(gate, now, predicted != 0 ? credit : UNKNOWN_TURN);
    else
        turns_announce(&gate->turns, batches->horizon + credit + (predicted != 0 ? BESIDE : STUCK));
}

static void enter_slowly(struct launch *launch, struct gate *gate, struct estimate *shape, const void *function,
                         CUstream stream, bool per_thread)
{
    CUcontext context = NULL;
    /* Before any wait: a host function that waits holds up its stream, and with it what it may be waiting for. */
    if (is_exempt(stream, per_thread))
        return;
    wait_while_paused();
    if (REAL(cuCtxGetCurrent, CUresult (*)(CUcontext *))(&context) != CUDA_SUCCESS || context == NULL)
        return;
    gate_lock(gate);
    uint64_t predicted = estimate_scaled(__atomic_load_n(&shape->ns, __ATOMIC_RELAXED), gate->ratio);
    uint64_t now = clock_now();
    charges_close_batch(gate, now);
    tenure_idled(gate, now);
    gate->turns.hurries = gate->since_wait <= GATE_LITTLE && gate->waited_ns != 0 && !estimate_is_rough(shape);
    admission_wait(gate, predicted);
    if (!gate_has_turns(gate, clock_now()) || turns_ours(&gate->turns))
        turns_stop_waiting(&gate->turns);
    if (!batches_full(&gate->batches)) {
        launch->gate = gate;
        /* After the wait, for neighbours move meanwhile, and before the batch's first event. */
        launch->measured = predicted == 0 && context_memory_is_first(function);
        if (launch->measured)
            overhead_begin(&launch->before);
        begin_batch(gate, launch, shape, predicted, context, stream, per_thread);
    }
    pthread_mutex_unlock(&gate->lock);
}

void gate_enter(struct launch *launch, uint64_t key, const void *function, CUstream stream, bool per_thread)
{
    launch->gate = NULL;
    launch->solo = launch->measured = false;
    struct gate *gate = gate_here();
    if (gate == NULL)
        return;
    struct estimate *shape = estimate_of(key != 0 ? key : 1);
    uint64_t predicted = estimate_scaled(__atomic_load_n(&shape->ns, __ATOMIC_RELAXED),
                                         __atomic_load_n(&gate->ratio, __ATOMIC_RELAXED));
    if (estimate_joins(shape, predicted) && !share_paused() &&
        atomic_load_explicit(&gate_captures, memory_order_relaxed) == 0 &&
        batches_join(&gate->batches, stream, predicted))
        return;
    enter_slowly(launch, gate, shape, function, stream, per_thread);
}

void gate_leave(const struct launch *launch)
{
    if (launch->gate == NULL || !launch->solo)
        return;
    gate_lock(launch->gate);
    charges_close_batch(launch->gate, clock_now());
    pthread_mutex_unlock(&launch->gate->lock);
    if (launch->measured)
        context_memory_launched(&launch->before);
}

/* ---- what else a program does ---- */

void gate_before_stream_ends(CUstream stream)
{
    for (unsigned device = 0; opened && device < share.devices; device++) {
        struct gate *gate = &gates[device];
        gate_lock(gate);
        if (gate->batches.open && gate->batches.open_stream == stream)
            charges_close_batch(gate, clock_now());
        pthread_mutex_unlock(&gate->lock);
    }
}

/* Which events went with it is not told apart, and none may be touched any more: what was under way stays
 * charged as predicted. */
void gate_context_gone(void)
{
    for (unsigned device = 0; opened && device < share.devices; device++) {
        struct gate *gate = &gates[device];
        gate_lock(gate);
        if (gate->batches.open)
            gate->batches.ring[(gate->batches.first + gate->batches.count - 1) % BATCHES_MAX].measured = false;
        charges_close_batch(gate, clock_now());
        for (unsigned at = 0; at < gate->batches.count; at++)
            ledger_computed(device, gate->batches.ring[(gate->batches.first + at) % BATCHES_MAX].predicted);
        batches_forget(&gate->batches);
        pthread_mutex_unlock(&gate->lock);
    }
    estimate_forget();
    context_memory_forget();
}

void gate_capturing(int change)
{
    if (atomic_fetch_add(&gate_captures, change) + change < 0)
        atomic_store(&gate_captures, 0);
}
