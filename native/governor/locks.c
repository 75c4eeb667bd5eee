#include "locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "share.h"

#define NONE (-1)

static bool may_write;
static int asking = NONE;
static int kept = NONE; /* only where a mapping does not carry the lock */

/* Another thread of the program may close every number at any moment, and open others. */
static void close_ours(int *descriptor)
{
    int saved = errno;
    if (*descriptor != NONE && share_is_ledger(*descriptor))
        close(*descriptor);
    *descriptor = NONE;
    errno = saved;
}

static bool ask(void)
{
    if (asking == NONE)
        asking = share_open_ledger(may_write);
    return asking != NONE;
}

_Static_assert(LOCK_EXPORTS == ALIQUOT_SLOTS_MAX, "the first number that is no slot");

static size_t byte_of(unsigned slot)
{
    return slot == LOCK_EXPORTS ? offsetof(aliquot_ledger, exports)
                                : offsetof(aliquot_ledger, slots) + slot * sizeof(aliquot_slot);
}

static bool ask_kernel(int descriptor, int command, unsigned slot, struct flock *lock, short type)
{
    *lock = (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)byte_of(slot),
        .l_len = 1,
    };
    return fcntl(descriptor, command, lock) == 0;
}

static enum lock take(int descriptor, unsigned slot)
{
    struct flock answer;
    if (ask_kernel(descriptor, F_OFD_SETLK, slot, &answer, F_WRLCK))
        return LOCK_MINE;
    return errno == EAGAIN || errno == EACCES ? LOCK_OTHERS : LOCK_FAILED;
}

static bool is_taken(int descriptor, unsigned slot)
{
    struct flock answer;
    return !ask_kernel(descriptor, F_OFD_GETLK, slot, &answer, F_WRLCK) || answer.l_type != F_UNLCK;
}

bool locks_open(bool writable)
{
    may_write = writable;
    bool can = ask();
    locks_end();
    return can;
}

enum lock locks_take(unsigned slot)
{
    return ask() ? take(asking, slot) : LOCK_FAILED;
}

void locks_drop(unsigned slot)
{
    struct flock answer;
    if (asking != NONE)
        ask_kernel(asking, F_OFD_SETLK, slot, &answer, F_UNLCK);
}

bool locks_taken(unsigned slot)
{
    return !ask() || is_taken(asking, slot);
}

void locks_end(void)
{
    close_ours(&asking);
}

/* ---- the own lock ---- */

static void *map_unforked(int descriptor)
{
    void *map = mmap(NULL, 1, PROT_READ, MAP_SHARED, descriptor, 0);
    if (map != MAP_FAILED && madvise(map, 1, MADV_DONTFORK) == 0)
        return map;
    if (map != MAP_FAILED)
        munmap(map, 1);
    return NULL;
}

enum lock locks_keep(unsigned slot)
{
    int second = share_open_ledger(may_write);
    void *map = second != NONE ? map_unforked(asking) : NULL;
    enum lock answer = map != NULL ? LOCK_MINE : LOCK_FAILED;
    locks_end();
    if (map != NULL && !is_taken(second, slot)) { /* the mapping does not carry it */
        munmap(map, 1);
        answer = take(second, slot);
        if (answer == LOCK_MINE) {
            kept = second;
            return LOCK_MINE;
        }
    }
    close_ours(&second);
    return answer;
}

/* Taking it again tells, and mends where the number now is another description of the ledger. */
bool locks_kept(unsigned slot)
{
    return kept == NONE || (share_is_ledger(kept) && take(kept, slot) == LOCK_MINE);
}

void locks_forget(void)
{
    close_ours(&asking);
    close_ours(&kept);
}
