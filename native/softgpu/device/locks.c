/* The locks on the state file; see layout.h for why OFD locks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "layout.h"

#define LOCK_BASE ((off_t)1 << 40)

enum { FIRST_SLEEP_NS = 20000, LONGEST_SLEEP_NS = 5000000 };

off_t sg_lock_offset(int which) {
    return LOCK_BASE + which;
}

static struct flock region(int which, short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BASE + which, .l_len = 1};
}

int sg_lock_try(int file, int which) {
    struct flock lock = region(which, F_WRLCK);
    return fcntl(file, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

void sg_lock_drop(int file, int which) {
    struct flock lock = region(which, F_UNLCK);
    (void)fcntl(file, F_OFD_SETLK, &lock);
}

bool sg_lock_held_elsewhere(int file, int which) {
    struct flock lock = region(which, F_WRLCK);
    /* An error counts as held: memory must never be taken from a living process. */
    return fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static bool is_held(int error) {
    return error == -EAGAIN || error == -EACCES || error == -EINTR;
}

/* F_OFD_SETLKW has no time limit, and the usual way to give it one, a timer's signal, is not ours to send
 * in a tenant's process. Who holds these locks does so for microseconds, or is stopped. */
int sg_lock_take(int file, int which, uint64_t patience_ns) {
    int error = sg_lock_try(file, which);
    if (!is_held(error))
        return error;
    uint64_t deadline = sg_monotonic_ns() + patience_ns;
    for (long sleep = FIRST_SLEEP_NS; is_held(error); sleep = sleep < LONGEST_SLEEP_NS ? 2 * sleep : sleep) {
        if (sg_monotonic_ns() >= deadline)
            return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = sleep}, NULL);
        error = sg_lock_try(file, which);
    }
    return error;
}

/* An OFD lock does not exclude the threads that share the open file, so a mutex stands in front. */
static int take_mutex(pthread_mutex_t *mutex, uint64_t patience_ns) {
    if (pthread_mutex_trylock(mutex) == 0)
        return 0;
    uint64_t deadline = sg_monotonic_ns() + patience_ns;
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};
    return -pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

static void log_holder(sg_device *device) {
    char line[128], name[64];
    int32_t pid = sg_lock_holder(device, SG_LOCK_METADATA);
    sg_read_process_name(pid, name, sizeof name);
    if (pid > 0)
        snprintf(line, sizeof line, "held by pid %d (%s)", pid, name);
    else
        snprintf(line, sizeof line, "held by a process that cannot be seen from here");
    sg_log_once(device, "metadata-lock", line);
}

int sg_metadata_lock(sg_device *device, uint64_t patience_ns) {
    int file = sg_state_file(device);
    int error = file < 0 ? file : take_mutex(&device->metadata, patience_ns);
    if (error != 0)
        return error;
    error = sg_lock_take(file, SG_LOCK_METADATA, patience_ns);
    if (error != 0)
        pthread_mutex_unlock(&device->metadata);
    if (error == -ETIMEDOUT && patience_ns >= SG_TENANT_PATIENCE_NS)
        log_holder(device);
    return error;
}

void sg_metadata_unlock(sg_device *device) {
    int file = sg_state_file(device);
    if (file >= 0)
        sg_lock_drop(file, SG_LOCK_METADATA);
    pthread_mutex_unlock(&device->metadata);
}

void sg_mutexes_reset(sg_device *device) {
    pthread_mutex_init(&device->files, NULL);
    pthread_mutex_init(&device->metadata, NULL);
    pthread_mutex_init(&device->sharing, NULL);
    pthread_mutex_init(&device->launching, NULL);
}
