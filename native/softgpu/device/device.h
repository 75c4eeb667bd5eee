/* A software GPU on disk, as the driver and the NVML library both see it.
 *
 * What lies here: the device's facts (read only), and the state that all processes using the
 * device share: which process holds which 2 MiB chunk, whose turn it is to run, how long the
 * device was busy. Nothing here knows the driver API or NVML.
 *
 * The shared state is built so that a process killed at any instruction leaves nothing wrong:
 * a chunk's owner is one 16-bit word, a process lives while its byte-range lock is held, and
 * everything else (bytes used, bytes free, who runs) is computed from those two. The first to
 * look after a kill gives the dead process's chunks back.
 *
 * Functions return 0 or a negative errno unless they say otherwise.
 */
#ifndef SG_DEVICE_H
#define SG_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The version of the driver API that both libraries say they have: the newest of native/cuda/cuda.tsv.
 * An older one would make NVRTC and nvJitLink of a newer toolkit warn that their code may not load. */
#define SG_CUDA_VERSION 13050

#define SG_CHUNK_SHIFT 21
#define SG_CHUNK_BYTES ((uint64_t)1 << SG_CHUNK_SHIFT)
#define SG_MAXIMUM_DEVICES 64
#define SG_MAXIMUM_PROCESSES 256
#define SG_MAXIMUM_SHARES 1024
#define SG_MAXIMUM_EVENTS 1024 /* of several processes */
#define SG_EVENT_RECORDS 16    /* of each that can wait to be done */
#define SG_NO_SLOT (-1)

/* How long to wait for what others hold. Who only looks gives up soon and says what can be seen anyway;
 * a program that wants memory waits longer than any repair takes, and then gets an error. */
#define SG_READER_PATIENCE_NS UINT64_C(250000000)
#define SG_TENANT_PATIENCE_NS UINT64_C(5000000000)

/* What passes for time on a device: model.h. */
typedef enum { SG_TIME_REAL, SG_TIME_SCALED, SG_TIME_VIRTUAL } sg_time;

/* The `device` file. Bytes, kHz and mW; 0 where the file has no such key. */
typedef struct {
    char uuid[48]; /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
    unsigned char uuid_bytes[16];
    char name[96];
    uint32_t pci_domain, pci_bus, pci_device;
    uint64_t memory_bytes, memory_reserved_bytes, context_bytes;
    int compute_major, compute_minor;
    int multiprocessors;
    int clock_khz, memory_clock_khz, bus_width_bits;
    int l2_bytes;
    int shared_per_block_bytes, shared_per_block_optin_bytes, shared_per_multiprocessor_bytes;
    int registers_per_block;
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    sg_time time;
    int time_scale_ppm, time_slice_ns, switch_ns, preemption_ns;
    int fp32_lanes_per_multiprocessor, host_link_mb_per_s, launch_ns;
    int power_limit_mw, power_limit_min_mw, power_idle_mw;
    int slowdown_celsius, shutdown_celsius;
    int fans;
    int ecc;           /* 1 on, 0 off; -1 where the file does not say */
    int mig_instances; /* how many the card can be cut into */
    int pci_device_id; /* device id << 16 | vendor id */
    int pcie_generation, pcie_width;
    uint64_t bar1_bytes;
    uint64_t module_bytes; /* code memory of a context comes in pieces of this; 0: it is not charged */
    int local_threads;     /* for how many threads local memory is set aside; 0: it is not charged */
    int kernel_timeout_ms; /* a kernel that runs longer is ended; 0: never */
} sg_facts;

typedef struct sg_state sg_state;
struct sg_clock;
struct sg_failing;

/* A descriptor, and which file it was opened as: see files.c. */
typedef struct {
    int number; /* -1: not open */
    dev_t device;
    ino_t inode;
} sg_file;
#define SG_NO_FILE ((sg_file){.number = -1})

/* This process's turn on a device in real mode: turns.h. */
typedef struct {
    enum { SG_TURN_NONE, SG_TURN_KEPT, SG_TURN_OURS } held;
    uint64_t number;            /* of the turn that we have, or had until it was taken away */
    uint64_t began_ns;          /* what is not charged yet */
    uint64_t charged_before_ns; /* to our slot, when this kernel began */
    uint64_t slice_began_ns;
    _Atomic uint64_t slice_end_ns; /* while `contested`: somebody waits for it */
    _Atomic bool contested;
} sg_turn;

/* One device, opened by this process. */
typedef struct {
    sg_facts facts;
    char folder[4096];
    sg_file state_file, arena_file; /* for sg_state_file and sg_arena_file, which look before they trust */
    bool state_reopened; /* `state` is mapped through an earlier open file, which holds our slot's lock */
    sg_state *state;
    size_t state_bytes; /* all of it, the model's areas included, which begin at ... */
    size_t model_offset;
    struct sg_clock *_Atomic clock; /* this process's side of the model; NULL until it takes part */
    uint64_t incarnation;           /* of `slot` */
    struct sg_failing *_Atomic failing; /* what is known of the file `failures`: failures.c */
    uint32_t chunk_count; /* from the facts: the number in the shared file is not to be trusted */
    int slot; /* ours, or SG_NO_SLOT */
    pthread_mutex_t files, metadata;
    pthread_mutex_t sharing; /* of the next two */
    uint16_t joined[SG_MAXIMUM_SHARES]; /* how often this process holds each share */
    uint16_t joined_events[SG_MAXIMUM_EVENTS];
    pthread_mutex_t launching; /* the threads of this process, one after another */
    sg_turn turn;
} sg_device;

/* ---- facts (facts.c, inventory.c) ---- */

/* Parse the text of a `device` file. -EINVAL where a key that everything needs is missing or wrong. */
int sg_facts_parse(const char *text, size_t length, sg_facts *facts);

/* Whether kernels of one device can reach memory of the other. */
bool sg_facts_can_be_peers(const sg_facts *one, const sg_facts *other);

/* The folder in which this library finds its devices; `anchor` is any address inside the library.
 * -ENOENT where there is none. */
int sg_inventory_folder(const void *anchor, char *folder, size_t size);

/* Read the devices under `folder`, ordered by PCI bus id. A folder that cannot be read as a device
 * is passed over: a device being created by another process has no `device` file yet.
 * Returns how many there are. */
int sg_inventory_read(const char *folder, sg_device *devices, int capacity);

/* The device of one folder. */
int sg_device_read(const char *folder, sg_device *device);

/* ---- shared state (state.c, chunks.c, processes.c) ---- */

/* Map the shared state, laying it out if we are the first. Idempotent. -ETIMEDOUT where it has to be laid
 * out and somebody holds the metadata lock for longer than `patience_ns`. */
int sg_state_open(sg_device *device, uint64_t patience_ns);
void sg_state_close(sg_device *device);

/* Take a process slot: from here on we are a process of the device. -ETIMEDOUT as above. */
int sg_process_enter(sg_device *device);
void sg_process_leave(sg_device *device);
/* The descriptors, opened anew where the program closed them under us; negative errno where that fails. */
int sg_state_file(sg_device *device);
int sg_arena_file(sg_device *device);
/* The process-local mutexes as new: at the start, and in a forked child. */
void sg_mutexes_reset(sg_device *device);
/* In a forked child: drop what was inherited without letting go of what the parent holds. */
void sg_device_forget(sg_device *device);

typedef struct {
    int slot;
    int32_t pid; /* in the caller's pid namespace; 0 where the caller cannot see it */
    uint64_t used_bytes;
    uint64_t most_bytes;   /* held at once, since the process entered */
    uint64_t started_us;   /* since the epoch; 0 unknown */
    uint64_t busy_ns;      /* since the process entered */
    uint64_t launches;
    uint64_t instructions;
    unsigned recent_permille; /* of the last second */
    char name[64];
} sg_process;

/* The living processes, after giving back what dead ones held (if nobody sits on the metadata lock: what
 * is returned is right either way). Returns how many. */
int sg_processes(sg_device *device, sg_process *processes, int capacity);
void sg_read_process_name(int32_t pid, char *name, size_t size);

/* Take `count` chunks for our process, ascending in `chunks`. -ENOMEM where there are not as many,
 * -ETIMEDOUT where somebody sits on the metadata lock; the device's log names who. */
int sg_chunks_take(sg_device *device, uint32_t *chunks, size_t count);
/* Give chunks back: their content is gone and the disk has the space again. */
void sg_chunks_give(sg_device *device, const uint32_t *chunks, size_t count);
/* Make sure that a chunk has blocks on disk, so that a store to it cannot raise SIGBUS. -ENOMEM on a
 * full disk, and where the machine's budget is used up. */
int sg_chunk_commit(sg_device *device, uint32_t chunk);

/* ---- the machine's memory (budget.c) ---- */

/* May software GPUs take `more` bytes of the machine's memory beyond what they hold? */
bool sg_budget_allows(sg_device *device, uint64_t more);
/* False: what the budget was set to makes no sense; the device's log says so. */
bool sg_budget_understood(const sg_device *device);
/* Page-locked memory of this process: counted while it lives. -ENOMEM beyond the budget. */
int sg_host_memory_take(sg_device *device, uint64_t bytes);
void sg_host_memory_give(sg_device *device, uint64_t bytes);

/* ---- memory that several processes hold (shares.c) ---- */

/* Chunks of ours become a share, which we hold. -ENOMEM: as many shares as there can be. */
int sg_share_make(sg_device *device, const uint32_t *chunks, size_t count, unsigned *share, uint64_t *secret);
/* Hold a share; its chunks, ascending, are malloc'd. -ENOENT: no such share, or none any more. `secret` NULL:
 * whichever it is (the caller has a descriptor of it, which keeps it as it is). */
int sg_share_join(sg_device *device, unsigned share, const uint64_t *secret, uint32_t **chunks, size_t *count);
/* Hold it no more. The last to leave gives its chunks back. Waits for nobody. */
void sg_share_leave(sg_device *device, unsigned share);
/* A descriptor that holds the share by itself, wherever it is sent. */
int sg_share_descriptor(sg_device *device, unsigned share);
/* Which share of this device a descriptor is of; -ENOENT none. */
int sg_share_of_descriptor(sg_device *device, int descriptor);
/* A descriptor that says the number of a pool, and holds nothing. */
int sg_pool_descriptor(sg_device *device, uint32_t number);
int sg_pool_of_descriptor(sg_device *device, int descriptor, uint32_t *number);

/* Bytes that contexts and allocations may use at all, and what all living processes hold of them. */
uint64_t sg_capacity_bytes(const sg_facts *facts);
uint64_t sg_used_bytes(sg_device *device);

/* ---- turns and time (turns.c) ---- */

uint64_t sg_monotonic_ns(void); /* CLOCK_MONOTONIC: one clock for all processes of the machine */

/* Kernels of one device run one after another, and those of different processes in slices. Who holds the
 * device and does not move is passed by: see turns.h. In scaled and virtual mode the model does all this,
 * and these only count. */
int sg_turn_begin(sg_device *device);
void sg_turn_end(sg_device *device, uint64_t instructions);
/* Between the two. Has the turn to end now, because the slice is used up and somebody waits, or was it taken
 * away? From any thread; cheap where nobody waits. */
bool sg_turn_due(sg_device *device);
/* Lets the others go first, and returns when it is our turn again. Nothing of the kernel may run meanwhile. */
void sg_turn_give_way(sg_device *device);
/* How long the kernel had the device so far: not what it waited. From any thread. */
uint64_t sg_turn_held_ns(sg_device *device);
/* This process leaves the device. */
void sg_turn_leave(sg_device *device);

/* The past in whole tenths of a second, oldest first, as thousandths of each that the device was busy.
 * Returns how many there are, at most SG_SAMPLES. */
#define SG_SAMPLES 14
typedef struct {
    uint64_t end_ns; /* of the tenth, on the monotonic clock */
    unsigned busy_permille;
} sg_sample;
int sg_recent_samples(sg_device *device, sg_sample samples[SG_SAMPLES]);

uint64_t sg_busy_ns(sg_device *device); /* of all processes since the device was made */
unsigned sg_recent_permille(sg_device *device);

/* ---- what went wrong (incidents.c) ---- */

#define SG_INCIDENTS 64 /* kept of each device, the last ones */
typedef enum {
    SG_INCIDENT_XID = 1,        /* value: its number */
    SG_INCIDENT_CORRECTED = 2,  /* value: how many errors of memory */
    SG_INCIDENT_UNCORRECTED = 3 /* the same */
} sg_incident_kind;
typedef struct {
    sg_incident_kind kind;
    uint64_t value;
} sg_incident;

/* For who listens to NVML's events, and for its counters of memory errors. */
void sg_incident_report(sg_device *device, sg_incident_kind kind, uint64_t value);
/* Incidents are numbered from 1; the number of the newest, 0 where nothing ever happened. */
uint64_t sg_incident_newest(sg_device *device);
/* False: no longer there, not yet there, or its writer was killed. */
bool sg_incident_read(sg_device *device, uint64_t number, sg_incident *incident);
uint64_t sg_memory_errors(sg_device *device, bool uncorrected);

/* ---- the log ---- */

/* Append "KIND NAME" to the device's log, unless the line is there already. */
void sg_log_once(const sg_device *device, const char *kind, const char *name);
/* Append "KIND TIME TEXT", each time, as long as the log is not full. */
void sg_log_event(const sg_device *device, const char *kind, const char *text);

#endif
