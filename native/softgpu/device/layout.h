/* The layout of the `state` file. Only device/ includes this.
 *
 * Every field that another process may read while we write it is atomic. Values read from here are
 * never trusted as indices: whoever may use the device may also write to this file.
 */
#ifndef SG_LAYOUT_H
#define SG_LAYOUT_H

#include <stdatomic.h>

#include "device.h"

#define SG_STATE_MAGIC UINT64_C(0x3145544154535153) /* "SQSTATE1" */
#define SG_STATE_VERSION 1
#define SG_BUCKETS 16 /* of the recent past ... */
#define SG_BUCKET_NS UINT64_C(100000000) /* ... 100 ms each */

typedef struct {
    _Atomic uint64_t period[SG_BUCKETS]; /* now / SG_BUCKET_NS when the bucket was last used */
    _Atomic uint64_t busy_ns[SG_BUCKETS];
} sg_recent;

typedef struct {
    _Atomic uint32_t used;
    _Atomic int32_t pid; /* as the process itself sees it */
    _Atomic uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    _Atomic uint64_t start_ticks; /* field 22 of /proc/self/stat: tells a reused pid */
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t launches;
    _Atomic uint64_t instructions;
    char name[64];
    sg_recent recent;
} sg_slot;

struct sg_state {
    _Atomic uint64_t magic; /* written last */
    uint32_t version;
    uint32_t chunk_count;
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t running_since_ns; /* 0: nothing runs */
    _Atomic uint32_t running_slot;
    uint32_t reserved;
    sg_recent recent;
    sg_slot slots[SG_MAXIMUM_PROCESSES];
    _Atomic uint16_t owners[]; /* per chunk: slot + 1, 0 free */
};

/* Bytes locked, far behind the file's content. All are OFD locks: they go with the open file, so a
 * kill frees them, they work across pid namespaces, and closing another descriptor of the same file
 * in the same process (the NVML library does) leaves them alone, unlike POSIX locks. */
enum { SG_LOCK_METADATA = 0, SG_LOCK_QUEUE = 1, SG_LOCK_RUN = 2, SG_LOCK_SLOTS = 64 };

int sg_lock_take(int file, int which);
void sg_lock_drop(int file, int which);
int sg_lock_try(int file, int which);
bool sg_lock_held_elsewhere(int file, int which);

/* Between these, nobody else changes slots or owners. Also excludes the threads of this process. */
int sg_metadata_lock(sg_device *device);
void sg_metadata_unlock(sg_device *device);

bool sg_slot_alive(const sg_device *device, int slot);
/* Under the metadata lock: give back what dead processes held. */
void sg_repair(sg_device *device);
/* Without the lock: repair if there is anything dead. */
void sg_repair_if_needed(sg_device *device);

void sg_recent_add(sg_recent *recent, uint64_t from_ns, uint64_t to_ns);
uint64_t sg_recent_busy_ns(sg_recent *recent, uint64_t now_ns);
/* What the kernel running now adds to the last second; `slot` < 0: whoever's. */
uint64_t sg_running_busy_ns(sg_device *device, int slot, uint64_t now_ns);
/* Punch a run of chunks out of the arena. */
void sg_arena_discard(const sg_device *device, uint32_t first, uint32_t count);

/* After fork: the process-local mutexes as new. */
void sg_locks_reset(void);

#endif
