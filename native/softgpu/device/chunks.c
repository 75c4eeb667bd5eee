/* Who holds which 2 MiB chunk of a device's memory.
 *
 * The owner word of a chunk is the only record: taking writes it, giving clears it, and a process
 * killed in between owns what it had written so far, which the next to look frees. Sums kept beside
 * it would be faster to read and would drift. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"

static int zero_by_writing(int file, off_t offset) {
    static const char zeros[65536];
    for (uint64_t done = 0; done < SG_CHUNK_BYTES; done += sizeof zeros)
        if (pwrite(file, zeros, sizeof zeros, offset + (off_t)done) != (ssize_t)sizeof zeros)
            return -ENOMEM;
    return 0;
}

void sg_arena_discard(sg_device *device, uint32_t first, uint32_t count) {
    int arena = sg_arena_file(device);
    off_t offset = (off_t)first << SG_CHUNK_SHIFT;
    off_t length = (off_t)count << SG_CHUNK_SHIFT;
    if (fallocate(arena, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) == 0)
        return;
    /* A file system without holes: the next owner must still not read what the last one wrote. */
    for (uint32_t i = 0; i < count; i++)
        (void)zero_by_writing(arena, offset + ((off_t)i << SG_CHUNK_SHIFT));
}

int sg_chunk_commit(sg_device *device, uint32_t chunk) {
    off_t offset = (off_t)chunk << SG_CHUNK_SHIFT;
    int result, arena = sg_arena_file(device);
    do
        result = fallocate(arena, 0, offset, (off_t)SG_CHUNK_BYTES);
    while (result != 0 && errno == EINTR);
    if (result != 0 && (errno != EOPNOTSUPP || zero_by_writing(arena, offset) != 0))
        return -ENOMEM;
    if (sg_budget_allows(device, 0))
        return 0;
    sg_arena_discard(device, chunk, 1);
    return -ENOMEM;
}

static size_t collect_free(const sg_device *device, uint32_t *chunks, size_t count) {
    const sg_state *state = device->state;
    size_t found = 0;
    for (uint32_t i = 0; i < device->chunk_count && found < count; i++)
        if (atomic_load_explicit(&state->owners[i], memory_order_relaxed) == 0)
            chunks[found++] = i;
    return found;
}

/* The most that our process ever held, for NVML's accounting. Counted anew each time, under the metadata lock. */
static void note_most(sg_device *device) {
    uint32_t held = 0;
    for (uint32_t i = 0; i < device->chunk_count; i++)
        held += atomic_load_explicit(&device->state->owners[i], memory_order_relaxed) == device->slot + 1;
    sg_slot *slot = &device->state->slots[device->slot];
    if (held > atomic_load(&slot->most_chunks))
        atomic_store(&slot->most_chunks, held);
}

int sg_chunks_take(sg_device *device, uint32_t *chunks, size_t count) {
    sg_state *state = device->state;
    if (device->slot == SG_NO_SLOT)
        return -EBADF;
    int error = sg_metadata_lock(device, SG_TENANT_PATIENCE_NS);
    if (error != 0)
        return error;
    if (collect_free(device, chunks, count) < count) {
        sg_repair(device);
        if (collect_free(device, chunks, count) < count)
            error = -ENOMEM;
    }
    for (size_t i = 0; error == 0 && i < count; i++)
        atomic_store(&state->owners[chunks[i]], (uint16_t)(device->slot + 1));
    if (error == 0)
        note_most(device);
    sg_metadata_unlock(device);
    return error;
}

/* Discard first, then let go: nobody may get a chunk that is still being emptied. The chunks are ours
 * until the owner word says otherwise, so discarding needs no lock. */
void sg_chunks_give(sg_device *device, const uint32_t *chunks, size_t count) {
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && chunks[i + run] == chunks[i] + run)
            run++;
        sg_arena_discard(device, chunks[i], (uint32_t)run);
        for (size_t k = 0; k < run; k++)
            atomic_store(&device->state->owners[chunks[i + k]], 0);
        i += run;
    }
}

uint64_t sg_used_bytes(sg_device *device) {
    sg_dead dead;
    uint64_t used = 0;
    sg_find_dead(device, &dead);
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        uint16_t owner = atomic_load_explicit(&device->state->owners[i], memory_order_relaxed);
        used += owner != 0 && sg_owner_lives(owner, &dead);
    }
    return used * SG_CHUNK_BYTES;
}
