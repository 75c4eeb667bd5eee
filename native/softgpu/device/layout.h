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
#define SG_STATE_VERSION 6
#define SG_BUCKETS 16 /* of the recent past ... */
#define SG_BUCKET_NS UINT64_C(100000000) /* ... 100 ms each */

typedef struct {
    _Atomic uint64_t period[SG_BUCKETS]; /* now / SG_BUCKET_NS when the bucket was last used */
    _Atomic uint64_t busy_ns[SG_BUCKETS];
} sg_recent;

enum { SG_SLOT_FREE = 0, SG_SLOT_USED = 1 };

typedef struct {
    _Atomic uint32_t used; /* SG_SLOT_... */
    _Atomic int32_t pid; /* as the process itself sees it */
    _Atomic uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    _Atomic uint64_t start_ticks; /* field 22 of /proc/self/stat: tells a reused pid */
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t launches;
    _Atomic uint64_t turns; /* a kernel may have many */
    _Atomic uint64_t instructions;
    _Atomic uint32_t most_chunks; /* held at once */
    _Atomic uint64_t incarnation; /* how many processes have had this slot */
    char name[64];
    sg_recent recent;
} sg_slot;

/* See incidents.c. */
typedef struct {
    _Atomic uint64_t number; /* written last */
    _Atomic uint64_t value;
    _Atomic uint32_t kind;
} sg_incident_place;

/* Chunks that more than one process may hold: see shares.c. */
typedef struct {
    _Atomic uint32_t used;
    _Atomic uint32_t creator; /* slot + 1: pays as long as it holds the share */
    _Atomic uint64_t secret;  /* tells a share from a later one with the same number */
    _Atomic uint64_t holders[SG_MAXIMUM_PROCESSES / 64]; /* a bit for each slot */
} sg_share;

/* An event that more than one process may record and wait for: see shared_events.c. */
typedef struct {
    _Atomic uint32_t used;
    _Atomic uint32_t changes; /* who waits for a record sleeps on this word */
    _Atomic uint64_t secret;
    _Atomic uint64_t creator; /* slot and incarnation, as in a record's word */
    _Atomic uint64_t holders[SG_MAXIMUM_PROCESSES / 64];
    _Atomic uint64_t records[SG_EVENT_RECORDS];   /* the last ones: which, whose, and whether it is done */
    _Atomic uint64_t sequences[SG_EVENT_RECORDS]; /* of its operation in model time; 0: it has ended */
} sg_shared_event;

enum { SG_SHARE_OWNER = 0x1000 }; /* the owner word of a chunk of share 0 */

/* Processes that can take part in the model of a device: model_layout.h. */
#define SG_MODEL_SLOTS 32

struct sg_state {
    _Atomic uint64_t magic; /* written last */
    uint32_t version;
    uint32_t chunk_count;
    _Atomic uint32_t failures_changed;     /* at byte 16, counted up by src/aliquot/softgpu/failing.py: failures.c */
    uint32_t unused;
    _Atomic uint64_t failures_reported;    /* number of the last event that incidents.c was told */
    _Atomic uint64_t model_published;      /* which area holds the model: publishing.c */
    _Atomic uint32_t wake[SG_MODEL_SLOTS]; /* who waits on the model's clock sleeps on its slot's word */
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t turn; /* whose it is, as a number: turns.h */
    _Atomic uint64_t kept_until_ns;
    _Atomic uint64_t line; /* the number of the first place in line: line.c */
    _Atomic uint32_t line_slot; /* who took it last */
    uint32_t unused_2;
    _Atomic uint64_t running_since_ns; /* 0: nothing runs. Who makes it 0 charges the time, nobody else */
    _Atomic uint32_t running_slot;
    _Atomic uint32_t turn_changes; /* who waits for a turn sleeps on this word: line.c */
    _Atomic uint64_t switches, preemptions;
    sg_recent recent;
    _Atomic uint64_t memory_errors[2]; /* corrected, uncorrected */
    _Atomic uint64_t incident_count;
    sg_incident_place incidents[SG_INCIDENTS];
    sg_slot slots[SG_MAXIMUM_PROCESSES];
    _Atomic uint64_t waiting_since_ns[SG_MAXIMUM_PROCESSES]; /* for a turn; 0: it does not */
    _Atomic uint64_t host_bytes[SG_MAXIMUM_PROCESSES]; /* page-locked memory of each slot: budget.c */
    sg_share shares[SG_MAXIMUM_SHARES];
    sg_shared_event events[SG_MAXIMUM_EVENTS];
    _Atomic uint16_t owners[]; /* per chunk: slot + 1, or SG_SHARE_OWNER + share; 0 free */
};

/* Bytes locked, far behind the file's content. All are OFD locks: they go with the open file, so a
 * kill frees them, they work across pid namespaces, and closing another descriptor of the same file
 * in the same process (the NVML library does) leaves them alone, unlike POSIX locks. */
enum { SG_LOCK_METADATA = 0, SG_LOCK_SLOTS = 64, SG_LOCK_SHARES = 1024 };
/* Of turns, and of first places in line, there are as many bytes, one behind the other: turns.h, line.c. */
enum { SG_LOCK_TURN = 8192, SG_LOCK_NUMBERS = 1 << 29, SG_LOCK_LINE = 1 << 30 };

/* -ETIMEDOUT after `patience_ns`. Never waits in the kernel: see locks.c. */
int sg_lock_take(int file, int which, uint64_t patience_ns);
void sg_lock_drop(int file, int which);
int sg_lock_try(int file, int which);
bool sg_lock_held_elsewhere(int file, int which);
off_t sg_lock_offset(int which);

/* Between these, nobody else changes slots or owners. Also excludes the threads of this process. */
int sg_metadata_lock(sg_device *device, uint64_t patience_ns);
void sg_metadata_unlock(sg_device *device);

bool sg_slot_alive(const sg_device *device, int slot);
/* Under the metadata lock: give back what dead processes held. */
void sg_repair(sg_device *device);
/* What nobody alive holds. */
typedef struct {
    bool slots[SG_MAXIMUM_PROCESSES];
    bool shares[SG_MAXIMUM_SHARES];
} sg_dead;
/* Without the lock: repair if there is anything dead. `dead` says what could not be cleared away, because
 * somebody sits on the lock. */
void sg_find_dead(sg_device *device, sg_dead *dead);
/* Marks the shares that nobody holds, the dead of `dead->slots` left out; whether there is one. */
bool sg_shares_find_dead(sg_device *device, sg_dead *dead);
/* Under the metadata lock: dead holders hold no more. */
void sg_shares_drop_holders(sg_device *device, const sg_dead *dead);
/* The same for events, and frees those that nobody holds. */
void sg_shared_events_repair(sg_device *device, const sg_dead *dead);
/* Does the owner word name somebody alive? And whose memory is it: a slot, or -1 (in the mail). */
bool sg_owner_lives(uint16_t owner, const sg_dead *dead);
int sg_owner_slot(sg_device *device, uint16_t owner, const sg_dead *dead);

/* The pid of a slot's process in our pid namespace; 0 where we cannot see it. */
int32_t sg_slot_pid(const sg_device *device, int slot);
/* Field 22 of /proc/PID/stat, and whether field 3 says stopped (by a signal or a debugger). */
bool sg_process_stat(int32_t pid, uint64_t *start_ticks, bool *stopped);
bool sg_slot_stopped(const sg_device *device, int slot);
/* /proc/.../stat: fields 22 and 3, and the CPU time used, in ticks. */
bool sg_read_stat(const char *path, uint64_t *start_ticks, uint64_t *cpu_ticks, bool *stopped);
/* Who holds a lock of the state file: a pid, or 0 where it cannot be seen. Slow: looks through /proc. */
int32_t sg_lock_holder(const sg_device *device, int which);

/* What one read of a small file gives, with a NUL behind it: its length, or -1 and an empty text. */
ssize_t sg_file_text(const char *path, char *text, size_t size);
/* The numbers at the beginning of a file, or behind `key` in one of "key number" or "key: number" lines; how many,
 * at most `room`. A number is digits alone, below 2^64. */
int sg_file_numbers(const char *path, const char *key, uint64_t *numbers, int room);
/* Closes the number only if it still is the file that we opened. */
void sg_file_close(sg_file *file);

void sg_recent_add(sg_recent *recent, uint64_t from_ns, uint64_t to_ns);
uint64_t sg_recent_busy_ns(sg_recent *recent, uint64_t now_ns);
/* Since when the kernel that runs right now has its turn; 0: none runs. `slot` < 0: whoever's. */
uint64_t sg_running_since(sg_device *device, int slot);
/* What it adds to the last second. */
uint64_t sg_running_busy_ns(sg_device *device, int slot, uint64_t now_ns);
/* Punch a run of chunks out of the arena. */
void sg_arena_discard(sg_device *device, uint32_t first, uint32_t count);

#endif
