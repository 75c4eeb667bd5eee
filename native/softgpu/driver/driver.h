/* What the files of this driver share. The order of locks: `objects` (handles.c), then the space of a
 * device (address_space.c), then device/'s own. None is held while a kernel runs or user code is
 * called. */
#ifndef SG_DRIVER_H
#define SG_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cuda_types.h"
#include "device.h"
#include "engine.h"

#define SG_EXPORT __attribute__((visibility("default")))
/* A second exported name of the same function. */
#define SG_ALIAS(name, target) extern __typeof__(target) name __attribute__((alias(SG_TEXT(target)), visibility("default")))
#define SG_TEXT(name) SG_TEXT_OF(name) /* by the name that a late function has in here */
#define SG_TEXT_OF(name) #name
/* The variants for programs built with a default stream for each thread are in per_thread.c. One that is
 * only a second name takes the legacy stream instead: it orders more than it must, never less. */
#define SG_PTSZ(target) SG_ALIAS(target##_ptsz, target)
#define SG_PTDS(target) SG_ALIAS(target##_ptds, target)

/* ---- devices ---- */

typedef struct sg_gpu {
    sg_device *device;
    CUdevice ordinal;
    CUcontext primary; /* made once, kept; `primary_count` says whether it is active */
    unsigned primary_count;
    unsigned primary_flags;
    unsigned users; /* contexts of this process, primary included, and memory made without one; the last to
                       go leaves the device */
    CUmemoryPool default_pool, current_pool;
} sg_gpu;

/* SUCCESS, NOT_INITIALIZED (before cuInit, or in a forked child) or what cuInit failed with. */
CUresult sg_ready(void);
int sg_gpu_count(void);
/* All devices of the machine, visible or not; also before cuInit. */
sg_device *sg_inventory(int *count);
CUresult sg_gpu_get(CUdevice ordinal, sg_gpu **gpu);
/* CUDA_VISIBLE_DEVICES: which of `count` devices, in which order. Returns how many. */
int sg_visible_select(const char *value, const sg_device *devices, int count, int *chosen);
/* Name what this driver does not do in the log of the current (else the first) device. */
void sg_log_unsupported(const char *kind, const char *name);

/* ---- live objects ---- */

typedef enum {
    SG_CONTEXT = 1,
    SG_MODULE,
    SG_FUNCTION,
    SG_LIBRARY,
    SG_KERNEL,
    SG_STREAM,
    SG_EVENT,
    SG_LINK,
    SG_GRAPH,
    SG_GRAPH_NODE,
    SG_GRAPH_EXEC,
    SG_USER_OBJECT,
    SG_POOL,
    SG_PHYSICAL,
    SG_ARRAY,
    SG_MIPMAP,
    SG_TEXTURE,
    SG_SURFACE
} sg_kind;

/* Each handle given out is in one table, so that a stale or invented handle is an error and not a
 * crash. */
bool sg_object_add(const void *object, sg_kind kind);
void sg_object_remove(const void *object);
bool sg_object_is(const void *object, sg_kind kind);
void sg_objects_forget(void);

/* ---- contexts ---- */

typedef struct sg_queue sg_queue; /* queues.h */

typedef struct {
    sg_queue *queue; /* NULL: passed already */
    uint64_t number;
} sg_fence;

enum { SG_PEERS = 64 };

/* own_memory.c. Part of context_bytes: */
enum { SG_CONTEXT_STACK_BYTES = 1024, SG_CONTEXT_PRINT_BYTES = 1 << 20 };
typedef struct {
    uint32_t *chunks;
    size_t count;
} sg_own_part;

struct CUctx_st {
    sg_gpu *gpu;
    unsigned flags;
    unsigned api_version;
    unsigned long long id;
    bool primary;
    _Atomic bool destroyed;
    _Atomic int sticky; /* CUresult of the fault that ended this context; it never gets better */
    size_t limits[SG_LIMITS];
    int cache_config;
    uint32_t *chunks; /* context_bytes */
    size_t chunk_count;
    struct {
        sg_own_part code, local, print;
        uint64_t code_bytes;
        _Atomic uint64_t local_each; /* bytes that each thread has */
    } own;
    struct CUmod_st *modules;
    struct CUstream_st *streams;
    struct sg_interprocess *interprocess; /* events, under the lock of ipc_events.c */
    sg_queue *queues; /* of its streams, under the lock of queues.c */
    _Atomic(sg_queue *) legacy;
    _Atomic bool closing; /* who waits for a value in memory waits no longer */
    struct sg_heap *heap; /* malloc in kernels; NULL until one asks */
    CUarray arrays; /* under the space's lock, as the next */
    CUmipmappedArray mipmaps;
    _Atomic(CUcontext) peers[SG_PEERS]; /* whose memory its kernels may reach as well */
    uint64_t failures_seen; /* the last event of its device that was before its time: failing.c */
    struct sg_moment *rest; /* when what streams left behind that are no more ends, in model time: timeline.c */
};

/* Be a process of the device until as many calls to leave. */
CUresult sg_gpu_enter(sg_gpu *gpu);
void sg_gpu_leave(sg_gpu *gpu);
CUresult sg_context_make(sg_gpu *gpu, unsigned flags, CUcontext *context);
/* Take what a context holds: memory, modules, streams. The struct stays (threads may still have it on
 * their stacks) and says `destroyed`. */
void sg_context_dismantle(CUcontext context);
/* Bring a dismantled context back: what the primary context does after a reset. */
CUresult sg_context_furnish(CUcontext context);
/* Device memory that the driver takes by itself: for the code of a module until it is gone; for local memory,
 * `each` bytes a thread; for a limit of the context. OUT_OF_MEMORY where there is not as much. */
CUresult sg_own_code(CUcontext context, const sg_module *code);
void sg_own_code_gone(CUcontext context, const sg_module *code);
CUresult sg_own_local(CUcontext context, uint64_t each);
CUresult sg_own_limit(CUcontext context, int limit, size_t value);
void sg_own_release(CUcontext context);
/* Of what device/ returns. A lock that somebody sits on is OPERATING_SYSTEM. */
CUresult sg_result_of_errno(int error);
/* The current context of this thread, alive and not poisoned. */
CUresult sg_current(CUcontext *context);
CUcontext sg_current_or_null(void);
CUresult sg_current_push(CUcontext context);
/* Take it off this thread's stack, where it is on top. */
void sg_current_drop(CUcontext context);
/* Alive, and perhaps poisoned: enough for a question that does not touch the device. */
CUresult sg_current_alive(CUcontext *context);
/* `given`, or the current one where it is NULL; alive, and perhaps poisoned. */
CUresult sg_context_or_current(CUcontext given, CUcontext *context);
void sg_context_poison(CUcontext context, CUresult error);

/* ---- memory ---- */

typedef enum {
    SG_MEMORY_DEVICE,
    SG_MEMORY_MANAGED,
    SG_MEMORY_HOST,
    SG_MEMORY_REGISTERED,
    SG_MEMORY_HEAP,    /* of malloc in kernels */
    SG_MEMORY_MAPPED,  /* by cuMemMap: of no context, each device reaches it as cuMemSetAccess said */
    SG_MEMORY_IMPORTED /* another process's, opened with a handle */
} sg_memory_kind;

typedef struct sg_span sg_span; /* chunks of the device, mapped in one piece */
typedef struct sg_view sg_view; /* chunks, and where they are mapped: memory.h */

typedef struct {
    uint64_t address;
    size_t size;
    unsigned char *host;
    sg_memory_kind kind;
    CUcontext context;  /* NULL for mapped memory */
    sg_gpu *gpu;        /* whose memory it is; of host memory, its context's */
    sg_view *view;      /* NULL for host memory */
    sg_span *span;      /* NULL for host and mapped memory */
    const void *within; /* mapped: neighbours in one reservation are one piece of memory */
    uint64_t readable, writable; /* mapped: a bit for each device */
    CUmemoryPool pool;
    unsigned flags;
    unsigned opened; /* imported: how often */
    unsigned long long id;
} sg_allocation;

CUresult sg_memory_allocate(CUcontext context, size_t size, sg_memory_kind kind, sg_allocation *made);
/* Host memory that the device may use at the same address. */
CUresult sg_memory_adopt(CUcontext context, void *host, size_t size, sg_memory_kind kind, unsigned flags);
/* What a program's call to free does: waits for its context, and says what ended that context. */
CUresult sg_memory_free(uint64_t address, unsigned kinds, sg_allocation *was);
/* Free the allocation that begins at `address`, if its kind is in `kinds` (bit 1 << kind). */
CUresult sg_memory_release(uint64_t address, unsigned kinds, sg_allocation *was);
void sg_memory_release_all(CUcontext context);
void sg_arrays_release_all(CUcontext context);
/* For the engine: what a handle of a texture or surface object stands for. */
bool sg_texture_for_kernel(void *context, uint64_t handle, bool surface, sg_texture *texture);
bool sg_memory_lookup(uint64_t address, sg_allocation *found);
/* For the engine: what a kernel of `context` may reach. */
void sg_memory_view(CUcontext context, sg_memory *view);
void sg_memory_tag(uint64_t address, CUmemoryPool pool);
void sg_memory_forget(void);
size_t sg_memory_pool_bytes(CUmemoryPool pool);

/* Resolve `size` bytes at a device address to host memory. `write`: back them first. Returns
 * INVALID_VALUE outside any allocation, OUT_OF_MEMORY on a full disk. */
CUresult sg_memory_access(CUcontext context, uint64_t address, size_t size, bool write, unsigned char **host);
/* The same question, with nothing backed. */
CUresult sg_memory_check(CUcontext context, uint64_t address, size_t size, bool write);
/* peers.c: may kernels of `context` reach memory of `other`? */
bool sg_peer_enabled(CUcontext context, CUcontext other);
/* The same device, or two that can be peers. */
bool sg_peers_possible(const sg_gpu *one, const sg_gpu *other);

/* ---- code ---- */

typedef struct {
    unsigned count;
    const int *options;
    void **values;
} sg_jit_options;

void sg_jit_log(const sg_jit_options *options, bool error, const char *text);
/* Find the PTX text in what a program hands over as an image. *text is malloc'd. `size` 0: the image
 * says itself how long it is. */
CUresult sg_image_ptx(const void *image, size_t size, char **text, size_t *length, char *log, size_t log_size);
/* device_heap.c: malloc and free of a context's kernels, as the engine calls them. */
uint64_t sg_heap_allocate(void *context, uint64_t bytes);
bool sg_heap_release(void *context, uint64_t address);
bool sg_heap_in_use(CUcontext context);
void sg_heap_close(CUcontext context);
/* device_runtime.c: whether this is NVIDIA's libcudadevrt.a, of which nothing is used. */
bool sg_is_device_runtime(const void *data, size_t size);
CUresult sg_file_read(const char *path, char **data, size_t *size);
CUresult sg_result_of(sg_status status);
const char *sg_error_name(CUresult error);
CUresult sg_code_parse(const char *text, size_t length, const sg_jit_options *options, sg_module **code);
/* Is the code's target one that this device has? */
CUresult sg_code_fits(const sg_module *code, const sg_gpu *gpu, const sg_jit_options *options);

struct CUfunc_st {
    CUmodule module;
    const sg_kernel *kernel;
    sg_kernel_info info;
    int maximum_dynamic_shared;
    int carveout;
    int cache_config;
    /* cuFuncSetBlockShape, cuParamSet*: how programs of CUDA 3 launch */
    unsigned block[3];
    unsigned shared_size;
    unsigned parameter_size;
    unsigned char *parameters;
};

struct CUmod_st {
    CUcontext context;
    sg_module *code;
    bool charged; /* the memory for its code is taken */
    struct CUfunc_st *functions;
    size_t function_count;
    uint64_t *variables; /* addresses, one a variable */
    CUlibrary library;
    CUmodule next;    /* in the context */
    CUmodule sibling; /* of the same library */
};

CUresult sg_module_load(CUcontext context, const char *text, size_t length, const sg_jit_options *options,
                        CUmodule *module);
/* Takes `code` unless it is the library's own. */
CUresult sg_module_of_code(CUcontext context, sg_module *code, CUlibrary library, CUmodule *module);
CUmodule sg_module_of_library(CUcontext context, CUlibrary library);
CUmodule sg_module_any_of_library(CUlibrary library);
void sg_module_unload(CUmodule module);
CUresult sg_module_function(CUmodule module, const char *name, CUfunction *function);
CUresult sg_module_variable_named(CUmodule module, const char *name, CUdeviceptr *address, size_t *bytes);

struct CUkern_st {
    CUlibrary library;
    const sg_kernel *kernel; /* of the library's own parse, for questions without a context */
    sg_kernel_info info;
    int maximum_dynamic_shared, carveout, cache_config;
};

struct CUlib_st {
    char *text;
    size_t length;
    sg_module *code;
    struct CUkern_st *kernels;
    size_t kernel_count;
    CUmodule borrower; /* the module that runs `code` itself */
    CUmodule modules;  /* all of this library, by `sibling` */
};

CUresult sg_library_module(CUlibrary library, CUcontext context, CUmodule *module);
CUresult sg_kernel_function(CUkernel kernel, CUcontext context, CUfunction *function);
/* A CUfunction, or a CUkernel cast to one, as launches and occupancy take it. */
CUresult sg_function_of(CUfunction given, CUfunction *function);

/* ---- streams and events ---- */

struct CUstream_st {
    CUcontext context;
    unsigned flags;
    int priority;
    unsigned long long id;
    CUlaunchAttributeValue attributes[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN + 1];
    sg_queue *queue;
    CUstream next; /* in the context */
};

struct CUevent_st {
    CUcontext context;
    unsigned flags;
    _Atomic unsigned references; /* the program's, and one each operation that waits to be performed */
    sg_fence fence;              /* of its latest record, under the lock of queues.c */
    struct sg_captured *captured; /* where a capture recorded it, under the lock of capture.c */
    _Atomic uint64_t at_ns;      /* of its latest record that is done, in real time; 0: none */
    struct sg_moment *moment;    /* the same in model time; also under that lock */
    struct sg_interprocess *interprocess; /* ipc_events.c; all but `context` and `flags` is unused then. NULL: of
                                             this process alone */
};

/* The context of a stream handle; NULL and the two special handles mean the current context. *stream
 * is NULL for a default stream. */
CUresult sg_stream_resolve(CUstream given, CUcontext *context, CUstream *stream);
/* The nearest priority that there is. */
int sg_stream_priority(int wanted);
/* The same, and its queue. */
CUresult sg_stream_queue(CUstream given, CUcontext *context, sg_queue **queue);
/* Wait until all that was submitted before to the context is done. */
void sg_context_drain(CUcontext context);
bool sg_in_host_function(void);
void sg_context_close_streams(CUcontext context);
/* Its events of several processes are of this one alone from now on. */
void sg_context_close_events(CUcontext context);

#endif
