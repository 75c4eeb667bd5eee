/* The clock of a device: what time it is, and waiting for it.
 *
 * In virtual mode a thread takes part from its first operation or wait on. The clock stands still while one
 * of them runs; the last that begins to wait moves it on to the next moment at which somebody can go on, and
 * says so in the model: from then on that somebody runs, whether or not it has woken yet. A wake-up lost to
 * a kill costs one poll. Who never calls again is dealt with in watch.c. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "failures.h"

#define FIRST_POLLS_NS UINT64_C(10000000)
#define LATER_POLLS_NS UINT64_C(50000000)
#define FIRST_POLLS_END_NS UINT64_C(200000000)
#define PARTY_PATIENCE_NS UINT64_C(30000000000)
#define QUERY_NS 1000 /* what a question costs whose answer is "not yet" */
enum { MOST_PASSES = 1000000 };

static bool can_go_on(const sg_model *model, const sg_thread *thread) {
    if (thread->state == SG_THREAD_WAITS_TIME)
        return model->now_ns >= thread->until;
    return thread->state == SG_THREAD_WAITS_END &&
           sg_model_has_ended(model, &model->members[thread->member], thread->until);
}

static bool party_complete(const sg_model *model) {
    return (uint32_t)__builtin_popcountll(model->arrived) >= model->party;
}

/* Lets go on who can; whether anybody runs now. */
static bool somebody_runs(sg_model *model, bool *wake) {
    bool runs = false;
    for (uint32_t i = 0; i < model->thread_count; i++) {
        sg_thread *thread = &model->threads[i];
        if (can_go_on(model, thread)) {
            thread->state = SG_THREAD_RUNS;
            wake[model->members[thread->member].slot] = true;
        }
        runs = runs || thread->state == SG_THREAD_RUNS;
    }
    return runs;
}

static uint64_t next_change(const sg_model *model) {
    uint64_t next = sg_model_next_ns(model);
    for (uint32_t i = 0; i < model->thread_count; i++)
        if (model->threads[i].state == SG_THREAD_WAITS_TIME && model->threads[i].until < next)
            next = model->threads[i].until;
    return next;
}

static bool somebody_waits(const sg_model *model) {
    for (uint32_t i = 0; i < model->thread_count; i++)
        if (model->threads[i].state == SG_THREAD_WAITS_END || model->threads[i].state == SG_THREAD_WAITS_TIME)
            return true;
    return false;
}

void sg_model_let_pass(sg_model *model, const sg_facts *facts, bool *wake) {
    if (!party_complete(model))
        return;
    sg_model_end_joins(model);
    for (int i = 0; i < MOST_PASSES && !somebody_runs(model, wake) && somebody_waits(model); i++) {
        sg_model_settle(model, facts);
        uint64_t next = next_change(model);
        if (next == SG_FOREVER)
            return; /* all wait for what never ends */
        sg_model_advance(model, facts, next);
    }
}

/* ---- what time it is ---- */

uint64_t sg_model_now(sg_device *device) {
    if (device->facts.time != SG_TIME_VIRTUAL || device->state == NULL)
        return sg_monotonic_ns();
    return sg_model_published_ns(device);
}

static void sleep_until_real(uint64_t ns) {
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* ---- waiting in virtual mode ---- */

typedef struct {
    sg_thread_state state;
    uint64_t until;
    bool (*met)(void *); /* of a wait for a signal */
    void *of;
} awaited;

/* One try: 0 when the thread goes on, -EAGAIN when it has to sleep. Who signals does what is waited for before
 * that: either it is seen here, or this step comes first and the signal finds the thread waiting. */
static int wait_once(sg_device *device, const awaited *what) {
    struct sg_clock *clock = device->clock;
    int error;
    for (;;) {
        if (sg_step_begin(device, &error) == NULL)
            return error;
        sg_thread *thread = sg_step_thread(device);
        if (thread == NULL)
            return -EUSERS;
        size_t place = (size_t)(thread - clock->model.threads);
        thread->state = what->met != NULL && what->met(what->of) ? SG_THREAD_RUNS : what->state;
        thread->until = what->until;
        sg_model_let_pass(&clock->model, &device->facts, clock->wake);
        bool goes_on = clock->model.threads[place].state == SG_THREAD_RUNS;
        if (sg_step_end(device))
            return goes_on ? 0 : -EAGAIN;
    }
}

/* Somebody of a scripted arrival never came: time begins without it. */
static void give_up_party(sg_device *device) {
    int error;
    do {
        if (sg_step_begin(device, &error) == NULL)
            return;
        ((struct sg_clock *)device->clock)->model.party = 0;
    } while (!sg_step_end(device));
}

static void sleep_unless_woken(_Atomic uint32_t *word, uint32_t seen, uint64_t ns) {
    struct timespec longest = {.tv_nsec = (long)ns};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &longest, NULL, 0);
}

/* Kernels that were told to hang go on when that was taken back. */
static void release_hung(sg_device *device) {
    sg_failures now;
    sg_failures_now(device, &now);
    if (!now.hang || now.lost)
        (void)sg_model_release(device);
}

static int wait_virtual(sg_device *device, const awaited *what) {
    struct sg_clock *clock = sg_clock_of(device);
    sg_watch *watch = NULL;
    int error = -EAGAIN;
    if (clock == NULL || device->slot == SG_NO_SLOT || device->slot >= SG_MODEL_MEMBERS)
        return -EINVAL;
    _Atomic uint32_t *word = &device->state->wake[device->slot];
    uint64_t began = sg_monotonic_ns();
    while (error == -EAGAIN) {
        uint32_t seen = atomic_load(word);
        pthread_mutex_lock(&clock->lock);
        error = wait_once(device, what);
        bool changed = false;
        if (error == -EAGAIN) {
            if (watch == NULL && (watch = calloc(1, sizeof *watch)) != NULL)
                watch->began_ns = began;
            changed = watch != NULL && sg_watch_look(device, watch);
            if (sg_monotonic_ns() - began > PARTY_PATIENCE_NS && !party_complete(&clock->model))
                give_up_party(device);
        }
        pthread_mutex_unlock(&clock->lock);
        if (error == -EAGAIN && sg_model_hangs(device))
            release_hung(device);
        if (error == -EAGAIN && !changed)
            sleep_unless_woken(word, seen, sg_monotonic_ns() - began < FIRST_POLLS_END_NS ? FIRST_POLLS_NS
                                                                                           : LATER_POLLS_NS);
    }
    free(watch);
    return error;
}

/* ---- waiting in scaled mode ---- */

/* When it will end if nobody submits more, at most one poll ahead. Spoils the private model. */
static uint64_t foresee(sg_device *device, uint64_t sequence, uint64_t limit) {
    struct sg_clock *clock = device->clock;
    sg_model *model = &clock->model;
    int own = sg_model_find(model, (uint32_t)device->slot, device->incarnation);
    clock->intact = false;
    while (own != SG_NOBODY && model->now_ns < limit && !sg_model_has_ended(model, &model->members[own], sequence)) {
        uint64_t next = sg_model_next_ns(model);
        sg_model_advance(model, &device->facts, next < limit ? next : limit);
    }
    return model->now_ns;
}

static int wait_scaled(sg_device *device, uint64_t sequence) {
    struct sg_clock *clock = device->clock;
    for (;;) {
        int error;
        pthread_mutex_lock(&clock->lock);
        sg_member *own = sg_step_begin(device, &error);
        bool ended = own != NULL && sg_model_has_ended(&clock->model, own, sequence);
        bool published = own != NULL && sg_step_end(device);
        uint64_t until = 0;
        if (published && !ended)
            until = foresee(device, sequence, sg_monotonic_ns() + FIRST_POLLS_NS);
        pthread_mutex_unlock(&clock->lock);
        if (own == NULL || (ended && published))
            return error;
        if (until != 0)
            sleep_until_real(until);
        if (sg_model_hangs(device))
            release_hung(device);
    }
}

int sg_model_wait_until(sg_device *device, uint64_t ns) {
    if (device->facts.time == SG_TIME_VIRTUAL)
        return wait_virtual(device, &(awaited){SG_THREAD_WAITS_TIME, ns, NULL, NULL});
    sleep_until_real(ns);
    return 0;
}

int sg_model_wait(sg_device *device, const sg_moment *moment) {
    if (moment == NULL || atomic_load(&moment->ended))
        return 0;
    return device->facts.time == SG_TIME_VIRTUAL
               ? wait_virtual(device, &(awaited){SG_THREAD_WAITS_END, moment->sequence, NULL, NULL})
               : wait_scaled(device, moment->sequence);
}

int sg_model_wait_signal(sg_device *device, uint64_t key, bool (*met)(void *), void *of) {
    return wait_virtual(device, &(awaited){SG_THREAD_WAITS_SIGNAL, key, met, of});
}

void sg_model_signal(sg_device *device, uint64_t key) {
    struct sg_clock *clock = device->facts.time == SG_TIME_VIRTUAL ? sg_clock_of(device) : NULL;
    int error;
    if (clock == NULL)
        return;
    pthread_mutex_lock(&clock->lock);
    do {
        if (sg_step_begin(device, &error) == NULL)
            break;
        for (uint32_t i = 0; i < clock->model.thread_count; i++) {
            sg_thread *thread = &clock->model.threads[i];
            if (thread->state != SG_THREAD_WAITS_SIGNAL || thread->until != key)
                continue;
            thread->state = SG_THREAD_RUNS;
            clock->wake[clock->model.members[thread->member].slot] = true;
        }
    } while (!sg_step_end(device));
    pthread_mutex_unlock(&clock->lock);
}

void sg_model_not_yet(sg_device *device) {
    if (device->facts.time == SG_TIME_VIRTUAL)
        (void)sg_model_wait_until(device, sg_model_now(device) + QUERY_NS);
}

bool sg_model_ended(sg_device *device, const sg_moment *moment) {
    if (sg_moment_ns(device, moment) != SG_FOREVER)
        return true;
    if (device->facts.time != SG_TIME_VIRTUAL)
        return false;
    sg_model_not_yet(device);
    return sg_moment_ns(device, moment) != SG_FOREVER;
}

void sg_model_step_aside(sg_device *device) {
    struct sg_clock *clock = device->clock;
    int error;
    if (clock == NULL || device->facts.time != SG_TIME_VIRTUAL)
        return;
    pthread_mutex_lock(&clock->lock);
    do {
        if (sg_step_begin(device, &error) == NULL)
            break;
        sg_thread *thread = sg_step_thread(device);
        if (thread != NULL)
            sg_model_remove_thread(&clock->model, thread);
        sg_model_let_pass(&clock->model, &device->facts, clock->wake);
    } while (!sg_step_end(device));
    pthread_mutex_unlock(&clock->lock);
}
