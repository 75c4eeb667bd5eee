/* Standing in line for the turn on a device: turns.h.
 *
 * Two locks instead of one: a process first takes the first place in line, then the turn, then lets the place
 * go. With the turn alone, a process that launches in a loop takes it again before the one that waits has woken,
 * and the neighbour starves. So the waiter stands next in line already. The place goes to who has waited longest,
 * and not to who wakes first; where that one does not come for a slice, to another.
 *
 * Nobody waits for ever. Who has the turn and does not look whether others wait loses it: soon when it is
 * stopped (SIGSTOP, a debugger), after LONG_NS in any case, where slices are above half a second after two of them.
 * Who stands first in line and does not move loses its place in the same way: places are numbered as turns are.
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

#include "turns.h"

#define POLL_NS UINT64_C(10000000)
/* Of who is next, to see that the turn is kept without a kernel. It is not woken for that: it would be with every
 * kernel of the holder, and on a busy machine take the CPU from the one whose next kernel it waits for. */
#define NEXT_POLL_NS UINT64_C(250000)
#define LOOK_NS UINT64_C(100000000) /* from here on, see whether the holder is stopped */
#define LONG_NS UINT64_C(1000000000) /* from here on, take the turn away */

enum { SLEEPERS = 1, ONE_CHANGE = 2 };

/* What stands before us, never 0, and since when it has not changed. */
typedef struct {
    uint64_t what, since_ns, looked_ns;
    int slot;
} watched;

typedef struct {
    sg_device *device;
    int file;
    bool next;      /* we hold the first place, */
    uint64_t place; /* of this number */
    uint64_t since_ns;
    uint64_t elder_since_ns, elder_seen_ns; /* who has waited longer, and since when the place is free for it */
    watched runner, first;
} waiting;

static int place_byte(uint64_t number) {
    return SG_LOCK_LINE + (int)(number % SG_LOCK_NUMBERS);
}

void sg_line_announce(sg_state *state) {
    if ((atomic_fetch_add(&state->turn_changes, ONE_CHANGE) & SLEEPERS) == 0)
        return;
    atomic_fetch_and(&state->turn_changes, ~(uint32_t)SLEEPERS);
    syscall(SYS_futex, &state->turn_changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool sg_line_sleeps(const sg_state *state) {
    return (atomic_load_explicit(&state->turn_changes, memory_order_relaxed) & SLEEPERS) != 0;
}

bool sg_line_waits(sg_device *device) {
    int file = sg_state_file(device);
    if (file >= 0 && sg_lock_held_elsewhere(file, place_byte(atomic_load(&device->state->line))))
        return true;
    atomic_fetch_and(&device->state->turn_changes, ~(uint32_t)SLEEPERS); /* one that was killed */
    return false;
}

static bool is_held(int error) {
    return error == -EAGAIN || error == -EACCES || error == -EINTR;
}

/* ---- the turn ---- */

/* How long its holder may still keep it without a kernel; 0: it may not. */
static uint64_t kept_for(const sg_state *state, uint64_t word) {
    uint64_t until = atomic_load(&state->kept_until_ns), now = sg_monotonic_ns();
    return sg_turn_word_kept(word) && until > now && until - now <= SG_TURN_KEEP_NS ? until - now : 0;
}

/* False: somebody else was faster. */
static bool take_away(sg_device *device, uint64_t word) {
    sg_state *state = device->state;
    if (!atomic_compare_exchange_strong(&state->turn, &word, sg_turn_word(sg_turn_word_number(word) + 1, false)))
        return false;
    uint64_t since = atomic_load(&state->running_since_ns);
    uint32_t slot = atomic_load(&state->running_slot);
    if (since != 0)
        sg_turn_charge(device, slot < SG_MAXIMUM_PROCESSES ? (int)slot : SG_NO_SLOT, since);
    return true;
}

static int take_turn(waiting *w) {
    sg_state *state = w->device->state;
    uint64_t word = atomic_load(&state->turn);
    if (sg_turn_word_kept(word) && kept_for(state, word) == 0 && take_away(w->device, word))
        word = atomic_load(&state->turn);
    uint64_t number = sg_turn_word_number(word);
    int error = sg_lock_try(w->file, sg_turn_byte(number));
    if (error != 0)
        return error;
    /* It may have been counted on meanwhile. A byte that is free though its turn is kept was a dead process's. */
    if (!atomic_compare_exchange_strong(&state->turn, &word, sg_turn_word(number, false))) {
        sg_lock_drop(w->file, sg_turn_byte(number));
        return -EAGAIN;
    }
    w->device->turn.number = number;
    w->device->turn.held = SG_TURN_OURS;
    return 0;
}

/* ---- who does not move ---- */

/* Where slices are long, who has one computes for that long without anything to be seen. */
static uint64_t patience_ns(const sg_device *device) {
    uint64_t two_slices = 2 * (uint64_t)device->facts.time_slice_ns;
    return two_slices > LONG_NS ? two_slices : LONG_NS;
}

/* True when what stands there is to be passed by. */
static bool is_stuck(const sg_device *device, watched *it, uint64_t what, int slot) {
    uint64_t now = sg_monotonic_ns();
    if (it->what != what)
        *it = (watched){.what = what, .since_ns = now, .looked_ns = now, .slot = slot};
    if (now - it->since_ns >= patience_ns(device))
        return true;
    if (now - it->looked_ns < LOOK_NS)
        return false;
    it->looked_ns = now;
    return slot >= 0 && slot < SG_MAXIMUM_PROCESSES && sg_slot_stopped(device, slot);
}

static bool runner_is_stuck(waiting *w, uint64_t word) {
    sg_state *state = w->device->state;
    uint64_t since = atomic_load(&state->running_since_ns) | 1; /* 0 where the holder does not say */
    uint32_t slot = atomic_load(&state->running_slot);
    if (sg_turn_word_kept(word))
        return false; /* take_turn sees to that */
    return is_stuck(w->device, &w->runner, since, slot < SG_MAXIMUM_PROCESSES ? (int)slot : SG_NO_SLOT);
}

/* Who stands first in line is told from the one that will by how many turns its process has had. */
static bool first_is_stuck(waiting *w, uint64_t place) {
    const sg_state *state = w->device->state;
    uint32_t slot = atomic_load(&state->line_slot);
    uint64_t turns = slot < SG_MAXIMUM_PROCESSES ? atomic_load(&state->slots[slot].turns) : 0;
    uint64_t what = (turns * SG_MAXIMUM_PROCESSES + slot % SG_MAXIMUM_PROCESSES) * 2 + 1;
    return is_stuck(w->device, &w->first, what + (place << 48), slot < SG_MAXIMUM_PROCESSES ? (int)slot : SG_NO_SLOT);
}

/* Whoever stands or stops before us loses its place, or its turn. False: nobody does yet. */
static bool pass_by(waiting *w, uint64_t word) {
    uint64_t place = atomic_load(&w->device->state->line);
    if (w->next)
        return runner_is_stuck(w, word) && take_away(w->device, word);
    return first_is_stuck(w, place) && atomic_compare_exchange_strong(&w->device->state->line, &place, place + 1);
}

/* ---- in line ---- */

static void leave_place(waiting *w) {
    if (!w->next)
        return;
    w->next = false;
    sg_lock_drop(w->file, place_byte(w->place));
    sg_line_announce(w->device->state);
}

static void say_waiting(const waiting *w, uint64_t since_ns) {
    if (w->device->slot != SG_NO_SLOT)
        atomic_store(&w->device->state->waiting_since_ns[w->device->slot], since_ns);
}

/* Of those who have waited longer than us, the one who did so longest; SG_NO_SLOT. */
static int eldest(const waiting *w) {
    uint64_t least = w->since_ns;
    int found = SG_NO_SLOT;
    for (int i = 0; i < SG_MAXIMUM_PROCESSES; i++) {
        uint64_t since = atomic_load_explicit(&w->device->state->waiting_since_ns[i], memory_order_relaxed);
        if (since != 0 && since < least && i != w->device->slot) {
            least = since;
            found = i;
        }
    }
    return found;
}

/* Is the place another's, who only has to come? The dead do not: what they left is cleared away, and who lives
 * says again that it waits. */
static bool is_anothers(waiting *w, uint64_t place) {
    int slot = eldest(w);
    if (slot == SG_NO_SLOT)
        return false;
    _Atomic uint64_t *entry = &w->device->state->waiting_since_ns[slot];
    uint64_t since = atomic_load(entry), now = sg_monotonic_ns();
    bool taken = sg_lock_held_elsewhere(w->file, place_byte(place));
    if (taken || since != w->elder_since_ns) {
        w->elder_since_ns = taken ? 0 : since;
        w->elder_seen_ns = now;
    }
    if (taken || now - w->elder_seen_ns < (uint64_t)w->device->facts.time_slice_ns)
        return true;
    atomic_compare_exchange_strong(entry, &since, 0);
    return false;
}

static int take_place(waiting *w) {
    sg_state *state = w->device->state;
    uint64_t place = atomic_load(&state->line);
    say_waiting(w, w->since_ns);
    if (is_anothers(w, place))
        return -EAGAIN;
    int error = sg_lock_try(w->file, place_byte(place));
    if (error != 0)
        return error;
    w->place = place;
    w->next = true;
    atomic_store(&state->line_slot, (uint32_t)w->device->slot);
    return 0;
}

/* One try: 0 when the device is ours. */
static int step_forward(waiting *w) {
    if (w->next && atomic_load(&w->device->state->line) != w->place)
        leave_place(w); /* we were stopped, and passed by */
    int error = w->next ? 0 : take_place(w);
    return error != 0 ? error : take_turn(w);
}

static void sleep_unless_changed(const waiting *w, uint32_t seen, uint64_t word) {
    uint64_t ns = POLL_NS;
    if (w->next)
        ns = sg_turn_word_kept(word) ? kept_for(w->device->state, word) : NEXT_POLL_NS;
    else if (w->elder_since_ns != 0)
        ns = (uint64_t)w->device->facts.time_slice_ns;
    struct timespec longest = {.tv_nsec = (long)(ns < POLL_NS ? ns : POLL_NS)};
    syscall(SYS_futex, &w->device->state->turn_changes, FUTEX_WAIT, seen, &longest, NULL, 0);
}

static int wait_in_line(waiting *w) {
    sg_state *state = w->device->state;
    int error = step_forward(w);
    while (is_held(error)) {
        uint32_t seen = atomic_fetch_or(&state->turn_changes, SLEEPERS) | SLEEPERS;
        error = step_forward(w); /* again: it may have changed before we said that we sleep */
        if (!is_held(error))
            break;
        uint64_t word = atomic_load(&state->turn);
        if (!pass_by(w, word))
            sleep_unless_changed(w, seen, word);
        error = step_forward(w);
    }
    return error;
}

int sg_line_wait(sg_device *device) {
    waiting w = {.device = device, .file = sg_state_file(device), .since_ns = sg_monotonic_ns()};
    int error = w.file < 0 ? w.file : wait_in_line(&w);
    say_waiting(&w, 0);
    leave_place(&w);
    return error;
}
