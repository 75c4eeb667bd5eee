/* Chunks that several processes hold: memory that was exported.
 *
 * The owner word of such a chunk names a share. The share has a bit for each slot that holds it, and lives
 * while one of them is a living process, or while somebody has its byte of the state file locked: that is
 * what an exported descriptor is, an open file with a lock on it, so that memory in the mail (sent, and not
 * received yet) has a holder whom nobody needs to name. A kill lets go of both. The one charged is the
 * creator as long as it holds the share, then the holder with the lowest slot; what is in the mail counts for
 * the device and for no process.
 *
 * A list of holders beside the chunks, with a count, was rejected: a kill between the two would leave the
 * count wrong. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holders.h"

/* Where an exported descriptor stands in the file, to say which share it is of. */
#define MARK ((off_t)1 << 41)
#define POOL_MARK ((off_t)1 << 42)

static int first_holder(sg_share *share, const sg_dead *dead) {
    int creator = (int)atomic_load(&share->creator) - 1;
    if (creator >= 0 && creator < SG_MAXIMUM_PROCESSES && sg_holders_have(share->holders, creator) && !dead->slots[creator])
        return creator;
    for (int slot = 0; slot < SG_MAXIMUM_PROCESSES; slot++)
        if (sg_holders_have(share->holders, slot) && !dead->slots[slot])
            return slot;
    return -1;
}

static bool held(sg_device *device, unsigned index, const sg_dead *dead) {
    return first_holder(&device->state->shares[index], dead) >= 0 ||
           sg_lock_held_elsewhere(sg_state_file(device), SG_LOCK_SHARES + (int)index);
}

bool sg_shares_find_dead(sg_device *device, sg_dead *dead) {
    bool any = false;
    for (unsigned i = 0; i < SG_MAXIMUM_SHARES; i++) {
        bool used = atomic_load_explicit(&device->state->shares[i].used, memory_order_acquire) != 0;
        dead->shares[i] = !used || !held(device, i, dead);
        any = any || (used && dead->shares[i]);
    }
    return any;
}

void sg_shares_drop_holders(sg_device *device, const sg_dead *dead) {
    for (unsigned i = 0; i < SG_MAXIMUM_SHARES; i++) {
        sg_share *share = &device->state->shares[i];
        if (atomic_load(&share->used) == 0)
            continue;
        sg_holders_drop_dead(share->holders, dead);
    }
}

bool sg_owner_lives(uint16_t owner, const sg_dead *dead) {
    if (owner >= SG_SHARE_OWNER && owner < SG_SHARE_OWNER + SG_MAXIMUM_SHARES)
        return !dead->shares[owner - SG_SHARE_OWNER];
    return owner >= 1 && owner <= SG_MAXIMUM_PROCESSES && !dead->slots[owner - 1];
}

int sg_owner_slot(sg_device *device, uint16_t owner, const sg_dead *dead) {
    if (!sg_owner_lives(owner, dead))
        return -1;
    return owner < SG_SHARE_OWNER ? owner - 1 : first_holder(&device->state->shares[owner - SG_SHARE_OWNER], dead);
}

static void count_in(sg_device *device, unsigned index) {
    sg_hold(device, device->state->shares[index].holders, &device->joined[index]);
}

/* Under the metadata lock. A number whose byte is locked has an old descriptor about, and is passed over. */
static int unused_share(sg_device *device) {
    for (int i = 0; i < SG_MAXIMUM_SHARES; i++)
        if (atomic_load(&device->state->shares[i].used) == 0 &&
            !sg_lock_held_elsewhere(sg_state_file(device), SG_LOCK_SHARES + i))
            return i;
    return -ENOMEM;
}

int sg_share_make(sg_device *device, const uint32_t *chunks, size_t count, unsigned *made, uint64_t *secret) {
    if (device->slot == SG_NO_SLOT)
        return -EBADF;
    if (getrandom(secret, sizeof *secret, 0) != sizeof *secret)
        return -errno;
    int error = sg_metadata_lock(device, SG_TENANT_PATIENCE_NS);
    if (error != 0)
        return error;
    int index = unused_share(device);
    if (index >= 0) {
        sg_share *share = &device->state->shares[index];
        sg_holders_clear(share->holders);
        atomic_store(&share->secret, *secret);
        atomic_store(&share->creator, (uint32_t)device->slot + 1);
        count_in(device, (unsigned)index);
        atomic_store(&share->used, 1);
        for (size_t i = 0; i < count; i++)
            atomic_store(&device->state->owners[chunks[i]], (uint16_t)(SG_SHARE_OWNER + index));
        *made = (unsigned)index;
    }
    sg_metadata_unlock(device);
    return index < 0 ? index : 0;
}

static int collect_chunks(sg_device *device, unsigned index, uint32_t **chunks, size_t *count) {
    uint32_t *list = NULL;
    size_t found = 0;
    for (int pass = 0; pass < 2; pass++) {
        found = 0;
        for (uint32_t i = 0; i < device->chunk_count; i++)
            if (atomic_load(&device->state->owners[i]) == SG_SHARE_OWNER + index && (pass == 0 || found < *count)) {
                if (pass == 1)
                    list[found] = i;
                found++;
            }
        if (found == 0)
            break;
        if (pass == 0) {
            *count = found;
            if ((list = calloc(found, sizeof *list)) == NULL)
                return -ENOMEM;
        }
    }
    if (found == 0 || found != *count) {
        free(list);
        return -ENOENT;
    }
    *chunks = list;
    return 0;
}

int sg_share_join(sg_device *device, unsigned index, const uint64_t *secret, uint32_t **chunks, size_t *count) {
    if (index >= SG_MAXIMUM_SHARES)
        return -ENOENT;
    if (device->slot == SG_NO_SLOT)
        return -EBADF;
    int error = sg_metadata_lock(device, SG_TENANT_PATIENCE_NS);
    if (error != 0)
        return error;
    sg_share *share = &device->state->shares[index];
    sg_repair(device); /* so that a share of the dead is none */
    if (atomic_load(&share->used) == 0 || (secret != NULL && atomic_load(&share->secret) != *secret))
        error = -ENOENT;
    if (error == 0)
        error = collect_chunks(device, index, chunks, count);
    if (error == 0)
        count_in(device, index);
    sg_metadata_unlock(device);
    return error;
}

void sg_share_leave(sg_device *device, unsigned index) {
    sg_let_go(device, device->state->shares[index].holders, &device->joined[index]);
}

/* A new open file of the state, standing at `mark`. */
static int open_marked(sg_device *device, off_t mark) {
    char path[4200];
    snprintf(path, sizeof path, "%s/state", device->folder);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    if (lseek(descriptor, mark, SEEK_SET) == mark)
        return descriptor;
    int error = -errno;
    close(descriptor);
    return error;
}

/* Where `descriptor` stands in the state of this device; -ENOENT where it is of another file. */
static off_t mark_of(sg_device *device, int descriptor) {
    struct stat theirs, ours;
    off_t at = lseek(descriptor, 0, SEEK_CUR);
    if (at < 0 || fstat(descriptor, &theirs) != 0 || fstat(sg_state_file(device), &ours) != 0)
        return -ENOENT;
    return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino ? at : -ENOENT;
}

int sg_share_descriptor(sg_device *device, unsigned index) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = sg_lock_offset(SG_LOCK_SHARES + (int)index),
                         .l_len = 1};
    int descriptor = open_marked(device, MARK + (off_t)index);
    if (descriptor >= 0 && fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
        int error = -errno;
        close(descriptor);
        return error;
    }
    return descriptor;
}

int sg_share_of_descriptor(sg_device *device, int descriptor) {
    off_t at = mark_of(device, descriptor);
    if (at < MARK || at >= MARK + SG_MAXIMUM_SHARES)
        return -ENOENT;
    int index = (int)(at - MARK);
    return sg_lock_held_elsewhere(sg_state_file(device), SG_LOCK_SHARES + index) ? index : -ENOENT;
}

int sg_pool_descriptor(sg_device *device, uint32_t number) {
    return open_marked(device, POOL_MARK + (off_t)number);
}

int sg_pool_of_descriptor(sg_device *device, int descriptor, uint32_t *number) {
    off_t at = mark_of(device, descriptor);
    if (at <= POOL_MARK || at > POOL_MARK + (off_t)UINT32_MAX)
        return -ENOENT;
    *number = (uint32_t)(at - POOL_MARK);
    return 0;
}
