/* Steps of the shared model: taken by copy and swap, again where somebody was faster. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

#define DEAD_EVERY_NS UINT64_C(10000000)
enum { ORDER_UNSCRIPTED = 1000, LARGEST_PARTY = 64 };

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

struct sg_clock *sg_clock_of(sg_device *device) {
    struct sg_clock *clock = atomic_load(&device->clock);
    if (clock != NULL)
        return clock;
    pthread_mutex_lock(&making);
    clock = atomic_load(&device->clock);
    if (clock == NULL && (clock = calloc(1, sizeof *clock)) != NULL) {
        pthread_mutex_init(&clock->lock, NULL);
        atomic_store(&device->clock, clock);
    }
    pthread_mutex_unlock(&making);
    return clock;
}

/* Threads of the parent may have held any lock of it; what it had is the parent's. */
void sg_model_forget(sg_device *device) {
    pthread_mutex_init(&making, NULL);
    atomic_store(&device->clock, NULL);
}

/* A scripted arrival, for tests: "2/3" is the second of three. Time begins when all are there, and where
 * nothing else decides who is first, the place does. */
static void read_place(uint32_t *place, uint32_t *party) {
    unsigned second, of;
    char rest;
    const char *text = getenv("ALIQUOT_SOFTGPU_ARRIVAL");
    *place = *party = 0;
    if (text == NULL || sscanf(text, "%u/%u%c", &second, &of, &rest) != 2 || second == 0 || second > of ||
        of > LARGEST_PARTY)
        return;
    *place = second;
    *party = of;
}

static void take_out_dead(sg_device *device, struct sg_clock *clock) {
    for (uint32_t i = clock->model.member_count; i-- > 0;)
        if (!sg_member_alive(device, &clock->model.members[i]))
            sg_model_dismiss(&clock->model, (int)i);
}

static sg_member *enter(sg_device *device, struct sg_clock *clock) {
    uint32_t place, party, slot = (uint32_t)device->slot;
    const sg_slot *shared = &device->state->slots[slot];
    read_place(&place, &party);
    sg_member member = {.slot = slot, .incarnation = device->incarnation, .first = 1};
    member.order = place != 0 ? place : ORDER_UNSCRIPTED + slot;
    member.ledger.pid = atomic_load(&shared->pid);
    member.ledger.pid_namespace = atomic_load(&shared->pid_namespace);
    member.ledger.start_ticks = atomic_load(&shared->start_ticks);
    memcpy(member.ledger.name, shared->name, sizeof member.ledger.name);
    sg_model *model = &clock->model;
    take_out_dead(device, clock);
    if (model->member_count == 0)
        model->arrived = model->party = 0;
    if (place != 0) {
        model->arrived |= UINT64_C(1) << (place - 1);
        model->party = party > model->party ? party : model->party;
    }
    int index = sg_model_admit(model, &member);
    return index == SG_NOBODY ? NULL : &model->members[index];
}

/* The end of each operation goes to who holds its moment; ended ones at the front make room. */
static void collect(struct sg_clock *clock, sg_member *member) {
    for (uint32_t i = 0; i < member->count; i++) {
        const sg_pending *operation = &clock->model.pending[member->begin + i];
        sg_moment **moment = &clock->moments[(member->first + i) % SG_MODEL_PENDING];
        if (!operation->ended || *moment == NULL)
            continue;
        (*moment)->ended_ns = operation->ended_ns;
        if (operation->engine < SG_ENGINES && operation->ended_ns > clock->last_end_ns[operation->engine])
            clock->last_end_ns[operation->engine] = operation->ended_ns;
        atomic_store(&(*moment)->ended, true);
        sg_moment_drop(*moment);
        *moment = NULL;
    }
    member->first += member->head;
    member->begin += member->head;
    member->count -= member->head;
    member->head = 0;
}

/* The machine was started anew where its clock is behind ours. */
static void catch_up(sg_device *device, sg_model *model) {
    uint64_t now = sg_monotonic_ns();
    if (now < model->now_ns)
        model->now_ns = model->slice_end_ns = model->switch_end_ns = now;
    sg_model_advance(model, &device->facts, now);
}

static void read_model(sg_device *device, struct sg_clock *clock) {
    uint64_t now = sg_model_published(device);
    if (clock->intact && clock->published == now)
        return;
    while (!sg_model_copy_in(device, now, &clock->model, device->slot))
        now = sg_model_published(device);
    clock->published = now;
}

/* In scaled mode nobody waits for the others, so the dead have to be looked for here. */
static void remove_dead(sg_device *device, struct sg_clock *clock) {
    uint64_t now = sg_monotonic_ns();
    if (clock->model.member_count < 2 || now - clock->dead_looked_ns < DEAD_EVERY_NS)
        return;
    clock->dead_looked_ns = now;
    take_out_dead(device, clock);
}

sg_member *sg_step_begin(sg_device *device, int *error) {
    struct sg_clock *clock = atomic_load(&device->clock);
    *error = 0;
    if (device->slot == SG_NO_SLOT || clock == NULL) {
        *error = -EINVAL;
        return NULL;
    }
    read_model(device, clock);
    int index = sg_model_find(&clock->model, (uint32_t)device->slot, device->incarnation);
    if (index != SG_NOBODY && clock->model.members[index].begin > SG_MODEL_MEMBERS * SG_MODEL_PENDING / 2) {
        clock->intact = false;
        read_model(device, clock); /* closes the holes */
        index = sg_model_find(&clock->model, (uint32_t)device->slot, device->incarnation);
    }
    clock->intact = false;
    memset(clock->wake, 0, sizeof clock->wake);
    remove_dead(device, clock);
    if (index != SG_NOBODY)
        index = sg_model_find(&clock->model, (uint32_t)device->slot, device->incarnation);
    if (device->facts.time == SG_TIME_SCALED)
        catch_up(device, &clock->model);
    sg_member *member = index != SG_NOBODY ? &clock->model.members[index] : enter(device, clock);
    if (member == NULL)
        *error = -EUSERS;
    return member;
}

static void wake(sg_device *device, const bool *slots) {
    for (int i = 0; i < SG_MODEL_MEMBERS; i++) {
        if (!slots[i])
            continue;
        atomic_fetch_add(&device->state->wake[i], 1);
        syscall(SYS_futex, &device->state->wake[i], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

bool sg_step_end(sg_device *device) {
    struct sg_clock *clock = atomic_load(&device->clock);
    if (!sg_model_publish(device, &clock->model, &clock->published))
        return false;
    clock->intact = true;
    /* Only what is published has ended for good. */
    int own = sg_model_find(&clock->model, (uint32_t)device->slot, device->incarnation);
    if (own != SG_NOBODY)
        collect(clock, &clock->model.members[own]);
    wake(device, clock->wake);
    return true;
}

static uint64_t this_thread(void) {
    static _Thread_local uint64_t known;
    if (known == 0)
        known = (uint64_t)syscall(SYS_gettid);
    return known;
}

sg_thread *sg_step_thread(sg_device *device) {
    struct sg_clock *clock = atomic_load(&device->clock);
    int own = sg_model_find(&clock->model, (uint32_t)device->slot, device->incarnation);
    if (own == SG_NOBODY)
        return NULL;
    sg_thread *thread = sg_model_thread(&clock->model, (uint32_t)own, this_thread());
    if (thread == NULL)
        thread = sg_model_add_thread(&clock->model, (uint32_t)own, this_thread());
    if (thread != NULL)
        thread->state = SG_THREAD_RUNS;
    return thread;
}

uint64_t sg_moment_sequence(const sg_moment *moment) {
    return moment->sequence;
}

sg_moment *sg_moment_keep(sg_moment *moment) {
    if (moment != NULL)
        atomic_fetch_add(&moment->references, 1);
    return moment;
}

void sg_moment_drop(sg_moment *moment) {
    if (moment != NULL && atomic_fetch_sub(&moment->references, 1) == 1)
        free(moment);
}
