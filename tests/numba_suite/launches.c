/* How many kernels each process that ever used a device launched: what tells whether a test launched one.
 * Compiled against the device's own layout, so that a change there changes this or breaks it. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/layout.h"

typedef struct {
    uint64_t process; /* its start and its pid: a slot is used again by others */
    uint64_t launches;
} counted;

int slot_count(void) {
    return SG_MAXIMUM_PROCESSES;
}

/* 0, or -1 where the device was never used. Slots that were left keep their counts until used again. */
int count_launches(const char *state_path, counted *slots) {
    struct stat about;
    int file = open(state_path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    void *mapped = MAP_FAILED;
    if (fstat(file, &about) == 0 && (size_t)about.st_size >= sizeof(sg_state))
        mapped = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return -1;
    const sg_state *state = mapped;
    for (int i = 0; i < SG_MAXIMUM_PROCESSES; i++) {
        const sg_slot *slot = &state->slots[i];
        slots[i].process = atomic_load(&slot->start_ticks) << 24 | (uint32_t)atomic_load(&slot->pid);
        slots[i].launches = atomic_load(&slot->launches);
    }
    munmap(mapped, (size_t)about.st_size);
    return 0;
}
