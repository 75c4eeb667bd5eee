#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "refusal.h"
#include "share.h"

#define NO_OWN_SLOT (-1)
/* How often a charge that lost a race is tried again, and how often the sum must be the same
 * before "full" is believed. */
#define ATTEMPTS 200
#define STEADY 3

/* This process's threads take turns at its slot. Never held across a call into the driver. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int own = NO_OWN_SLOT;
static int descriptor = -1;
static bool may_write;

/* ---- words of the shared file: always whole, never trusted ---- */

static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value >= 0 && value < 1e30 ? value : 0; /* a NaN fails both */
}

static uint64_t as_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void add_double(uint64_t *word, double more)
{
    uint64_t seen = load(word);
    while (!__atomic_compare_exchange_n(word, &seen, as_bits(as_double(seen) + more), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        ;
}

static uint64_t add_capped(uint64_t left, uint64_t right)
{
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static unsigned slots_in_use(void)
{
    uint32_t high = __atomic_load_n(&share.ledger->high_water, __ATOMIC_SEQ_CST);
    return high < ALIQUOT_SLOTS_MAX ? high : ALIQUOT_SLOTS_MAX;
}

/* ---- locks: who is alive ---- */

static struct flock lock_of(unsigned slot, short type)
{
    return (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(offsetof(aliquot_ledger, slots) + slot * sizeof(aliquot_slot)),
        .l_len = 1,
    };
}

static bool take_lock(unsigned slot)
{
    struct flock lock = lock_of(slot, F_WRLCK);
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

static void drop_lock(unsigned slot)
{
    struct flock lock = lock_of(slot, F_UNLCK);
    fcntl(descriptor, F_OFD_SETLK, &lock);
}

/* Where the kernel does not say, alive: bytes are then counted too long, never too short. */
static bool is_alive(unsigned slot)
{
    struct flock lock = lock_of(slot, F_WRLCK);
    return (int)slot == own || fcntl(descriptor, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* ---- one slot ---- */

/* Bring the integral of `used` up to now. */
static void settle(aliquot_slot *slot, unsigned device, uint64_t now)
{
    uint64_t changed = load(&slot->changed[device]);
    double held = now > changed ? (double)(now - changed) / 1e9 * (double)load(&slot->used[device]) : 0;
    store(&slot->byte_seconds[device], as_bits(as_double(load(&slot->byte_seconds[device])) + held));
    store(&slot->changed[device], now);
}

static void change_own(unsigned device, uint64_t more, uint64_t less)
{
    aliquot_slot *slot = &share.ledger->slots[own];
    settle(slot, device, now_ns());
    uint64_t used = add_capped(load(&slot->used[device]), more);
    store(&slot->used[device], used > less ? used - less : 0);
}

/* Clear a slot whose lock we hold and whose process is gone. Each integral leaves the slot before
 * it enters the sum: killed in between, we lose one rather than bill it twice. */
static void retire(unsigned index)
{
    aliquot_slot *slot = &share.ledger->slots[index];
    uint64_t now = now_ns();
    for (unsigned device = 0; device < share.devices; device++) {
        settle(slot, device, now);
        store(&slot->used[device], 0);
        double integral = as_double(load(&slot->byte_seconds[device]));
        store(&slot->byte_seconds[device], 0);
        add_double(&share.ledger->devices[device].retired, integral);
    }
    store(&slot->pid, 0);
}

static bool is_occupied(unsigned index)
{
    const aliquot_slot *slot = &share.ledger->slots[index];
    bool occupied = load(&slot->pid) != 0;
    for (unsigned device = 0; device < share.devices; device++)
        occupied |= load(&slot->used[device]) != 0;
    return occupied;
}

static void reap(void)
{
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++)
        if ((int)slot != own && is_occupied(slot) && take_lock(slot)) {
            retire(slot);
            drop_lock(slot);
        }
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

static uint64_t own_pid_namespace(void)
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
}

static bool refuse(const char *what, const char *reason)
{
    refusal_set("Aliquot: ", share.ledger_path, " ", what, " (", reason,
                "), so this program gets no memory of its share; see `aliquot doctor`", NULL);
    return false;
}

static bool claim(void)
{
    if (own != NO_OWN_SLOT)
        return true;
    if (descriptor < 0 && (descriptor = share_open_ledger(may_write)) < 0)
        return refuse("cannot be opened", refusal_errno());
    for (unsigned index = 0; index < ALIQUOT_SLOTS_MAX; index++) {
        if (!take_lock(index)) {
            if (errno != EAGAIN && errno != EACCES)
                return refuse("cannot be locked", refusal_errno());
            continue;
        }
        aliquot_slot *slot = &share.ledger->slots[index];
        retire(index);
        store(&slot->start_time, own_start_time());
        store(&slot->pid_namespace, own_pid_namespace());
        raise_high_water(index + 1);
        own = (int)index;
        store(&slot->pid, (uint64_t)getpid());
        return true;
    }
    return refuse("has no free slot", "256 processes use the share already");
}

bool ledger_claim(void)
{
    pthread_mutex_lock(&turn);
    bool claimed = claim();
    pthread_mutex_unlock(&turn);
    return claimed;
}

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&turn);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&turn);
}

/* The inherited description would keep the parent's slot alive after the parent; the child takes
 * a slot of its own when it first needs one. */
static void in_child(void)
{
    pthread_mutex_init(&turn, NULL);
    own = NO_OWN_SLOT;
    if (descriptor >= 0)
        close(descriptor);
    descriptor = -1;
}

bool ledger_open(bool writable)
{
    may_write = writable;
    descriptor = share_open_ledger(writable);
    if (descriptor < 0)
        return refuse("cannot be opened", refusal_errno());
    if (pthread_atfork(before_fork, in_parent, in_child) != 0)
        return refuse("cannot be guarded over a fork", "out of memory");
    return true;
}

/* ---- charging ---- */

static uint64_t sum(unsigned device)
{
    uint64_t total = 0;
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++)
        total = add_capped(total, load(&share.ledger->slots[slot].used[device]));
    return total;
}

static void raise_peak(unsigned device, uint64_t total)
{
    uint64_t *peak = &share.ledger->devices[device].peak;
    uint64_t seen = load(peak);
    while (seen < total && !__atomic_compare_exchange_n(peak, &seen, total, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/* One attempt, under the turn. `total` tells what the sum was where it failed. */
static enum charge try_charge(unsigned device, uint64_t bytes, uint64_t limit, uint64_t *total)
{
    if (!claim())
        return NO_SLOT;
    if (add_capped(sum(device), bytes) > limit) {
        reap();
        *total = sum(device);
        if (add_capped(*total, bytes) > limit)
            return OVER_LIMIT;
    }
    change_own(device, bytes, 0);
    *total = sum(device);
    if (*total <= limit) {
        raise_peak(device, *total);
        return CHARGED;
    }
    change_own(device, 0, bytes);
    *total = 0; /* lost a race: no total to believe in */
    return OVER_LIMIT;
}

static void pause_for(int attempt)
{
    if (attempt < 8) {
        sched_yield();
        return;
    }
    /* Different lengths for different processes, or losers meet again. */
    struct timespec length = {.tv_nsec = 1000 * (1 + (getpid() * 7 + attempt * 13) % 60)};
    nanosleep(&length, NULL);
}

enum charge ledger_charge(unsigned device, uint64_t bytes)
{
    if (bytes == 0)
        return CHARGED;
    uint64_t previous = 0;
    for (int attempt = 0, steady = 0; attempt < ATTEMPTS && steady < STEADY; attempt++) {
        uint64_t limit = share_memory_limit(device), total = 0;
        if (bytes > limit)
            break;
        pthread_mutex_lock(&turn);
        enum charge answer = try_charge(device, bytes, limit, &total);
        pthread_mutex_unlock(&turn);
        if (answer != OVER_LIMIT)
            return answer;
        steady = total != 0 && total == previous ? steady + 1 : 0;
        previous = total;
        pause_for(attempt);
    }
    return OVER_LIMIT;
}

void ledger_release(unsigned device, uint64_t bytes)
{
    if (bytes == 0)
        return;
    pthread_mutex_lock(&turn);
    if (own != NO_OWN_SLOT)
        change_own(device, 0, bytes);
    pthread_mutex_unlock(&turn);
}

void ledger_denied(unsigned device)
{
    __atomic_fetch_add(&share.ledger->devices[device].denied, 1, __ATOMIC_SEQ_CST);
}

/* ---- asking ---- */

uint64_t ledger_used(unsigned device)
{
    uint64_t total = 0;
    pthread_mutex_lock(&turn);
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++) {
        uint64_t used = load(&share.ledger->slots[slot].used[device]);
        if (used != 0 && is_alive(slot))
            total = add_capped(total, used);
    }
    pthread_mutex_unlock(&turn);
    return total;
}

unsigned ledger_processes(unsigned device, struct ledger_process *out, unsigned room)
{
    uint64_t here = own_pid_namespace();
    unsigned count = 0;
    pthread_mutex_lock(&turn);
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++) {
        const aliquot_slot *entry = &share.ledger->slots[slot];
        uint64_t pid = load(&entry->pid), used = load(&entry->used[device]);
        if (pid == 0 || pid > INT32_MAX || used == 0 || load(&entry->pid_namespace) != here || !is_alive(slot))
            continue;
        if (count < room)
            out[count] = (struct ledger_process){(pid_t)pid, used};
        count++;
    }
    pthread_mutex_unlock(&turn);
    return count;
}
