/* Who uses the device. A slot is alive while its byte is locked. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "model_layout.h"

bool sg_slot_alive(const sg_device *device, int slot) {
    /* Our own lock never conflicts with our own file. */
    return slot == device->slot || sg_lock_held_elsewhere(device->state_file.number, SG_LOCK_SLOTS + slot);
}

static void free_chunks_of(sg_device *device, const sg_dead *dead) {
    sg_state *state = device->state;
    for (uint32_t i = 0; i < device->chunk_count;) {
        uint32_t run = 0;
        while (i + run < device->chunk_count) {
            uint16_t owner = atomic_load_explicit(&state->owners[i + run], memory_order_relaxed);
            if (owner == 0 || sg_owner_lives(owner, dead))
                break;
            run++;
        }
        if (run == 0) {
            i++;
            continue;
        }
        sg_arena_discard(device, i, run);
        for (uint32_t k = 0; k < run; k++)
            atomic_store(&state->owners[i + k], 0);
        i += run;
    }
}

/* Which slots are in use by nobody alive, and which shares held by nobody; whether there is one. Asked
 * through a descriptor that the program replaced meanwhile, everybody would seem dead: nobody is, then. */
static bool probe(sg_device *device, sg_dead *dead) {
    bool any = false;
    int file = sg_state_file(device);
    for (int i = 0; i < SG_MAXIMUM_PROCESSES; i++) {
        dead->slots[i] = atomic_load(&device->state->slots[i].used) != SG_SLOT_FREE && !sg_slot_alive(device, i);
        any = any || dead->slots[i];
    }
    any = sg_shares_find_dead(device, dead) || any;
    if (file >= 0 && sg_state_file(device) == file)
        return any;
    memset(dead, 0, sizeof *dead);
    return false;
}

/* An unused slot counts as dead as well: a process killed while it left may still own chunks. Chunks go
 * before the share that they are of, so that a kill in between leaves them to the next. */
void sg_repair(sg_device *device) {
    sg_dead dead;
    probe(device, &dead);
    for (int i = 0; i < SG_MAXIMUM_PROCESSES; i++)
        dead.slots[i] = dead.slots[i] || atomic_load(&device->state->slots[i].used) == SG_SLOT_FREE;
    sg_shares_drop_holders(device, &dead);
    sg_shared_events_repair(device, &dead);
    free_chunks_of(device, &dead);
    for (int i = 0; i < SG_MAXIMUM_SHARES; i++)
        if (dead.shares[i])
            atomic_store(&device->state->shares[i].used, 0);
    for (int i = 0; i < SG_MAXIMUM_PROCESSES; i++)
        if (dead.slots[i])
            atomic_store(&device->state->slots[i].used, SG_SLOT_FREE);
}

void sg_find_dead(sg_device *device, sg_dead *dead) {
    if (probe(device, dead) && sg_metadata_lock(device, SG_READER_PATIENCE_NS) == 0) {
        sg_repair(device);
        sg_metadata_unlock(device);
        (void)probe(device, dead); /* an unused share is dead still: its chunks are nobody's */
    }
}

static uint64_t namespace_inode(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? (uint64_t)about.st_ino : 0;
}

/* The next field after `at`, which stands on the space before one. */
static const char *skip_fields(const char *at, int count) {
    for (; at != NULL && count > 0; count--)
        at = strchr(at + 1, ' ');
    return at;
}

bool sg_read_stat(const char *path, uint64_t *start_ticks, uint64_t *cpu_ticks, bool *stopped) {
    char text[1024], state = 0;
    unsigned long long user = 0, system = 0, start = 0;
    if (sg_file_text(path, text, sizeof text) <= 0)
        return false;
    /* Fields 3, 14, 15, 22; the command in field 2 may hold spaces, so count from its closing parenthesis. */
    const char *third = strrchr(text, ')');
    if (third == NULL || *++third != ' ' || sscanf(third, " %c", &state) != 1)
        return false;
    const char *times = skip_fields(third, 11), *begun = skip_fields(times, 8);
    if (begun == NULL || sscanf(times, " %llu %llu", &user, &system) != 2 || sscanf(begun, " %llu", &start) != 1)
        return false;
    *start_ticks = start;
    *cpu_ticks = user + system;
    *stopped = state == 'T' || state == 't';
    return true;
}

bool sg_process_stat(int32_t pid, uint64_t *start_ticks, bool *stopped) {
    char path[64];
    uint64_t cpu_ticks;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return sg_read_stat(path, start_ticks, &cpu_ticks, stopped);
}

void sg_read_process_name(int32_t pid, char *name, size_t size) {
    char path[64];
    name[0] = '\0';
    if (pid <= 0 || size == 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    (void)sg_file_text(path, name, size); /* argv[0] ends at its own NUL */
}

static void describe_self(sg_slot *slot) {
    uint64_t ticks;
    bool stopped;
    slot->pid = (int32_t)getpid();
    slot->pid_namespace = namespace_inode("/proc/self/ns/pid");
    slot->start_ticks = sg_process_stat(slot->pid, &ticks, &stopped) ? ticks : 0;
    slot->busy_ns = 0;
    slot->launches = 0;
    slot->turns = 0;
    slot->instructions = 0;
    slot->most_chunks = 0;
    memset(&slot->recent, 0, sizeof slot->recent);
    sg_read_process_name((int32_t)getpid(), slot->name, sizeof slot->name);
}

int sg_process_enter(sg_device *device) {
    if (device->slot != SG_NO_SLOT)
        return 0;
    int error = sg_metadata_lock(device, SG_TENANT_PATIENCE_NS);
    if (error != 0)
        return error;
    sg_repair(device);
    error = -EUSERS;
    for (int i = 0; i < SG_MAXIMUM_PROCESSES && error != 0; i++) {
        sg_slot *slot = &device->state->slots[i];
        if (atomic_load(&slot->used) != 0 || sg_lock_try(device->state_file.number, SG_LOCK_SLOTS + i) != 0)
            continue;
        describe_self(slot);
        atomic_store(&device->state->host_bytes[i], 0);
        atomic_store(&device->state->waiting_since_ns[i], 0);
        device->incarnation = atomic_fetch_add(&slot->incarnation, 1) + 1;
        atomic_store(&slot->used, SG_SLOT_USED);
        device->slot = i;
        error = 0;
    }
    sg_metadata_unlock(device);
    if (error == 0 && sg_model_used(device) && (error = sg_model_prepare(device)) != 0)
        sg_process_leave(device);
    return error;
}

/* Without the metadata lock, so that a program can always end: the slot is ours until its byte is let go,
 * and we write nothing to it after that. Whoever repairs in between finds no chunk of ours. */
void sg_process_leave(sg_device *device) {
    int slot = device->slot, file = sg_state_file(device);
    if (slot == SG_NO_SLOT)
        return;
    sg_model_leave(device);
    sg_turn_leave(device);
    atomic_store(&device->state->slots[slot].used, SG_SLOT_FREE);
    device->slot = SG_NO_SLOT;
    if (file < 0)
        return; /* nobody takes a slot whose byte is locked; it is let go when the process ends */
    sg_lock_drop(file, SG_LOCK_SLOTS + slot);
    /* The earlier open file lives by this mapping alone, and its locks with it: map the later one. */
    if (device->state_reopened && mmap(device->state, device->state_bytes, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_FIXED, file, 0) == (void *)device->state)
        device->state_reopened = false;
}

/* The last number of NSpid is the pid in the process's own, innermost namespace. */
static int32_t innermost_pid(int32_t pid) {
    char path[64], line[512];
    int32_t inner = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "NSpid:", 6) == 0) {
            const char *last = strrchr(line, '\t');
            inner = last ? (int32_t)strtol(last + 1, NULL, 10) : 0;
            break;
        }
    fclose(file);
    return inner;
}

/* A process of another namespace: find it by looking through what /proc shows us. */
static int32_t translate_pid(int32_t pid, uint64_t pid_namespace) {
    int32_t found = 0;
    struct dirent *entry;
    DIR *stream = opendir("/proc");
    if (stream == NULL)
        return 0;
    while (found == 0 && (entry = readdir(stream)) != NULL) {
        char path[300];
        int32_t candidate = (int32_t)strtol(entry->d_name, NULL, 10);
        if (candidate <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/ns/pid", candidate);
        if (namespace_inode(path) == pid_namespace && innermost_pid(candidate) == pid)
            found = candidate;
    }
    closedir(stream);
    return found;
}

int32_t sg_slot_pid(const sg_device *device, int slot) {
    uint64_t its_namespace = atomic_load(&device->state->slots[slot].pid_namespace);
    int32_t pid = atomic_load(&device->state->slots[slot].pid);
    return its_namespace == namespace_inode("/proc/self/ns/pid") ? pid : translate_pid(pid, its_namespace);
}

/* The start time tells a process that has got the pid of one that ended. */
bool sg_slot_stopped(const sg_device *device, int slot) {
    uint64_t ticks;
    bool stopped;
    return sg_process_stat(sg_slot_pid(device, slot), &ticks, &stopped) && stopped &&
           ticks == atomic_load(&device->state->slots[slot].start_ticks);
}

/* When a process that started `ticks` after the machine did began, by the wall clock. */
static uint64_t since_epoch_us(uint64_t ticks) {
    struct timespec now, up;
    long per_second = sysconf(_SC_CLK_TCK);
    if (ticks == 0 || per_second <= 0)
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    int64_t boot_us = ((int64_t)now.tv_sec - up.tv_sec) * 1000000 + (now.tv_nsec - up.tv_nsec) / 1000;
    return (uint64_t)(boot_us + (int64_t)(ticks * 1000000 / (uint64_t)per_second));
}

/* Busy by the model's clock, where there is one. */
static void add_modelled(sg_device *device, const sg_model *model, sg_process *process) {
    int index = process->slot < SG_MODEL_MEMBERS
                    ? sg_model_find(model, (uint32_t)process->slot,
                                    atomic_load(&device->state->slots[process->slot].incarnation))
                    : SG_NOBODY;
    process->recent_permille = 0;
    if (index == SG_NOBODY)
        return;
    sg_recent recent = model->members[index].recent;
    uint64_t busy = sg_recent_busy_ns(&recent, model->now_ns);
    process->busy_ns = model->members[index].ledger.compute_ns;
    process->recent_permille = busy >= 1000000000u ? 1000 : (unsigned)(busy / 1000000);
}

static void describe(sg_device *device, int index, sg_process *process) {
    sg_slot *slot = &device->state->slots[index];
    memset(process, 0, sizeof *process);
    process->slot = index;
    process->pid = sg_slot_pid(device, index);
    process->busy_ns = atomic_load(&slot->busy_ns);
    process->launches = atomic_load(&slot->launches);
    process->instructions = atomic_load(&slot->instructions);
    process->most_bytes = atomic_load(&slot->most_chunks) * SG_CHUNK_BYTES;
    process->started_us = since_epoch_us(atomic_load(&slot->start_ticks));
    uint64_t now = sg_monotonic_ns();
    uint64_t recent = sg_recent_busy_ns(&slot->recent, now) + sg_running_busy_ns(device, index, now);
    process->recent_permille = recent >= 1000000000u ? 1000 : (unsigned)(recent / 1000000);
    memcpy(process->name, slot->name, sizeof process->name);
    process->name[sizeof process->name - 1] = '\0';
}

int sg_processes(sg_device *device, sg_process *processes, int capacity) {
    uint64_t used[SG_MAXIMUM_PROCESSES] = {0};
    sg_dead dead;
    int count = 0;
    sg_find_dead(device, &dead);
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        uint16_t owner = atomic_load_explicit(&device->state->owners[i], memory_order_relaxed);
        int slot = owner == 0 ? -1 : sg_owner_slot(device, owner, &dead);
        if (slot >= 0)
            used[slot] += SG_CHUNK_BYTES;
    }
    for (int i = 0; i < SG_MAXIMUM_PROCESSES && count < capacity; i++) {
        if (atomic_load(&device->state->slots[i].used) == SG_SLOT_FREE || dead.slots[i])
            continue;
        describe(device, i, &processes[count]);
        processes[count].used_bytes = used[i];
        count++;
    }
    sg_model *model = sg_model_used(device) ? sg_model_look(device) : NULL;
    for (int i = 0; i < count && model != NULL; i++)
        add_modelled(device, model, &processes[i]);
    free(model);
    return count;
}
