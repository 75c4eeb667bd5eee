/* Turns: kernels of one device run one after another, and how long each took is written down.
 *
 * Two locks instead of one: a process first takes QUEUE, then RUN, then lets QUEUE go. With RUN alone,
 * a process that launches in a loop takes the lock again before the one that waits has woken, and the
 * neighbour starves. With QUEUE in front, the waiter stands next in line already.
 *
 * Nobody waits for ever. Kernels of different processes touch different memory, so turns are for time,
 * not for correctness, and a turn can be passed by: at once when its holder is stopped (SIGSTOP, a
 * debugger), after LONG_NS in any case. The kernel that passes runs beside the holder's. Its time counts
 * for its process; the device is busy through the holder already.
 *
 * Waiting is sleeping on `turn_changes`, which whoever changes something counts up. Its lowest bit says
 * that somebody sleeps. The locks alone decide: a wake-up lost to a kill costs one POLL_NS. Waiting in
 * fcntl instead would hand a turn to a process that has been stopped since. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "layout.h"
#include "model.h"

#define POLL_NS UINT64_C(10000000)
#define LOOK_NS UINT64_C(100000000) /* from here on, see whether the holder is stopped */
#define LONG_NS UINT64_C(1000000000) /* from here on, run beside the holder */

enum { SLEEPERS = 1, ONE_CHANGE = 2 };

/* What stands before us, never 0, and since when it has not changed. */
typedef struct {
    uint64_t what, since_ns, looked_ns;
    int slot;
} watched;

typedef struct {
    sg_device *device;
    int file;
    bool next; /* we hold QUEUE */
    bool queue_passed;
    watched runner, queue;
} waiting;

static void announce(sg_state *state) {
    if ((atomic_fetch_add(&state->turn_changes, ONE_CHANGE) & SLEEPERS) == 0)
        return;
    atomic_fetch_and(&state->turn_changes, ~(uint32_t)SLEEPERS);
    syscall(SYS_futex, &state->turn_changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void sleep_unless_changed(sg_state *state, uint32_t seen) {
    struct timespec longest = {.tv_nsec = POLL_NS};
    syscall(SYS_futex, &state->turn_changes, FUTEX_WAIT, seen, &longest, NULL, 0);
}

static bool is_held(int error) {
    return error == -EAGAIN || error == -EACCES || error == -EINTR;
}

/* True when what stands there is to be passed by. `passed` is what we passed by the last time. */
static bool is_stuck(const sg_device *device, watched *it, uint64_t what, int slot, uint64_t passed) {
    uint64_t now = sg_monotonic_ns();
    if (it->what != what)
        *it = (watched){.what = what, .since_ns = now, .looked_ns = now, .slot = slot};
    if (what == passed || now - it->since_ns >= LONG_NS)
        return true;
    if (now - it->looked_ns < LOOK_NS)
        return false;
    it->looked_ns = now;
    return slot >= 0 && slot < SG_MAXIMUM_PROCESSES && sg_slot_stopped(device, slot);
}

static bool runner_is_stuck(waiting *w) {
    sg_device *device = w->device;
    uint64_t since = atomic_load(&device->state->running_since_ns) | 1; /* 0 where the holder does not say */
    uint32_t slot = atomic_load(&device->state->running_slot);
    if (!is_stuck(device, &w->runner, since, slot < SG_MAXIMUM_PROCESSES ? (int)slot : -1,
                  device->passed.running_since_ns))
        return false;
    device->passed.running_since_ns = since;
    return true;
}

/* Who stands first in line: a slot, and how many turns its process has had, in one number; it moves on
 * with every turn. 1 where nobody says so. */
static uint64_t first_in_line(const sg_device *device, int *slot) {
    for (*slot = 0; *slot < SG_MAXIMUM_PROCESSES; ++*slot) {
        const sg_slot *one = &device->state->slots[*slot];
        if (*slot != device->slot && atomic_load(&one->used) == SG_SLOT_NEXT_IN_LINE)
            return atomic_load(&one->launches) * SG_MAXIMUM_PROCESSES + (unsigned)*slot + 2;
    }
    return 1;
}

static bool queue_is_stuck(waiting *w) {
    sg_device *device = w->device;
    int slot;
    uint64_t first = first_in_line(device, &slot);
    if (!is_stuck(device, &w->queue, first, slot, device->passed.next_in_line))
        return false;
    device->passed.next_in_line = first;
    return true;
}

static void mark_next(const sg_device *device, uint32_t from, uint32_t to) {
    if (device->slot != SG_NO_SLOT)
        atomic_compare_exchange_strong(&device->state->slots[device->slot].used, &from, to);
}

/* One try: 0 when the device is ours. */
static int step_forward(waiting *w) {
    if (!w->next && !w->queue_passed) {
        int error = sg_lock_try(w->file, SG_LOCK_QUEUE);
        if (error != 0)
            return error;
        w->next = true;
        mark_next(w->device, SG_SLOT_USED, SG_SLOT_NEXT_IN_LINE);
    }
    return sg_lock_try(w->file, SG_LOCK_RUN);
}

static void leave_queue(waiting *w) {
    if (!w->next)
        return;
    mark_next(w->device, SG_SLOT_NEXT_IN_LINE, SG_SLOT_USED);
    sg_lock_drop(w->file, SG_LOCK_QUEUE);
    announce(w->device->state);
}

/* 0: the device is ours; -EBUSY: it is held, and we go ahead all the same. */
static int wait_for_turn(waiting *w) {
    sg_state *state = w->device->state;
    int error = step_forward(w);
    while (is_held(error)) {
        uint32_t seen = atomic_fetch_or(&state->turn_changes, SLEEPERS) | SLEEPERS;
        error = step_forward(w); /* again: it may have changed before we said that we sleep */
        if (!is_held(error))
            break;
        if (runner_is_stuck(w))
            return -EBUSY;
        if (!w->next && !w->queue_passed && queue_is_stuck(w))
            w->queue_passed = true;
        else
            sleep_unless_changed(state, seen);
        error = step_forward(w);
    }
    return error;
}

int sg_turn_begin(sg_device *device) {
    pthread_mutex_lock(&device->turn);
    if (sg_model_used(device)) {
        device->turn_is_ours = false; /* the model shares the device out, in its own time */
        return 0;
    }
    waiting w = {.device = device, .file = sg_state_file(device)};
    int error = w.file < 0 ? w.file : wait_for_turn(&w);
    leave_queue(&w);
    if (error != 0 && error != -EBUSY) {
        pthread_mutex_unlock(&device->turn);
        return error;
    }
    device->turn_is_ours = error == 0;
    device->turn_began_ns = sg_monotonic_ns();
    if (device->turn_is_ours) {
        device->passed = (sg_passed){0};
        atomic_store(&device->state->running_slot, (uint32_t)device->slot);
        atomic_store(&device->state->running_since_ns, device->turn_began_ns);
    }
    return 0;
}

static void count_launch(sg_device *device, uint64_t instructions) {
    if (device->slot == SG_NO_SLOT)
        return;
    atomic_fetch_add(&device->state->slots[device->slot].launches, 1);
    atomic_fetch_add(&device->state->slots[device->slot].instructions, instructions);
}

static void count_time(sg_device *device, uint64_t instructions) {
    sg_state *state = device->state;
    uint64_t began = device->turn_began_ns, ended = sg_monotonic_ns();
    if (device->turn_is_ours) {
        sg_recent_add(&state->recent, began, ended);
        atomic_fetch_add(&state->busy_ns, ended - began);
    }
    if (device->slot == SG_NO_SLOT)
        return;
    sg_slot *slot = &state->slots[device->slot];
    sg_recent_add(&slot->recent, began, ended);
    atomic_fetch_add(&slot->busy_ns, ended - began);
    count_launch(device, instructions);
}

void sg_turn_end(sg_device *device, uint64_t instructions) {
    if (device->turn_is_ours)
        atomic_store(&device->state->running_since_ns, 0);
    if (sg_model_used(device))
        count_launch(device, instructions);
    else
        count_time(device, instructions);
    if (device->turn_is_ours) {
        int file = sg_state_file(device);
        if (file >= 0)
            sg_lock_drop(file, SG_LOCK_RUN);
        announce(device->state);
    }
    pthread_mutex_unlock(&device->turn);
}
