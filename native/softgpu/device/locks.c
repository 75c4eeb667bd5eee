/* The locks on the state file; see layout.h for why OFD locks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "layout.h"

#define LOCK_BASE ((off_t)1 << 40)

/* An OFD lock does not exclude the threads that share the open file, so each process-wide lock has
 * a mutex in front. One of each for all devices: metadata is held for microseconds. */
static pthread_mutex_t metadata_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct flock region(int which, short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BASE + which, .l_len = 1};
}

int sg_lock_take(int file, int which) {
    struct flock lock = region(which, F_WRLCK);
    while (fcntl(file, F_OFD_SETLKW, &lock) != 0)
        if (errno != EINTR)
            return -errno;
    return 0;
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

int sg_metadata_lock(sg_device *device) {
    pthread_mutex_lock(&metadata_mutex);
    int error = sg_lock_take(device->state_file, SG_LOCK_METADATA);
    if (error != 0)
        pthread_mutex_unlock(&metadata_mutex);
    return error;
}

void sg_metadata_unlock(sg_device *device) {
    sg_lock_drop(device->state_file, SG_LOCK_METADATA);
    pthread_mutex_unlock(&metadata_mutex);
}

void sg_locks_reset(void) {
    pthread_mutex_init(&metadata_mutex, NULL);
}
