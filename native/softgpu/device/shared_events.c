/* Events of several processes. See shared_events.h.
 *
 * An event has a ring of its last records, a word each: its number, the process that made it, and whether the
 * work before it is still pending. The event means the record with the highest number. One compare-and-swap
 * begins a record and one ends it, so a kill in between leaves a record that is pending and whose process is
 * dead: that one has passed. Nobody waits for the dead, and no count of theirs can be wrong. A counter of
 * records begun and one of records done was rejected: records of two streams, or of two processes, are done in
 * any order.
 *
 * Who waits remembers the word, and waits while it stands there. A place is used again when its record is over,
 * in model time too, so a place that says something else has passed. */
#include "shared_events.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "holders.h"

#define FIRST_POLLS_NS UINT64_C(10000000)
#define LATER_POLLS_NS UINT64_C(50000000)
#define FIRST_POLLS_END_NS UINT64_C(200000000)

/* From the lowest bit: pending, slot, incarnation, number. */
enum { SLOT_AT = 1, SLOT_BITS = 8, INCARNATION_AT = SLOT_AT + SLOT_BITS };
enum { NUMBER_AT = INCARNATION_AT + SG_INCARNATION_BITS };
#define PENDING UINT64_C(1)

_Static_assert(SG_MAXIMUM_PROCESSES <= 1 << SLOT_BITS, "a slot does not fit into a record's word");

static uint64_t word_of(const sg_device *device, uint64_t number) {
    return number << NUMBER_AT | (device->incarnation & SG_INCARNATION_MASK) << INCARNATION_AT |
           (uint64_t)device->slot << SLOT_AT | PENDING;
}

static uint64_t number_of(uint64_t word) {
    return word >> NUMBER_AT;
}

static int slot_of(uint64_t word) {
    return (int)(word >> SLOT_AT & ((1u << SLOT_BITS) - 1));
}

static uint32_t incarnation_of(uint64_t word) {
    return (uint32_t)(word >> INCARNATION_AT) & SG_INCARNATION_MASK;
}

static sg_shared_event *event_of(sg_device *device, unsigned index) {
    return &device->state->events[index % SG_MAXIMUM_EVENTS];
}

static _Atomic uint64_t *place_of(sg_shared_event *event, uint64_t word) {
    return &event->records[number_of(word) % SG_EVENT_RECORDS];
}

/* ---- who holds it ---- */

static void hold(sg_device *device, unsigned index) {
    sg_hold(device, event_of(device, index)->holders, &device->joined_events[index]);
}

void sg_shared_events_repair(sg_device *device, const sg_dead *dead) {
    for (unsigned i = 0; i < SG_MAXIMUM_EVENTS; i++) {
        sg_shared_event *event = event_of(device, i);
        if (atomic_load(&event->used) == 0)
            continue;
        sg_holders_drop_dead(event->holders, dead);
        if (!sg_holders_any(event->holders))
            atomic_store(&event->used, 0);
    }
}

/* Under the metadata lock. */
static int lay_out(sg_device *device, unsigned index, uint64_t secret) {
    sg_shared_event *event = event_of(device, index);
    sg_holders_clear(event->holders);
    for (int i = 0; i < SG_EVENT_RECORDS; i++)
        atomic_store(&event->records[i], 0);
    atomic_store(&event->secret, secret);
    atomic_store(&event->creator, word_of(device, 0));
    hold(device, index);
    atomic_store(&event->used, 1);
    return 0;
}

int sg_shared_event_make(sg_device *device, unsigned *index, uint64_t *secret) {
    if (device->slot == SG_NO_SLOT)
        return -EBADF;
    if (getrandom(secret, sizeof *secret, 0) != sizeof *secret)
        return -errno;
    int error = sg_metadata_lock(device, SG_TENANT_PATIENCE_NS);
    if (error != 0)
        return error;
    error = -ENOMEM;
    for (int pass = 0; pass < 2 && error != 0; pass++) {
        if (pass == 1)
            sg_repair(device);
        for (*index = 0; *index < SG_MAXIMUM_EVENTS && error != 0; *index += error != 0)
            if (atomic_load(&event_of(device, *index)->used) == 0)
                error = lay_out(device, *index, *secret);
    }
    sg_metadata_unlock(device);
    return error;
}

int sg_shared_event_join(sg_device *device, unsigned index, uint64_t secret) {
    if (index >= SG_MAXIMUM_EVENTS)
        return -ENOENT;
    if (device->slot == SG_NO_SLOT)
        return -EBADF;
    int error = sg_metadata_lock(device, SG_TENANT_PATIENCE_NS);
    if (error != 0)
        return error;
    sg_repair(device); /* so that an event of the dead is none */
    if (atomic_load(&event_of(device, index)->used) == 0 || atomic_load(&event_of(device, index)->secret) != secret)
        error = -ENOENT;
    else if (atomic_load(&event_of(device, index)->creator) == word_of(device, 0))
        error = -EALREADY;
    else
        hold(device, index);
    sg_metadata_unlock(device);
    return error;
}

void sg_shared_event_leave(sg_device *device, unsigned index) {
    sg_let_go(device, event_of(device, index)->holders, &device->joined_events[index]);
}

/* ---- records ---- */

/* Asked through a descriptor that the program replaced meanwhile, everybody would seem dead: nobody is, then. */
static bool recorder_lives(sg_device *device, uint64_t word) {
    int slot = slot_of(word), file = sg_state_file(device);
    const sg_slot *shared = &device->state->slots[slot];
    if (((atomic_load(&shared->incarnation) ^ incarnation_of(word)) & SG_INCARNATION_MASK) != 0 ||
        atomic_load(&shared->used) == SG_SLOT_FREE)
        return false;
    return sg_slot_alive(device, slot) || file < 0 || sg_state_file(device) != file;
}

bool sg_shared_event_passed(sg_device *device, unsigned index, uint64_t record) {
    if ((record & PENDING) == 0 || atomic_load(place_of(event_of(device, index), record)) != record)
        return true;
    return !recorder_lives(device, record);
}

uint64_t sg_shared_event_newest(sg_device *device, unsigned index) {
    uint64_t newest = 0;
    for (int i = 0; i < SG_EVENT_RECORDS; i++) {
        uint64_t word = atomic_load(&event_of(device, index)->records[i]);
        newest = number_of(word) > number_of(newest) ? word : newest;
    }
    return newest;
}

sg_shared_end sg_shared_event_end(sg_device *device, unsigned index, uint64_t record) {
    sg_shared_event *event = event_of(device, index);
    _Atomic uint64_t *place = place_of(event, record);
    sg_shared_end end = {(uint32_t)slot_of(record), incarnation_of(record), 0};
    if (record == 0 || atomic_load(place) != (record & ~PENDING))
        return end; /* over, or of somebody dead */
    uint64_t sequence = atomic_load(&event->sequences[number_of(record) % SG_EVENT_RECORDS]);
    if (atomic_load(place) == (record & ~PENDING))
        end.sequence = sequence;
    return end;
}

/* Until the record that stands where the next one goes is over. */
static int make_room(sg_device *device, unsigned index, uint64_t old, sg_given_up given_up) {
    sg_shared_event_await(device, index, old, given_up);
    if (given_up.is(given_up.of))
        return -ECANCELED;
    sg_shared_end end = sg_shared_event_end(device, index, old);
    return sg_model_used(device) ? sg_model_wait_shared(device, &end) : 0;
}

int sg_shared_event_begin(sg_device *device, unsigned index, sg_given_up given_up, uint64_t *record) {
    for (;;) {
        uint64_t next = number_of(sg_shared_event_newest(device, index)) + 1;
        _Atomic uint64_t *place = place_of(event_of(device, index), next << NUMBER_AT);
        uint64_t old = atomic_load(place);
        if (number_of(old) >= next)
            continue; /* somebody was faster */
        int error = old == 0 ? 0 : make_room(device, index, old, given_up);
        if (error != 0)
            return error;
        *record = word_of(device, next);
        if (atomic_compare_exchange_strong(place, &old, *record))
            return 0;
    }
}

/* One event's records have different words, and two events' seldom the same: who is woken for nothing looks again. */
static uint64_t key_of(unsigned index, uint64_t record) {
    return (record | PENDING) ^ (uint64_t)index << 54;
}

void sg_shared_event_finish(sg_device *device, unsigned index, uint64_t record, uint64_t sequence) {
    sg_shared_event *event = event_of(device, index);
    if (record == 0 || atomic_load(place_of(event, record)) != record)
        return;
    atomic_store(&event->sequences[number_of(record) % SG_EVENT_RECORDS], sequence);
    atomic_compare_exchange_strong(place_of(event, record), &(uint64_t){record}, record & ~PENDING);
    atomic_fetch_add(&event->changes, 1);
    syscall(SYS_futex, &event->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    sg_model_signal(device, key_of(index, record));
}

/* ---- waiting ---- */

typedef struct {
    sg_device *device;
    unsigned index;
    uint64_t record;
    sg_given_up given_up;
} wait_for;

static bool is_met(void *of) {
    const wait_for *it = of;
    return sg_shared_event_passed(it->device, it->index, it->record) || it->given_up.is(it->given_up.of);
}

static void sleep_unless_changed(_Atomic uint32_t *changes, uint32_t seen, uint64_t ns) {
    struct timespec longest = {.tv_nsec = (long)ns};
    syscall(SYS_futex, changes, FUTEX_WAIT, seen, &longest, NULL, 0);
}

/* Each poll looks whether the recording process still lives. */
void sg_shared_event_await(sg_device *device, unsigned index, uint64_t record, sg_given_up given_up) {
    wait_for it = {device, index, record, given_up};
    _Atomic uint32_t *changes = &event_of(device, index)->changes;
    uint64_t began = sg_monotonic_ns();
    if (is_met(&it) || (device->facts.time == SG_TIME_VIRTUAL &&
                        sg_model_wait_signal(device, key_of(index, record), is_met, &it) == 0))
        return;
    for (uint32_t seen = atomic_load(changes); !is_met(&it); seen = atomic_load(changes))
        sleep_unless_changed(changes, seen,
                             sg_monotonic_ns() - began < FIRST_POLLS_END_NS ? FIRST_POLLS_NS : LATER_POLLS_NS);
}
