/* Operations of this process: submitted, asked about, let go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

static uint64_t sequence_of(const sg_moment *moment) {
    return moment == NULL || atomic_load(&moment->ended) ? 0 : moment->sequence;
}

static sg_pending pending_of(const sg_task *task, uint64_t now_ns) {
    return (sg_pending){
        .after = {sequence_of(task->after[0]), sequence_of(task->after[1])},
        .beyond = task->beyond,
        .submitted_ns = now_ns,
        .left_ns = task->duration_ns != 0 || task->engine == SG_ENGINE_NONE ? task->duration_ns : 1,
        .bytes = task->bytes,
        .engine = task->engine,
    };
}

static bool engine_is_free(const sg_model *model, sg_engine engine) {
    return engine == SG_ENGINE_COMPUTE ? model->running == 0 : model->copying[engine - SG_ENGINE_COPY_IN] == 0;
}

/* In scaled mode the CPU computes on the very clock that events tell. So what it took already counts as the engine's
 * time for the operation, as far as the engine stood idle meanwhile: else an event would tell both times and the
 * account of what was busy only one. */
static uint64_t passed_of(const struct sg_clock *clock, const sg_task *task) {
    uint64_t now = clock->model.now_ns, since = task->since_ns;
    if (since == 0 || task->engine == SG_ENGINE_NONE || task->duration_ns == SG_FOREVER ||
        !engine_is_free(&clock->model, task->engine))
        return 0;
    if (since < clock->last_end_ns[task->engine])
        since = clock->last_end_ns[task->engine];
    return now > since ? now - since : 0;
}

static void count_passed(sg_model *model, sg_member *own, sg_pending *operation, uint64_t ns) {
    if (ns == 0)
        return;
    operation->left_ns = operation->left_ns > ns ? operation->left_ns - ns : 1;
    if (operation->engine != SG_ENGINE_COMPUTE) {
        own->ledger.copy_ns += ns;
        return;
    }
    own->ledger.compute_ns += ns;
    model->compute_ns += ns;
    sg_recent_add(&model->recent, model->now_ns - ns, model->now_ns);
    sg_recent_add(&own->recent, model->now_ns - ns, model->now_ns);
}

/* Under clock->lock. -EBUSY: the process has as many pending as it may; *oldest is the first of them. A join
 * with nothing before it ends in the very step that makes it, so its moment is in place before that. */
static int try_submit(sg_device *device, const sg_task *task, sg_moment *moment, uint64_t *oldest) {
    struct sg_clock *clock = device->clock;
    for (;;) {
        int error;
        sg_member *own = sg_step_begin(device, &error);
        if (own == NULL)
            return error;
        if (device->facts.time == SG_TIME_VIRTUAL && sg_step_thread(device) == NULL)
            return -EUSERS;
        if (own->count == SG_MODEL_PENDING) {
            *oldest = own->first;
            return -EBUSY;
        }
        moment->sequence = own->first + own->count;
        sg_moment **place = &clock->moments[moment->sequence % SG_MODEL_PENDING];
        sg_pending *operation = &clock->model.pending[own->begin + own->count++];
        *operation = pending_of(task, clock->model.now_ns);
        count_passed(&clock->model, own, operation, passed_of(clock, task));
        /* In virtual mode the engines choose when nobody runs any more: who was faster must not matter. */
        if (device->facts.time == SG_TIME_VIRTUAL)
            sg_model_end_joins(&clock->model);
        else
            sg_model_settle(&clock->model, &device->facts);
        *place = sg_moment_keep(moment);
        if (sg_step_end(device))
            return 0;
        *place = NULL;
        sg_moment_drop(moment);
    }
}

int sg_model_submit(sg_device *device, const sg_task *task, sg_moment **end) {
    struct sg_clock *clock = sg_clock_of(device);
    sg_moment *moment = clock == NULL ? NULL : calloc(1, sizeof *moment);
    uint64_t oldest = 0;
    if (moment == NULL)
        return -ENOMEM;
    atomic_store(&moment->references, 1);
    pthread_mutex_lock(&clock->lock);
    int error = try_submit(device, task, moment, &oldest);
    while (error == -EBUSY) {
        sg_moment before = {.sequence = oldest};
        pthread_mutex_unlock(&clock->lock);
        error = sg_model_wait(device, &before);
        pthread_mutex_lock(&clock->lock);
        if (error == 0)
            error = try_submit(device, task, moment, &oldest);
    }
    pthread_mutex_unlock(&clock->lock);
    if (error != 0) {
        free(moment);
        return error;
    }
    *end = moment;
    return 0;
}

/* Under clock->lock: what the model says now, which is then published, since only that is final. */
static uint64_t look_up(sg_device *device, const sg_moment *moment) {
    struct sg_clock *clock = device->clock;
    uint64_t ended_ns;
    int error;
    do {
        const sg_member *own = sg_step_begin(device, &error);
        if (own == NULL)
            return SG_FOREVER;
        const sg_pending *operation = sg_model_operation(&clock->model, own, moment->sequence);
        ended_ns = operation == NULL || !operation->ended ? SG_FOREVER : operation->ended_ns;
    } while (!sg_step_end(device));
    return ended_ns;
}

uint64_t sg_moment_ns(sg_device *device, const sg_moment *moment) {
    struct sg_clock *clock = device->clock;
    if (moment == NULL)
        return 0;
    if (clock == NULL)
        return atomic_load(&moment->ended) ? moment->ended_ns : SG_FOREVER;
    pthread_mutex_lock(&clock->lock);
    uint64_t found = atomic_load(&moment->ended) ? moment->ended_ns : look_up(device, moment);
    pthread_mutex_unlock(&clock->lock);
    return found;
}

/* As above, of any process. */
static bool shared_ended(sg_device *device, const sg_shared_end *end) {
    struct sg_clock *clock = sg_clock_of(device);
    bool ended;
    int error;
    if (clock == NULL)
        return true;
    pthread_mutex_lock(&clock->lock);
    do {
        ended = sg_step_begin(device, &error) == NULL || sg_model_shared_ended(&clock->model, end);
    } while (error == 0 && !sg_step_end(device));
    pthread_mutex_unlock(&clock->lock);
    return ended;
}

bool sg_model_ended_shared(sg_device *device, const sg_shared_end *end) {
    if (end->sequence == 0 || shared_ended(device, end))
        return true;
    sg_model_not_yet(device);
    return shared_ended(device, end);
}

int sg_model_wait_shared(sg_device *device, const sg_shared_end *end) {
    sg_moment *moment;
    if (end->sequence == 0)
        return 0;
    int error = sg_model_submit(device, &(sg_task){.engine = SG_ENGINE_NONE, .beyond = *end}, &moment);
    if (error != 0)
        return error;
    error = sg_model_wait(device, moment);
    sg_moment_drop(moment);
    return error;
}

bool sg_model_hangs(sg_device *device) {
    struct sg_clock *clock = device->clock;
    bool hangs = false;
    int error;
    pthread_mutex_lock(&clock->lock);
    const sg_member *own = sg_step_begin(device, &error);
    for (uint32_t i = own != NULL ? own->head : 0; own != NULL && i < own->count; i++)
        hangs = hangs || clock->model.pending[own->begin + i].left_ns == SG_FOREVER;
    clock->intact = false;
    pthread_mutex_unlock(&clock->lock);
    return hangs;
}

int sg_model_release(sg_device *device) {
    struct sg_clock *clock = device->clock;
    int error = 0;
    if (clock == NULL)
        return 0;
    pthread_mutex_lock(&clock->lock);
    do {
        sg_member *own = sg_step_begin(device, &error);
        if (own == NULL)
            break;
        for (uint32_t i = own->head; i < own->count; i++)
            if (clock->model.pending[own->begin + i].left_ns == SG_FOREVER)
                clock->model.pending[own->begin + i].left_ns = 1;
    } while (!sg_step_end(device));
    pthread_mutex_unlock(&clock->lock);
    return error;
}

void sg_model_leave(sg_device *device) {
    struct sg_clock *clock = device->clock;
    int error;
    if (clock == NULL || device->slot == SG_NO_SLOT)
        return;
    pthread_mutex_lock(&clock->lock);
    do {
        if (sg_step_begin(device, &error) == NULL)
            break;
        int own = sg_model_find(&clock->model, (uint32_t)device->slot, device->incarnation);
        sg_model_dismiss(&clock->model, own);
        sg_model_let_pass(&clock->model, &device->facts, clock->wake);
    } while (!sg_step_end(device));
    for (int i = 0; i < SG_MODEL_PENDING; i++) {
        if (clock->moments[i] == NULL)
            continue;
        clock->moments[i]->ended_ns = clock->model.now_ns; /* it will not be worked on any more */
        atomic_store(&clock->moments[i]->ended, true);
        sg_moment_drop(clock->moments[i]);
        clock->moments[i] = NULL;
    }
    pthread_mutex_unlock(&clock->lock);
}
