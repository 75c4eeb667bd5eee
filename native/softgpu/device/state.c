/* Opening the shared state, laying it out the first time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"

static int open_file(const char *folder, const char *name) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDWR | O_CLOEXEC);
    return file < 0 ? -errno : file;
}

/* Under the metadata lock. A layout that was begun and not finished has no magic and is begun anew. */
static int lay_out(sg_device *device) {
    struct stat about;
    if (fstat(device->state_file, &about) != 0)
        return -errno;
    if ((uint64_t)about.st_size < device->state_bytes && ftruncate(device->state_file, (off_t)device->state_bytes) != 0)
        return -errno;
    if (fstat(device->arena_file, &about) != 0)
        return -errno;
    if ((uint64_t)about.st_size < device->facts.memory_bytes &&
        ftruncate(device->arena_file, (off_t)device->facts.memory_bytes) != 0)
        return -errno;
    /* Blocks now, so that a full disk is an error here and not SIGBUS at a later store. */
    if (fallocate(device->state_file, 0, 0, (off_t)device->state_bytes) != 0 && errno != EOPNOTSUPP)
        return -errno;
    return 0;
}

static int map_state(sg_device *device) {
    void *map = mmap(NULL, device->state_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device->state_file, 0);
    if (map == MAP_FAILED)
        return -errno;
    device->state = map;
    if (atomic_load(&device->state->magic) != SG_STATE_MAGIC) {
        memset(map, 0, device->state_bytes);
        device->state->version = SG_STATE_VERSION;
        device->state->chunk_count = device->chunk_count;
        atomic_store(&device->state->magic, SG_STATE_MAGIC);
    }
    if (device->state->version != SG_STATE_VERSION || device->state->chunk_count != device->chunk_count)
        return -EPROTO;
    return 0;
}

int sg_state_open(sg_device *device) {
    if (device->state != NULL)
        return 0;
    if ((device->state_file = open_file(device->folder, "state")) < 0)
        return device->state_file;
    if ((device->arena_file = open_file(device->folder, "arena")) < 0) {
        int error = device->arena_file;
        sg_state_close(device);
        return error;
    }
    device->chunk_count = (uint32_t)(sg_capacity_bytes(&device->facts) / SG_CHUNK_BYTES);
    device->state_bytes = sizeof(sg_state) + device->chunk_count * sizeof(uint16_t);
    int error = sg_metadata_lock(device);
    if (error == 0) {
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
    if (device->state_file >= 0)
        close(device->state_file);
    if (device->arena_file >= 0)
        close(device->arena_file);
    device->state = NULL;
    device->state_file = device->arena_file = -1;
    device->slot = SG_NO_SLOT;
}

/* Closing our duplicate of an open file drops no lock while the parent has its own. */
void sg_device_forget(sg_device *device) {
    sg_locks_reset();
    pthread_mutex_init(&device->turn, NULL);
    sg_state_close(device);
}
