/* Opening the shared state, laying it out the first time. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model_layout.h"

/* Under the metadata lock. A layout that was begun and not finished has no magic and is begun anew. */
static int lay_out(sg_device *device) {
    struct stat about;
    if (fstat(device->state_file.number, &about) != 0)
        return -errno;
    if ((uint64_t)about.st_size < device->state_bytes && ftruncate(device->state_file.number, (off_t)device->state_bytes) != 0)
        return -errno;
    if (fstat(device->arena_file.number, &about) != 0)
        return -errno;
    if ((uint64_t)about.st_size < device->facts.memory_bytes &&
        ftruncate(device->arena_file.number, (off_t)device->facts.memory_bytes) != 0)
        return -errno;
    /* Blocks now, so that a full disk is an error here and not SIGBUS at a later store. Those of the model
     * follow when a process takes part in it. */
    if (fallocate(device->state_file.number, 0, 0, (off_t)device->model_offset) != 0 && errno != EOPNOTSUPP)
        return -errno;
    return 0;
}

static int map_state(sg_device *device) {
    void *map = mmap(NULL, device->state_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device->state_file.number, 0);
    if (map == MAP_FAILED)
        return -errno;
    device->state = map;
    if (atomic_load(&device->state->magic) != SG_STATE_MAGIC) {
        memset(map, 0, device->model_offset);
        device->state->version = SG_STATE_VERSION;
        device->state->chunk_count = device->chunk_count;
        atomic_store(&device->state->magic, SG_STATE_MAGIC);
    }
    if (device->state->version != SG_STATE_VERSION || device->state->chunk_count != device->chunk_count)
        return -EPROTO;
    return 0;
}

/* A state that is laid out is mapped without any lock, so that looking at a device works while somebody
 * sits on the lock. The magic is written last: where it is, everything is. */
static bool is_laid_out(const sg_device *device) {
    struct stat state, arena;
    uint64_t magic = 0;
    return fstat(device->state_file.number, &state) == 0 && (uint64_t)state.st_size >= device->state_bytes &&
           fstat(device->arena_file.number, &arena) == 0 &&
           (uint64_t)arena.st_size >= device->facts.memory_bytes &&
           pread(device->state_file.number, &magic, sizeof magic, offsetof(sg_state, magic)) == sizeof magic &&
           magic == SG_STATE_MAGIC;
}

int sg_state_open(sg_device *device, uint64_t patience_ns) {
    int number;
    if (device->state != NULL)
        return 0;
    if ((number = sg_state_file(device)) < 0 || (number = sg_arena_file(device)) < 0) {
        sg_state_close(device);
        return number;
    }
    device->chunk_count = (uint32_t)(sg_capacity_bytes(&device->facts) / SG_CHUNK_BYTES);
    device->model_offset = (sizeof(sg_state) + device->chunk_count * sizeof(uint16_t) + 4095) & ~(size_t)4095;
    device->state_bytes = device->model_offset + sg_model_file_bytes(&device->facts);
    int error;
    if (is_laid_out(device)) {
        error = map_state(device);
    } else if ((error = sg_metadata_lock(device, patience_ns)) == 0) {
        error = lay_out(device);
        if (error == 0)
            error = map_state(device);
        sg_metadata_unlock(device);
    }
    if (error != 0)
        sg_state_close(device);
    return error;
}

void sg_state_close(sg_device *device) {
    if (device->state != NULL)
        munmap(device->state, device->state_bytes);
    sg_file_close(&device->state_file);
    sg_file_close(&device->arena_file);
    device->state = NULL;
    device->state_reopened = false;
    device->slot = SG_NO_SLOT;
    device->turn = (sg_turn){0};
}

/* Closing our duplicate of an open file drops no lock while the parent has its own. */
void sg_device_forget(sg_device *device) {
    sg_mutexes_reset(device);
    sg_model_forget(device);
    sg_state_close(device);
}
