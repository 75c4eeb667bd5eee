#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attest.h"
#include "exports.h"
#include "hash.h"
#include "locks.h"
#include "refusal.h"
#include "share.h"
#include "total.h"
#include "words.h"

/* What is this process's own, apart from the file that every process of the share may write. In
 * pages that a child finds empty, also one made without fork()'s handlers. */
struct own {
    unsigned claimed; /* the slot, plus one; 0 none */
    uint32_t limits_seen;
    uint64_t start_time;
    uint64_t held[ALIQUOT_DEVICES_MAX];
    uint64_t taken[ALIQUOT_DEVICES_MAX]; /* in `held`: what the keeper said */
};

static struct own nobody;
static struct own *own = &nobody;
/* The file's own count may be made smaller; what was seen once is looked at for ever. */
static unsigned seen_in_use;

static bool is_own(unsigned slot)
{
    return own->claimed == slot + 1;
}

unsigned slots_in_use(void)
{
    uint32_t high = __atomic_load_n(&share.ledger->high_water, __ATOMIC_SEQ_CST);
    unsigned now = high < ALIQUOT_SLOTS_MAX ? high : ALIQUOT_SLOTS_MAX;
    if (now > seen_in_use)
        seen_in_use = now;
    return seen_in_use;
}

bool slots_alive(unsigned slot)
{
    return is_own(slot) || locks_taken(slot);
}

void slots_asked(void)
{
    locks_end();
}

/* ---- one slot ---- */

/* Bring the integral of `used` up to now. */
static void settle(aliquot_slot *slot, unsigned device, uint64_t now)
{
    uint64_t changed = load(&slot->changed[device]);
    if (now == changed)
        return;
    double held = now > changed ? (double)(now - changed) / 1e9 * (double)load(&slot->used[device]) : 0;
    store(&slot->byte_seconds[device], as_bits(as_double(load(&slot->byte_seconds[device])) + held));
    store(&slot->changed[device], now);
}

uint64_t slots_used(unsigned slot, unsigned device)
{
    return is_own(slot) ? own->held[device] : load(&share.ledger->slots[slot].used[device]);
}

bool slots_change_own(unsigned device, uint64_t more, uint64_t less, uint64_t limit)
{
    uint64_t before = own->held[device], after = add_capped(before, more);
    after = after > less ? after - less : 0;
    if (!locks_kept(own->claimed - 1)) {
        own->held[device] = after; /* the slot may be another's by now; the next claim publishes what is held */
        return true;
    }
    unsigned index = own->claimed - 1;
    settle(&share.ledger->slots[index], device, now_coarse_ns());
    if (!total_step(index, device, before, after, limit))
        return false;
    own->held[device] = after;
    return true;
}

uint64_t slots_held(unsigned device)
{
    return own->held[device];
}

void slots_true_up(unsigned device, uint64_t most)
{
    if (own->claimed == 0)
        return;
    aliquot_outside *outside = &share.ledger->outsides[own->claimed - 1];
    uint64_t said = load(&outside->beyond[device]), before = own->taken[device];
    if (said == before || load(&outside->start_time) != own->start_time)
        return;
    uint64_t after = said < most ? said : most;
    if (after == before)
        return;
    /* Not held at the limit: the driver has these bytes already. */
    slots_change_own(device, after > before ? after - before : 0, after < before ? before - after : 0, TOTAL_NO_LIMIT);
    own->taken[device] = after;
    store(&share.ledger->outsides[own->claimed - 1].taken[device], after);
}

uint64_t slots_outer_pid(unsigned slot)
{
    const aliquot_outside *outside = &share.ledger->outsides[slot];
    bool same = load(&outside->start_time) == load(&share.ledger->slots[slot].start_time);
    return same ? load(&outside->pid) : 0;
}

void slots_mend(unsigned device)
{
    if (own->claimed != 0)
        total_mend(device, own->claimed - 1, own->held[device]);
}

unsigned slots_own(void)
{
    return own->claimed - 1;
}

void slots_add_compute(unsigned device, uint64_t ns)
{
    __atomic_fetch_add(&share.ledger->devices[device].compute, ns, __ATOMIC_SEQ_CST);
    if (own->claimed != 0)
        __atomic_fetch_add(&share.ledger->slots[own->claimed - 1].compute, ns, __ATOMIC_SEQ_CST);
}

/* Clear a slot whose lock we hold and whose process is gone. What it exported passes on first. Each integral leaves the slot before
 * it enters the sum: killed in between, we lose one rather than bill it twice. */
static bool retire(unsigned index) /* false where the exports are locked for long: later, then */
{
    aliquot_slot *slot = &share.ledger->slots[index];
    uint64_t now = now_ns();
    total_finish(index);
    if (!exports_of_dead(index))
        return false;
    for (unsigned device = 0; device < share.devices; device++) {
        settle(slot, device, now);
        double integral = as_double(load(&slot->byte_seconds[device]));
        store(&slot->byte_seconds[device], 0);
        add_double(&share.ledger->devices[device].retired, integral);
        uint64_t used = load(&slot->used[device]);
        if (used != 0)
            total_step(index, device, used, 0, TOTAL_NO_LIMIT);
    }
    attest_clear(slot);
    store(&share.ledger->outsides[index].start_time, 0);
    store(&slot->compute, 0);
    store(&slot->pid, 0);
    return true;
}

static bool is_occupied(unsigned index)
{
    const aliquot_slot *slot = &share.ledger->slots[index];
    bool occupied = load(&slot->pid) != 0;
    for (unsigned device = 0; device < share.devices; device++)
        occupied |= load(&slot->used[device]) != 0;
    return occupied;
}

void slots_reap(void)
{
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++)
        if (!is_own(slot) && is_occupied(slot) && locks_take(slot) == LOCK_MINE) {
            retire(slot);
            locks_drop(slot);
        }
    exports_sweep();
    locks_end();
}

/* ---- the own slot ---- */

/* Field 22 of /proc/self/stat; the command in field 2 may hold blanks and brackets. */
static uint64_t own_start_time(void)
{
    char text[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    uint64_t ticks = 0;
    while (at != NULL && *at >= '0' && *at <= '9')
        ticks = ticks * 10 + (uint64_t)(*at++ - '0');
    return ticks;
}

uint64_t slots_own_number(void)
{
    const uint64_t name[] = {(uint64_t)getpid(), own_start_time(), slots_pid_namespace()};
    return hash_of(name, sizeof name);
}

uint64_t slots_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

static void raise_high_water(unsigned slots)
{
    uint32_t seen = __atomic_load_n(&share.ledger->high_water, __ATOMIC_SEQ_CST);
    while (seen < slots && !__atomic_compare_exchange_n(&share.ledger->high_water, &seen, slots, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    if (seen_in_use < slots)
        seen_in_use = slots;
}

static bool refuse(const char *what, const char *reason)
{
    refusal_set("Aliquot: ", share.ledger_path, " ", what, " (", reason,
                "), so this program gets no memory of its share; see `aliquot doctor`", NULL);
    return false;
}

/* The slot is ours and empty, and we may hold bytes already
 * where our slot before was lost. */
static void move_in(unsigned index)
{
    aliquot_slot *slot = &share.ledger->slots[index];
    own->start_time = own_start_time();
    store(&share.ledger->outsides[index].start_time, 0); /* what was said of another */
    store(&slot->start_time, own->start_time);
    store(&slot->pid_namespace, slots_pid_namespace());
    own->limits_seen = share_generation();
    attest(slot, own->limits_seen);
    raise_high_water(index + 1);
    own->claimed = index + 1;
    for (unsigned device = 0; device < share.devices; device++) {
        store(&slot->changed[device], now_coarse_ns());
        if (own->held[device] != 0)
            total_step(index, device, 0, own->held[device], TOTAL_NO_LIMIT);
        store(&share.ledger->outsides[index].taken[device], own->taken[device]);
        slots_mend(device);
    }
    store(&slot->pid, (uint64_t)getpid());
}

bool slots_claim(void)
{
    if (own->claimed != 0 && locks_kept(own->claimed - 1))
        return true;
    for (unsigned index = 0; index < ALIQUOT_SLOTS_MAX; index++) {
        enum lock answer = locks_take(index);
        if (answer == LOCK_MINE && !retire(index)) {
            locks_drop(index);
            continue;
        }
        if (answer == LOCK_MINE)
            answer = locks_keep(index);
        if (answer == LOCK_MINE) {
            move_in(index);
            return true;
        }
        if (answer == LOCK_FAILED) {
            refuse("cannot be opened and locked", refusal_errno());
            locks_end();
            return false;
        }
    }
    locks_end();
    return refuse("has no free slot", "256 processes use the share already");
}

bool slots_claimed(void)
{
    return own->claimed != 0;
}

void slots_saw_limits(uint32_t generation)
{
    if (own->limits_seen == generation || own->claimed == 0)
        return;
    own->limits_seen = generation;
    store(&share.ledger->slots[own->claimed - 1].limits_seen, generation);
}

/* The child takes a slot of its own when it first needs one. */
void slots_forget(void)
{
    *own = (struct own){0};
    locks_forget();
}

bool slots_open(bool writable)
{
    if (!locks_open(writable))
        return refuse("cannot be opened", refusal_errno());
    if (!writable)
        return true; /* looks on, and never owns a slot */
    void *page = mmap(NULL, sizeof *own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return refuse("cannot be kept track of", refusal_errno());
    madvise(page, sizeof *own, MADV_WIPEONFORK); /* where that fails, slots_forget() still does it */
    own = page;
    return true;
}
