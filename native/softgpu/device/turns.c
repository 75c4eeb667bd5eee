/* A turn on a device: it begins, gives way when its slice is used up, ends, and is charged. See turns.h. */
#include <pthread.h>

#include "model.h"
#include "turns.h"

/* ---- what was used ---- */

void sg_turn_charge(sg_device *device, int slot, uint64_t began_ns) {
    sg_state *state = device->state;
    uint64_t ended = sg_monotonic_ns(), began = began_ns;
    if (!atomic_compare_exchange_strong(&state->running_since_ns, &began, 0))
        return;
    if (ended < began_ns)
        return; /* not our clock: somebody wrote it who should not */
    sg_recent_add(&state->recent, began_ns, ended);
    atomic_fetch_add(&state->busy_ns, ended - began_ns);
    if (slot == SG_NO_SLOT)
        return;
    sg_recent_add(&state->slots[slot].recent, began_ns, ended);
    atomic_fetch_add(&state->slots[slot].busy_ns, ended - began_ns);
}

static uint64_t charged_ns(const sg_device *device) {
    return device->slot == SG_NO_SLOT ? 0 : atomic_load(&device->state->slots[device->slot].busy_ns);
}

uint64_t sg_turn_held_ns(sg_device *device) {
    uint64_t began = device->turn.began_ns, charged = charged_ns(device) - device->turn.charged_before_ns;
    return atomic_load(&device->state->running_since_ns) == began ? charged + sg_monotonic_ns() - began : charged;
}

static void count_launch(sg_device *device, uint64_t instructions) {
    if (device->slot == SG_NO_SLOT)
        return;
    atomic_fetch_add(&device->state->slots[device->slot].launches, 1);
    atomic_fetch_add(&device->state->slots[device->slot].instructions, instructions);
}

/* A kernel runs from here on. */
static void run(sg_device *device) {
    device->turn.began_ns = sg_monotonic_ns();
    atomic_store(&device->state->running_slot, (uint32_t)device->slot);
    atomic_store(&device->state->running_since_ns, device->turn.began_ns);
}

/* ---- slices ---- */

static void begin_slice(sg_turn *turn) {
    turn->slice_began_ns = sg_monotonic_ns();
    atomic_store(&turn->contested, false);
}

/* One slice follows another as long as nobody waits; who comes waits for the end of the one that it came in. */
static bool slice_used_up(sg_device *device) {
    sg_turn *turn = &device->turn;
    uint64_t now = sg_monotonic_ns(), slice = (uint64_t)device->facts.time_slice_ns;
    if (!atomic_load(&turn->contested)) {
        uint64_t before = (now - turn->slice_began_ns) / slice;
        atomic_store(&turn->slice_end_ns, turn->slice_began_ns + (before + 1) * slice);
        atomic_store(&turn->contested, true);
    }
    return now >= atomic_load(&turn->slice_end_ns);
}

static bool still_ours(const sg_device *device) {
    return atomic_load(&device->state->turn) == sg_turn_word(device->turn.number, false);
}

bool sg_turn_due(sg_device *device) {
    return !still_ours(device) || (sg_line_sleeps(device->state) && slice_used_up(device));
}

/* ---- having it and not ---- */

/* Nothing but the byte says that we have it; after it was taken away, not even that. */
static void let_go(sg_device *device) {
    uint64_t word = sg_turn_word(device->turn.number, false);
    int file = sg_state_file(device);
    device->turn.held = SG_TURN_NONE;
    /* An open file that only the mapping keeps cannot be told to let go. */
    if (device->state_reopened || file < 0)
        atomic_compare_exchange_strong(&device->state->turn, &word, sg_turn_word(device->turn.number + 1, false));
    if (file >= 0)
        sg_lock_drop(file, sg_turn_byte(device->turn.number));
    sg_line_announce(device->state);
}

static void keep(sg_device *device) {
    sg_turn *turn = &device->turn;
    sg_state *state = device->state;
    uint64_t until = sg_monotonic_ns() + SG_TURN_KEEP_NS, word = sg_turn_word(turn->number, false);
    if (atomic_load(&turn->contested) && atomic_load(&turn->slice_end_ns) < until)
        until = atomic_load(&turn->slice_end_ns);
    atomic_store(&state->kept_until_ns, until);
    if (!atomic_compare_exchange_strong(&state->turn, &word, sg_turn_word(turn->number, true))) {
        let_go(device);
        return;
    }
    turn->held = SG_TURN_KEPT;
}

/* The turn that we kept, where nobody took it. */
static bool take_up(sg_device *device) {
    sg_turn *turn = &device->turn;
    uint64_t word = sg_turn_word(turn->number, true);
    if (turn->held != SG_TURN_KEPT)
        return false;
    turn->held = SG_TURN_OURS;
    if (atomic_compare_exchange_strong(&device->state->turn, &word, sg_turn_word(turn->number, false)) &&
        !sg_turn_due(device))
        return true;
    let_go(device);
    return false;
}

static int wait_for_turn(sg_device *device) {
    int error = sg_line_wait(device);
    if (error != 0)
        return error;
    begin_slice(&device->turn);
    if (atomic_load(&device->state->running_slot) != (uint32_t)device->slot)
        atomic_fetch_add(&device->state->switches, 1);
    if (device->slot != SG_NO_SLOT)
        atomic_fetch_add(&device->state->slots[device->slot].turns, 1);
    return 0;
}

int sg_turn_begin(sg_device *device) {
    pthread_mutex_lock(&device->launching);
    if (sg_model_used(device))
        return 0; /* the model shares the device out, in its own time */
    int error = take_up(device) ? 0 : wait_for_turn(device);
    if (error != 0) {
        pthread_mutex_unlock(&device->launching);
        return error;
    }
    device->turn.charged_before_ns = charged_ns(device);
    run(device);
    return 0;
}

void sg_turn_give_way(sg_device *device) {
    bool ours = still_ours(device);
    if (ours && !sg_line_waits(device)) {
        begin_slice(&device->turn);
        return;
    }
    sg_turn_charge(device, device->slot, device->turn.began_ns);
    if (ours)
        atomic_fetch_add(&device->state->preemptions, 1);
    let_go(device);
    /* Where there is no line any more (the device was removed), the kernel goes on to its end all the same. */
    if (wait_for_turn(device) == 0)
        run(device);
}

void sg_turn_end(sg_device *device, uint64_t instructions) {
    count_launch(device, instructions);
    if (!sg_model_used(device)) {
        sg_turn_charge(device, device->slot, device->turn.began_ns);
        if (device->turn.held == SG_TURN_OURS && (!sg_line_sleeps(device->state) || !slice_used_up(device)))
            keep(device);
        else if (device->turn.held == SG_TURN_OURS)
            let_go(device);
    }
    pthread_mutex_unlock(&device->launching);
}

void sg_turn_leave(sg_device *device) {
    if (pthread_mutex_trylock(&device->launching) != 0)
        return; /* a kernel runs: the turn ends with it, or with the process */
    if (device->turn.held == SG_TURN_KEPT && !take_up(device))
        device->turn.held = SG_TURN_NONE;
    if (device->turn.held != SG_TURN_NONE)
        let_go(device);
    pthread_mutex_unlock(&device->launching);
}
