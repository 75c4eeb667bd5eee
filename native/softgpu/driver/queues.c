/* The queues of streams and the threads that serve them. See queues.h for the order they keep.
 *
 * One lock for all queues: it is held for a few instructions, and an operation that waits for three
 * streams sees all three at one moment. It is a leaf; nothing is performed and no user code is called
 * under it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "failing.h"
#include "timeline.h"

enum { LINGER_NS = 50 * 1000 * 1000 }; /* how long an idle thread stays */

typedef struct work {
    uint64_t number;
    sg_operation operation;
    sg_fence *fences;
    size_t fence_count;
    struct work *next;
} work;

struct sg_queue {
    CUcontext context;
    unsigned references; /* the stream's, the thread's, one a fence and one of the serving thread */
    bool apart;
    bool served;
    bool by_caller; /* what is being performed is performed by the call that submitted it: it is brief */
    uint64_t submitted, performing, completed; /* numbers; 0: none */
    work *first, **last;
    sg_moment *tail; /* when the last one performed ends, in model time */
    pthread_cond_t arrived;
    sg_queue *next; /* in the context */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* some queue completed something */
static unsigned waiting;                                    /* threads at `progress` */
static uint64_t newest;                                     /* of all numbers given */

/* ---- under `lock` ---- */

static bool passed(const sg_fence *fence) {
    return fence->queue == NULL || fence->queue->completed >= fence->number;
}

static sg_fence now_of(sg_queue *queue) {
    return (sg_fence){queue, queue->submitted};
}

static void await_progress(void) {
    waiting++;
    pthread_cond_wait(&progress, &lock);
    waiting--;
}

static void complete(sg_queue *queue) {
    queue->completed = queue->performing;
    queue->performing = 0;
    queue->by_caller = false;
    if (waiting > 0)
        pthread_cond_broadcast(&progress);
}

static void release(sg_queue *queue) {
    if (queue == NULL || --queue->references > 0)
        return;
    for (sg_queue **at = &queue->context->queues; *at != NULL; at = &(*at)->next)
        if (*at == queue) {
            *at = queue->next;
            break;
        }
    pthread_cond_destroy(&queue->arrived);
    sg_moment_drop(queue->tail);
    free(queue);
}

/* What the order of default streams adds: the legacy stream waits for all blocking streams, and they
 * for it. The fences hold no references: whoever keeps one takes it. */
static bool ordered(const sg_queue *queue, const sg_queue *other) {
    sg_queue *legacy = queue->context->legacy;
    return other != queue && !other->apart && !queue->apart && (queue == legacy || other == legacy);
}

static size_t count_unpassed(sg_queue *queue, const sg_operation *operation) {
    const CUevent *events = NULL;
    size_t count = 0, waits = operation != NULL ? sg_operation_waits(operation, &events) : 0;
    for (size_t i = 0; i < waits; i++)
        count += !passed(&events[i]->fence);
    for (sg_queue *other = queue->context->queues; other != NULL; other = other->next)
        count += ordered(queue, other) && other->completed < other->submitted;
    return count;
}

static bool soon(const sg_queue *queue) {
    return queue->first == NULL && (queue->performing == 0 || queue->by_caller);
}

/* All that the operation has to wait for is what other threads are performing in their own calls. It is
 * faster to wait for them than to wake a thread, and what returns is done, as if there were no others. */
static bool all_soon(const sg_queue *queue, const sg_operation *operation) {
    const CUevent *events;
    for (size_t i = sg_operation_waits(operation, &events); i-- > 0;)
        if (!passed(&events[i]->fence) && !soon(events[i]->fence.queue))
            return false;
    for (const sg_queue *other = queue->context->queues; other != NULL; other = other->next)
        if ((other == queue || ordered(queue, other)) && !soon(other))
            return false;
    return true;
}

static void add_fence(work *item, sg_fence fence) {
    if (passed(&fence))
        return;
    fence.queue->references++;
    item->fences[item->fence_count++] = fence;
}

static bool ready(const sg_queue *queue, const work *item) {
    for (size_t i = 0; i < item->fence_count; i++)
        if (!passed(&item->fences[i]))
            return false;
    return queue->performing == 0;
}

/* Is there work in it as old as `limit`, not done yet? */
static bool behind(const sg_queue *queue, uint64_t limit) {
    if (queue->performing != 0)
        return queue->performing <= limit;
    return queue->first != NULL && queue->first->number <= limit;
}

/* ---- making ---- */

sg_queue *sg_queue_make(CUcontext context, bool apart) {
    sg_queue *queue = calloc(1, sizeof *queue);
    pthread_condattr_t monotonic;
    if (queue == NULL)
        return NULL;
    queue->context = context;
    queue->references = 1;
    queue->apart = apart;
    queue->last = &queue->first;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->arrived, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_lock(&lock);
    queue->next = context->queues;
    context->queues = queue;
    pthread_mutex_unlock(&lock);
    return queue;
}

void sg_queue_release(sg_queue *queue) {
    pthread_mutex_lock(&lock);
    release(queue);
    pthread_mutex_unlock(&lock);
}

CUcontext sg_queue_context(const sg_queue *queue) {
    return queue->context;
}

bool sg_queue_apart(const sg_queue *queue) {
    return queue->apart;
}

/* ---- the thread of a queue ---- */

static void discard(work *item) {
    for (size_t i = 0; i < item->fence_count; i++)
        release(item->fences[i].queue);
    free(item->fences);
    free(item);
}

/* Under `lock`; NULL when nothing came for a while. */
static work *take(sg_queue *queue) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LINGER_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (queue->first == NULL || !ready(queue, queue->first))
        sg_model_step_aside(queue->context->gpu->device);
    while (queue->first == NULL)
        if (pthread_cond_timedwait(&queue->arrived, &lock, &until) == ETIMEDOUT && queue->first == NULL)
            return NULL;
    work *item = queue->first;
    while (!ready(queue, item))
        await_progress();
    queue->performing = item->number;
    queue->first = item->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return item;
}

/* An operation that fails after its call returned ends its context: nobody else can be told. */
static void perform(sg_queue *queue, work *item) {
    CUresult result = CUDA_SUCCESS;
    if (atomic_load(&queue->context->sticky) == CUDA_SUCCESS || sg_operation_survives(&item->operation))
        result = sg_timeline_perform(queue, &item->operation);
    if (result != CUDA_SUCCESS)
        sg_context_poison(queue->context, result);
    sg_operation_drop(&item->operation);
}

static void *serve(void *argument) {
    sg_queue *queue = argument;
    (void)sg_current_push(queue->context); /* what is logged names this device */
    pthread_mutex_lock(&lock);
    for (work *item; (item = take(queue)) != NULL;) {
        pthread_mutex_unlock(&lock);
        perform(queue, item);
        pthread_mutex_lock(&lock);
        discard(item);
        complete(queue);
    }
    queue->served = false;
    release(queue);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Under `lock`. The thread takes no signals: they are the program's. */
static bool start(sg_queue *queue) {
    sigset_t all, before;
    pthread_t thread;
    if (queue->served)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    queue->served = pthread_create(&thread, NULL, serve, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (queue->served) {
        queue->references++;
        pthread_detach(thread);
    }
    return queue->served;
}

/* ---- submitting ---- */

/* Under `lock`. */
static CUresult append(sg_queue *queue, const sg_operation *operation, size_t fences) {
    const CUevent *events;
    work *item = calloc(1, sizeof *item);
    if (item == NULL || (fences > 0 && (item->fences = calloc(fences, sizeof *item->fences)) == NULL) ||
        !sg_operation_keep(&item->operation, operation)) {
        if (item != NULL)
            free(item->fences);
        free(item);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!start(queue)) {
        sg_operation_drop(&item->operation);
        discard(item);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    for (size_t i = sg_operation_waits(operation, &events); i-- > 0;)
        add_fence(item, events[i]->fence);
    for (sg_queue *other = queue->context->queues; other != NULL; other = other->next)
        if (ordered(queue, other))
            add_fence(item, now_of(other));
    item->number = queue->submitted = ++newest;
    *queue->last = item;
    queue->last = &item->next;
    pthread_cond_signal(&queue->arrived);
    return CUDA_SUCCESS;
}

/* Under `lock`. From now on the events mean the newest work of this queue. */
static void mark_events(sg_queue *queue, const sg_operation *operation) {
    const CUevent *events;
    for (size_t i = sg_operation_records(operation, &events); i-- > 0;) {
        release(events[i]->fence.queue);
        queue->references++;
        events[i]->fence = now_of(queue);
    }
}

/* Under `lock`, which it lets go while it performs. */
static CUresult perform_here(sg_queue *queue, const sg_operation *operation) {
    queue->performing = queue->submitted = ++newest;
    queue->by_caller = true;
    mark_events(queue, operation);
    pthread_mutex_unlock(&lock);
    CUresult result = sg_timeline_perform(queue, operation);
    pthread_mutex_lock(&lock);
    complete(queue);
    return result;
}

/* Under `lock`. */
static CUresult leave_to_thread(sg_queue *queue, const sg_operation *operation, size_t fences) {
    CUresult result = append(queue, operation, fences);
    if (result != CUDA_SUCCESS)
        return result;
    mark_events(queue, operation);
    uint64_t limit = queue->submitted;
    if (operation->awaited)
        sg_model_step_aside(queue->context->gpu->device);
    while (operation->awaited && behind(queue, limit))
        await_progress();
    return CUDA_SUCCESS;
}

CUresult sg_queue_submit(sg_queue *queue, const sg_operation *operation) {
    bool brief = sg_operation_brief(operation);
    pthread_mutex_lock(&lock);
    queue->references++;
    size_t fences = count_unpassed(queue, operation);
    bool here = brief && fences == 0 && queue->completed == queue->submitted;
    while (brief && !here && all_soon(queue, operation)) {
        await_progress();
        fences = count_unpassed(queue, operation);
        here = fences == 0 && queue->completed == queue->submitted;
    }
    CUresult result = here ? perform_here(queue, operation) : leave_to_thread(queue, operation, fences);
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS && operation->awaited)
        result = sg_timeline_wait(queue->context, queue);
    sg_queue_release(queue);
    return result;
}

/* ---- waiting ---- */

bool sg_queue_idle(sg_queue *queue) {
    pthread_mutex_lock(&lock);
    bool idle = queue->completed == queue->submitted && count_unpassed(queue, NULL) == 0;
    pthread_mutex_unlock(&lock);
    return idle && sg_timeline_ended(queue);
}

/* Some queue of the context (of those ordered with `queue`, where that is given) with work as old as
 * `limit`. */
static bool any_behind(CUcontext context, const sg_queue *queue, uint64_t limit) {
    for (sg_queue *other = context->queues; other != NULL; other = other->next)
        if ((queue == NULL || other == queue || ordered(queue, other)) && behind(other, limit))
            return true;
    return false;
}

void sg_queue_drain(sg_queue *queue) {
    pthread_mutex_lock(&lock);
    queue->references++;
    uint64_t limit = newest;
    if (any_behind(queue->context, queue, limit))
        sg_model_step_aside(queue->context->gpu->device);
    while (any_behind(queue->context, queue, limit))
        await_progress();
    pthread_mutex_unlock(&lock);
    (void)sg_timeline_wait(queue->context, queue);
    sg_failing_check(queue->context);
    sg_queue_release(queue);
}

void sg_context_drain(CUcontext context) {
    pthread_mutex_lock(&lock);
    uint64_t limit = newest;
    if (any_behind(context, NULL, limit))
        sg_model_step_aside(context->gpu->device);
    while (any_behind(context, NULL, limit))
        await_progress();
    pthread_mutex_unlock(&lock);
    (void)sg_timeline_wait(context, NULL);
    sg_failing_check(context); /* what happened meanwhile */
}

bool sg_fence_passed(const sg_fence *fence) {
    pthread_mutex_lock(&lock);
    bool is = passed(fence);
    pthread_mutex_unlock(&lock);
    return is;
}

void sg_fence_await(const sg_fence *given) {
    pthread_mutex_lock(&lock);
    sg_fence fence = *given; /* an event recorded again meanwhile does not prolong the wait */
    if (fence.queue != NULL)
        fence.queue->references++;
    if (!passed(&fence))
        sg_model_step_aside(fence.queue->context->gpu->device);
    while (!passed(&fence))
        await_progress();
    release(fence.queue);
    pthread_mutex_unlock(&lock);
}

void sg_fence_clear(sg_fence *fence) {
    pthread_mutex_lock(&lock);
    release(fence->queue);
    *fence = (sg_fence){0};
    pthread_mutex_unlock(&lock);
}

/* ---- model time ---- */

static bool counts(const sg_queue *queue, const sg_queue *other) {
    return other->tail != NULL && (queue == NULL || other == queue || ordered(queue, other));
}

sg_moment **sg_queue_moments(CUcontext context, const sg_queue *queue, size_t *count) {
    size_t room = 1;
    *count = 0;
    pthread_mutex_lock(&lock);
    for (sg_queue *other = context->queues; other != NULL; other = other->next)
        room += counts(queue, other);
    sg_moment **moments = room > 1 || context->rest != NULL ? calloc(room, sizeof(sg_moment *)) : NULL;
    for (sg_queue *other = context->queues; moments != NULL && other != NULL; other = other->next)
        if (counts(queue, other))
            moments[(*count)++] = sg_moment_keep(other->tail);
    if (moments != NULL && context->rest != NULL && (queue == NULL || queue == context->legacy))
        moments[(*count)++] = sg_moment_keep(context->rest);
    pthread_mutex_unlock(&lock);
    return moments;
}

void sg_queue_set_moment(sg_queue *queue, sg_moment *end) {
    pthread_mutex_lock(&lock);
    sg_moment_drop(queue->tail);
    queue->tail = end;
    pthread_mutex_unlock(&lock);
}

sg_moment *sg_queue_swap_rest(CUcontext context, sg_moment *rest) {
    pthread_mutex_lock(&lock);
    sg_moment *old = context->rest;
    context->rest = rest;
    pthread_mutex_unlock(&lock);
    return old;
}

void sg_event_set_moment(CUevent event, sg_moment *moment) {
    pthread_mutex_lock(&lock);
    sg_moment_drop(event->moment);
    event->moment = moment;
    pthread_mutex_unlock(&lock);
}

sg_moment *sg_event_moment(CUevent event) {
    pthread_mutex_lock(&lock);
    sg_moment *moment = sg_moment_keep(event->moment);
    pthread_mutex_unlock(&lock);
    return moment;
}

/* In a forked child: the threads are the parent's, and nothing is ever submitted here again. */
void sg_queues_forget(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&progress, NULL);
}
