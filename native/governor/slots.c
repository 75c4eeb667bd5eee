#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "refusal.h"
#include "share.h"
#include "words.h"

#define NO_OWN_SLOT (-1)

static int own = NO_OWN_SLOT;
static int descriptor = -1;
static bool may_write;

unsigned slots_in_use(void)
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

bool slots_alive(unsigned slot)
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

void slots_change_own(unsigned device, uint64_t more, uint64_t less)
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

void slots_reap(void)
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
}

static bool refuse(const char *what, const char *reason)
{
    refusal_set("Aliquot: ", share.ledger_path, " ", what, " (", reason,
                "), so this program gets no memory of its share; see `aliquot doctor`", NULL);
    return false;
}

bool slots_claim(void)
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
        store(&slot->pid_namespace, slots_pid_namespace());
        raise_high_water(index + 1);
        own = (int)index;
        store(&slot->pid, (uint64_t)getpid());
        return true;
    }
    return refuse("has no free slot", "256 processes use the share already");
}

bool slots_claimed(void)
{
    return own != NO_OWN_SLOT;
}

/* The inherited description would keep the parent's slot alive after the parent; the child takes
 * a slot of its own when it first needs one. */
void slots_forget(void)
{
    own = NO_OWN_SLOT;
    if (descriptor >= 0)
        close(descriptor);
    descriptor = -1;
}

bool slots_open(bool writable)
{
    may_write = writable;
    descriptor = share_open_ledger(writable);
    return descriptor >= 0 || refuse("cannot be opened", refusal_errno());
}
