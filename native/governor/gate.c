#include "gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "bucket.h"
#include "clock.h"
#include "context_memory.h"
#include "cuda_devices.h"
#include "estimate.h"
#include "ledger.h"
#include "measure.h"
#include "share.h"
#include "surface.h"
#include "turns.h"
#include "words.h"

#define MICROSECOND TURNS_MICROSECOND
#define MILLISECOND TURNS_MILLISECOND
/* What is assumed of a launch that was never seen, and how long a turn lasts with one. */
#define UNKNOWN_NS (300 * MICROSECOND)
#define UNKNOWN_TURN (20 * MILLISECOND)
/* How much predicted work may be queued: beside others, and alone. */
#define DEPTH (3 * MILLISECOND)
#define DEPTH_GUEST (1 * MILLISECOND)
#define DEPTH_ALONE (8 * MILLISECOND)
#define CALM (50 * MILLISECOND)
/* A program whose launches lie further apart than this gives its turn away in between. */
#define THINKS (60 * MICROSECOND)
/* A launch that sees nobody get on for this long passes, and one that waited for this long in all. */
#define STUCK (50 * MILLISECOND)
#define PATIENCE (1000 * MILLISECOND)
/* Then the page is not believed for a while: the share is held by its own clock, as at a cap. */
#define DISTRUST (10000 * MILLISECOND)
/* What a share that has spent all must earn before it goes on. */
#define EARN_ALONE (500 * MICROSECOND)
#define EARN_BESIDE (2 * MILLISECOND)

struct gate {
    pthread_mutex_t lock;
    unsigned device;
    struct turns turns;
    struct batches batches;
    struct share_compute share;
    uint32_t ratio;
    uint64_t depth;         /* how much may be queued now */
    uint64_t distrust_until;
    uint64_t drained_ns;    /* since when nothing of ours is left, as far as we saw */
    uint64_t thinking;      /* usual ns from there to the next launch */
    uint64_t own_ready;     /* as the ledger's word, of this process alone: what nobody else can write */
    bool spent;
};

static struct gate gates[ALIQUOT_DEVICES_MAX];
static _Atomic int capturing;
static bool opened;

/* ---- life ---- */

static uint64_t draw_number(void)
{
    uint64_t number = now_ns() ^ ((uint64_t)getpid() << 40) ^ (uint64_t)(uintptr_t)&number;
    number = estimate_mix(number, (uint64_t)clock());
    return number != 0 ? number : 1;
}

static void prepare(unsigned device, aliquot_turns *page)
{
    struct gate *gate = &gates[device];
    pthread_mutex_init(&gate->lock, NULL);
    batches_forget(&gate->batches);
    turns_begin(&gate->turns, page, draw_number() + device);
    gate->device = device;
    gate->ratio = ESTIMATE_NO_DRIFT;
    gate->distrust_until = gate->own_ready = gate->drained_ns = gate->thinking = 0;
    gate->spent = false;
    gate->depth = DEPTH;
}

/* The seat, the turn and the events are the parent's. */
static void in_child(void)
{
    estimate_forget();
    atomic_store(&capturing, 0);
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

/* ---- accounting ---- */

static bool has_turns(const struct gate *gate, uint64_t now)
{
    return gate->turns.page != NULL && now >= gate->distrust_until;
}

static bool is_capped(const struct gate *gate, uint64_t now)
{
    return gate->share.policy == POLICY_CAP || !has_turns(gate, now);
}

static void spend(struct gate *gate, int64_t ns, uint64_t now)
{
    turns_charge(&gate->turns, ns);
    bucket_spend(&share.ledger->devices[gate->device].ready, ns, gate->share.weight, now);
    bucket_spend(&gate->own_ready, ns, gate->share.weight, now);
}

static void close_batch(struct gate *gate, uint64_t now)
{
    uint64_t joined = batches_close(&gate->batches, now);
    if (joined != 0)
        spend(gate, (int64_t)joined, now);
}

static void judge(struct gate *gate, const struct batch *batch, uint64_t span, bool measured, uint64_t now)
{
    uint64_t others = gate->turns.page != NULL ? turns_charged_to_others(&gate->turns) - batch->others : 0;
    struct measure measure = {
        .span = span,
        .predicted = batch->predicted,
        .issuing = batch->closed_ns - batch->opened_ns,
        .others = others,
        .launches = batch->launches,
        .measured = measured,
        .known = batch->known,
        .solo = batch->solo,
        .disturbed = batch->disturbed || batch->taken != gate->turns.taken ||
                     (gate->turns.page != NULL && !turns_ours(&gate->turns) && others != 0),
    };
    struct verdict verdict = measure_judge(&measure);
    if (verdict.learn)
        estimate_learn(batch->shape, verdict.charge);
    if (verdict.drift)
        estimate_drift(&gate->ratio, verdict.charge, batch->predicted);
    spend(gate, (int64_t)verdict.charge - (int64_t)batch->predicted, now);
    ledger_computed(gate->device, verdict.charge);
}

/* What has ended is charged what it took. */
static void reap(struct gate *gate, uint64_t now)
{
    struct batch *oldest;
    uint64_t span;
    bool any = false;
    for (;;) {
        enum batch_state state = batches_oldest(&gate->batches, &oldest, &span, atomic_load(&capturing) == 0);
        if (state == BATCH_NONE || state == BATCH_RUNS || (state == BATCH_LOST && now < oldest->due_ns))
            break;
        judge(gate, oldest, span, state == BATCH_ENDED, now);
        batches_drop(&gate->batches, oldest, now);
        any = true;
    }
    if (any && gate->batches.count == 0) {
        gate->drained_ns = now;
        turns_drained(&gate->turns, now);
        turns_stop_waiting(&gate->turns);
    }
}

/* ---- turns ---- */

static void wake_seat(struct gate *gate, int seat)
{
    if (seat != TURNS_NO_SEAT)
        clock_wake(&gate->turns.page->seats[seat].wake);
}

static void pass(struct gate *gate, uint64_t now)
{
    wake_seat(gate, turns_pass(&gate->turns, now));
}

/* When what is under way should have ended, were it as late as a launch may be that holds others up. */
static uint64_t latest_end(const struct gate *gate)
{
    return gate->batches.count != 0 ? gate->batches.ring[gate->batches.first].due_ns + STUCK : 0;
}

/* The turn lasts until what was launched should be done; while that is late, for as long as we look, but not
 * for ever: it may be waiting for work of a neighbour. */
static void renew(struct gate *gate, uint64_t now, uint64_t more)
{
    uint64_t horizon = gate->batches.horizon > now ? gate->batches.horizon : now;
    bool unknown = gate->batches.count != 0 && !gate->batches.ring[gate->batches.first].known;
    if (gate->batches.count != 0 && now > latest_end(gate))
        return;
    if (gate->batches.count != 0 && horizon < now + 50 * MICROSECOND)
        horizon = now + 50 * MICROSECOND;
    turns_renew(&gate->turns, horizon + more + (unknown ? STUCK : 0), horizon + more + TURNS_LINGER);
}

/* After work of ours has ended: whether to keep the turn. */
static void settle_turn(struct gate *gate, uint64_t now)
{
    if (gate->turns.page == NULL || !turns_ours(&gate->turns))
        return;
    struct turns_others others = turns_look(&gate->turns, now);
    if (gate->batches.count == 0 && others.waiting != 0 &&
        (gate->thinking > THINKS || turns_over(&gate->turns, &others)))
        pass(gate, now);
    else
        renew(gate, now, 0);
}

/* ---- admission ---- */

enum admission { ADMITTED, WAIT };

/* When to look again at own work: when it should be done, but neither at once nor much later. */
static uint64_t next_look(const struct gate *gate, uint64_t now)
{
    uint64_t due = gate->batches.count != 0 ? gate->batches.ring[gate->batches.first].due_ns : now;
    uint64_t late = now > due ? (now - due) / 4 : due - now;
    late = late < 20 * MICROSECOND ? 20 * MICROSECOND : late > MILLISECOND ? MILLISECOND : late;
    return now + late;
}

/* The turn stays ours until we look again. */
static enum admission wait_for_own_work(struct gate *gate, uint64_t now, uint64_t *look)
{
    close_batch(gate, now);
    *look = next_look(gate, now);
    if (gate->turns.page != NULL && turns_ours(&gate->turns)) {
        uint64_t horizon = gate->batches.horizon > *look ? gate->batches.horizon : *look;
        renew(gate, now, horizon - (gate->batches.horizon > now ? gate->batches.horizon : now));
    }
    return WAIT;
}

/* Where launches are short there must be room for a batch of them, or each would wait by itself. */
static bool is_deep(const struct gate *gate, uint64_t predicted)
{
    uint64_t room = predicted < ESTIMATE_ALWAYS_SOLO_NS ? BATCHES_NS : predicted;
    return gate->batches.count != 0 && gate->batches.queued + room > gate->depth;
}

static enum admission ask_bucket(struct gate *gate, uint64_t now, uint64_t *look)
{
    uint64_t more = !gate->spent ? 0 : gate->turns.page != NULL && turns_contended(&gate->turns, now, CALM)
                                           ? EARN_BESIDE : EARN_ALONE;
    uint64_t until = bucket_wait(&share.ledger->devices[gate->device].ready, more, gate->share.weight, now);
    uint64_t own = bucket_wait(&gate->own_ready, more, gate->share.weight, now);
    until = own > until ? own : until;
    gate->spent = until != 0;
    if (until == 0)
        return ADMITTED;
    close_batch(gate, now);
    turns_stop_waiting(&gate->turns);
    if (gate->batches.count == 0 && gate->turns.page != NULL && turns_ours(&gate->turns))
        pass(gate, now);
    *look = until < now + 5 * MILLISECOND ? until : now + 5 * MILLISECOND; /* the limit may be changed meanwhile */
    return WAIT;
}

static enum admission ask_turn(struct gate *gate, uint64_t predicted, uint64_t now, uint64_t *look)
{
    if (!turns_ask(&gate->turns, predicted, now, look)) {
        close_batch(gate, now);
        return WAIT;
    }
    if (!turns_ours(&gate->turns)) {
        gate->depth = DEPTH_GUEST;
        return is_deep(gate, predicted) ? wait_for_own_work(gate, now, look) : ADMITTED;
    }
    struct turns_others others = turns_look(&gate->turns, now);
    gate->depth = others.waiting != 0 || turns_contended(&gate->turns, now, CALM) ? DEPTH : DEPTH_ALONE;
    if (turns_over(&gate->turns, &others)) {
        if (gate->batches.count != 0)
            return wait_for_own_work(gate, now, look);
        pass(gate, now);
        *look = now + 20 * MICROSECOND;
        return WAIT;
    }
    if (is_deep(gate, predicted))
        return wait_for_own_work(gate, now, look);
    return ADMITTED;
}

static enum admission admit(struct gate *gate, uint64_t predicted, uint64_t now, uint64_t *look)
{
    if (is_capped(gate, now) && ask_bucket(gate, now, look) == WAIT)
        return WAIT;
    bool turns = has_turns(gate, now);
    bool busy = gate->batches.count != 0;
    if (busy && (predicted == 0 || batches_full(&gate->batches) || (!turns && is_deep(gate, predicted))))
        return wait_for_own_work(gate, now, look);
    return turns ? ask_turn(gate, predicted, now, look) : ADMITTED;
}

/* ---- waiting ---- */

static uint64_t progress(const struct gate *gate)
{
    uint64_t others = gate->turns.page != NULL ? turns_progress(&gate->turns) : 0;
    return others + gate->turns.charged * 65536 + gate->batches.count;
}

static void refresh(struct gate *gate)
{
    gate->share = share_compute(gate->device);
    gate->turns.share = (struct turns_share){share_lease_number(), gate->share.weight, gate->share.rank};
}

/* Whether a launch that waits since `began`, and has seen nobody get on since `*moved`, is to pass now. */
static bool is_stuck(struct gate *gate, uint64_t began, uint64_t *seen, uint64_t *moved, uint64_t now)
{
    uint64_t progressed = progress(gate);
    if (progressed != *seen || now < gate->batches.horizon || now < turns_until(&gate->turns, now)) {
        *seen = progressed;
        *moved = now;
    }
    if (gate->spent || now - *moved < STUCK) {
        if (gate->spent || now - began < PATIENCE)
            return false;
        gate->distrust_until = now + DISTRUST;
        turns_forget(&gate->turns);
        return false; /* it goes on as at a cap */
    }
    return true;
}

/* Wait under `lock` until a launch that should take `predicted` (0: not known) may be made. */
static void wait_for_admission(struct gate *gate, uint64_t predicted)
{
    uint64_t look, seen = progress(gate), now = clock_now(), began = now, moved = now;
    for (;; now = clock_now()) {
        refresh(gate);
        reap(gate, now);
        uint32_t *wake = gate->turns.seat != TURNS_NO_SEAT && gate->turns.page != NULL
                             ? &gate->turns.page->seats[gate->turns.seat].wake : NULL;
        uint32_t woken = wake != NULL ? __atomic_load_n(wake, __ATOMIC_SEQ_CST) : 0;
        if (admit(gate, predicted, now, &look) == ADMITTED || is_stuck(gate, began, &seen, &moved, now))
            return;
        pthread_mutex_unlock(&gate->lock);
        clock_wait(look, wake, woken);
        pthread_mutex_lock(&gate->lock);
    }
}

/* Real time, and no processor: the pause ends by somebody's command. */
static void wait_while_paused(void)
{
    while (share_paused())
        clock_idle();
}

/* ---- the launch ---- */

static struct gate *gate_here(void)
{
    CUdevice ordinal;
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

static void begin_batch(struct gate *gate, struct launch *launch, struct estimate *shape, uint64_t predicted,
                        CUcontext context, CUstream stream, bool per_thread)
{
    bool own_stream = per_thread ? stream == NULL || stream == PER_THREAD_STREAM : stream == PER_THREAD_STREAM;
    uint64_t now = clock_now(), assumed = predicted != 0 ? predicted : UNKNOWN_NS, credit = 0;
    struct batches *batches = &gate->batches;
    if (batches->count == 0 && gate->drained_ns != 0 && now > gate->drained_ns)
        gate->thinking = (gate->thinking * 3 + (now - gate->drained_ns)) / 4;
    record_event *record = per_thread ? REAL(cuEventRecord_ptsz, record_event *) : REAL(cuEventRecord, record_event *);
    /* Asking for an event would spoil a capture that is going on, on whichever stream. */
    struct batch *batch = batches_begin(batches, context, stream, atomic_load(&capturing) == 0 ? record : NULL);
    launch->solo = own_stream || predicted == 0 || estimate_wants_solo(shape);
    batch->shape = shape;
    batch->known = predicted != 0;
    batch->solo = launch->solo;
    batch->launches = 1;
    batch->predicted = assumed;
    batch->opened_ns = now;
    batch->taken = gate->turns.taken;
    batch->others = gate->turns.page != NULL ? turns_charged_to_others(&gate->turns) : 0;
    batch->disturbed = gate->turns.page != NULL && (turns_beside(&gate->turns, now) || !turns_ours(&gate->turns));
    batches->queued += assumed;
    batches->horizon = (batches->horizon > now ? batches->horizon : now) + assumed;
    batch->due_ns = batches->horizon;
    if (!launch->solo) {
        credit = gate->depth > batches->queued ? gate->depth - batches->queued : 0;
        credit = credit < BATCHES_NS ? credit : BATCHES_NS;
        batches_allow(batches, credit);
    }
    spend(gate, (int64_t)assumed, now);
    if (gate->turns.page != NULL && turns_ours(&gate->turns))
        renew(gate, now, predicted != 0 ? credit : UNKNOWN_TURN);
    else
        turns_announce(&gate->turns, batches->horizon + credit + (predicted != 0 ? 0 : STUCK));
}

static void enter_slowly(struct launch *launch, struct gate *gate, struct estimate *shape, const void *function,
                         CUstream stream, bool per_thread)
{
    CUcontext context = NULL;
    wait_while_paused();
    if (is_exempt(stream, per_thread) ||
        REAL(cuCtxGetCurrent, CUresult (*)(CUcontext *))(&context) != CUDA_SUCCESS || context == NULL)
        return;
    pthread_mutex_lock(&gate->lock);
    uint64_t predicted = estimate_scaled(__atomic_load_n(&shape->ns, __ATOMIC_RELAXED), gate->ratio);
    close_batch(gate, clock_now());
    wait_for_admission(gate, predicted);
    if (!has_turns(gate, clock_now()) || turns_ours(&gate->turns))
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
    struct gate *gate = opened ? gate_here() : NULL;
    if (gate == NULL)
        return;
    struct estimate *shape = estimate_of(key != 0 ? key : 1);
    uint64_t predicted = estimate_scaled(__atomic_load_n(&shape->ns, __ATOMIC_RELAXED),
                                         __atomic_load_n(&gate->ratio, __ATOMIC_RELAXED));
    if (estimate_joins(shape, predicted) && !share_paused() &&
        atomic_load_explicit(&capturing, memory_order_relaxed) == 0 &&
        batches_join(&gate->batches, stream, predicted))
        return;
    enter_slowly(launch, gate, shape, function, stream, per_thread);
}

void gate_leave(const struct launch *launch)
{
    if (launch->gate == NULL || !launch->solo)
        return;
    pthread_mutex_lock(&launch->gate->lock);
    close_batch(launch->gate, clock_now());
    pthread_mutex_unlock(&launch->gate->lock);
    if (launch->measured)
        context_memory_launched(&launch->before);
}

/* ---- what else a program does ---- */

void gate_before_wait(void)
{
    struct gate *gate = opened && atomic_load(&capturing) == 0 ? gate_here() : NULL;
    if (gate == NULL)
        return;
    pthread_mutex_lock(&gate->lock);
    close_batch(gate, clock_now());
    pthread_mutex_unlock(&gate->lock);
}

void gate_after_wait(void)
{
    struct gate *gate = opened && atomic_load(&capturing) == 0 ? gate_here() : NULL;
    if (gate == NULL)
        return;
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    reap(gate, now);
    settle_turn(gate, now);
    pthread_mutex_unlock(&gate->lock);
}

void gate_before_stream_ends(CUstream stream)
{
    for (unsigned device = 0; opened && device < share.devices; device++) {
        struct gate *gate = &gates[device];
        pthread_mutex_lock(&gate->lock);
        if (gate->batches.open && gate->batches.open_stream == stream)
            close_batch(gate, clock_now());
        pthread_mutex_unlock(&gate->lock);
    }
}

/* Which events went with it is not told apart, and none may be touched any more: what was under way stays
 * charged as predicted. */
void gate_context_gone(void)
{
    for (unsigned device = 0; opened && device < share.devices; device++) {
        struct gate *gate = &gates[device];
        pthread_mutex_lock(&gate->lock);
        if (gate->batches.open)
            gate->batches.ring[(gate->batches.first + gate->batches.count - 1) % BATCHES_MAX].measured = false;
        close_batch(gate, clock_now());
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
    if (atomic_fetch_add(&capturing, change) + change < 0)
        atomic_store(&capturing, 0);
}
