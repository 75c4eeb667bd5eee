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

/* The version of the driver API that both libraries say they have: the newest of native/cuda/cuda.tsv.
 * An older one would make NVRTC and nvJitLink of a newer toolkit warn that their code may not load. */
#define SG_CUDA_VERSION 13050

#define SG_CHUNK_SHIFT 21
#define SG_CHUNK_BYTES ((uint64_t)1 << SG_CHUNK_SHIFT)
#define SG_MAXIMUM_DEVICES 64
#define SG_MAXIMUM_PROCESSES 256
#define SG_NO_SLOT (-1)

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
    int power_limit_mw;
} sg_facts;

typedef struct sg_state sg_state;

/* One device, opened by this process. */
typedef struct {
    sg_facts facts;
    char folder[4096];
    int state_file; /* -1 until sg_state_open */
    int arena_file;
    sg_state *state;
    size_t state_bytes;
    uint32_t chunk_count; /* from the facts: the number in the shared file is not to be trusted */
    int slot; /* ours, or SG_NO_SLOT */
    pthread_mutex_t turn; /* the threads of this process, one after another */
} sg_device;

/* ---- facts (facts.c, inventory.c) ---- */

/* Parse the text of a `device` file. -EINVAL where a key that everything needs is missing or wrong. */
int sg_facts_parse(const char *text, size_t length, sg_facts *facts);

/* The folder in which this library finds its devices; `anchor` is any address inside the library.
 * -ENOENT where there is none. */
int sg_inventory_folder(const void *anchor, char *folder, size_t size);

/* Read the devices under `folder`, ordered by PCI bus id. A folder that cannot be read as a device
 * is passed over: a device being created by another process has no `device` file yet.
 * Returns how many there are. */
int sg_inventory_read(const char *folder, sg_device *devices, int capacity);

/* ---- shared state (state.c, chunks.c, processes.c) ---- */

/* Map the shared state, laying it out if we are the first. Idempotent. */
int sg_state_open(sg_device *device);
void sg_state_close(sg_device *device);

/* Take a process slot: from here on we are a process of the device. */
int sg_process_enter(sg_device *device);
void sg_process_leave(sg_device *device);
/* In a forked child: drop what was inherited without letting go of what the parent holds. */
void sg_device_forget(sg_device *device);

typedef struct {
    int slot;
    int32_t pid; /* in the caller's pid namespace; 0 where the caller cannot see it */
    uint64_t used_bytes;
    uint64_t busy_ns;      /* since the process entered */
    uint64_t launches;
    uint64_t instructions;
    unsigned recent_permille; /* of the last second */
    char name[64];
} sg_process;

/* The living processes, after giving back what dead ones held. Returns how many. */
int sg_processes(sg_device *device, sg_process *processes, int capacity);
void sg_read_process_name(int32_t pid, char *name, size_t size);

/* Take `count` chunks for our process, ascending in `chunks`. -ENOMEM where there are not as many. */
int sg_chunks_take(sg_device *device, uint32_t *chunks, size_t count);
/* Give chunks back: their content is gone and the disk has the space again. */
void sg_chunks_give(sg_device *device, const uint32_t *chunks, size_t count);
/* Make sure that a chunk has blocks on disk, so that a store to it cannot raise SIGBUS. -ENOMEM on a
 * full disk. */
int sg_chunk_commit(sg_device *device, uint32_t chunk);

/* Bytes that contexts and allocations may use at all, and what all living processes hold of them. */
uint64_t sg_capacity_bytes(const sg_facts *facts);
uint64_t sg_used_bytes(sg_device *device);

/* ---- turns and time (turns.c) ---- */

uint64_t sg_monotonic_ns(void); /* CLOCK_MONOTONIC: one clock for all processes of the machine */

/* Kernels of one device run one after another, whichever process they are of. */
int sg_turn_begin(sg_device *device);
void sg_turn_end(sg_device *device, uint64_t instructions);

uint64_t sg_busy_ns(sg_device *device); /* of all processes since the device was made */
unsigned sg_recent_permille(sg_device *device);

/* ---- the log ---- */

/* Append "KIND NAME" to the device's log, unless the line is there already. */
void sg_log_once(const sg_device *device, const char *kind, const char *name);

#endif
