/* A scripted driver for the governor's tests: four devices, memory that is only counted, failures
 * on demand. Its real use is kept in a file that all processes map (FAKE_STATE), so that a test can
 * see what was truly handed out, whatever the governor says.
 *
 * Built twice, as libcuda.so.1 and (FAKE_NVML) as libnvidia-ml.so.1. Every symbol of the table that
 * has no model here answers with a number of its own (fake_symbols.c), so that a test can tell which
 * function was reached.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define DEVICES 4
#define DEVICE_BYTES (64ull << 30)

static const char *const uuids[DEVICES] = {
    "GPU-00000000-0000-0000-0000-0000000000a0",
    "GPU-00000000-0000-0000-0000-0000000000b1",
    "GPU-00000000-0000-0000-0000-0000000000c2",
    "GPU-11111111-0000-0000-0000-0000000000d3",
};

struct state {
    _Atomic uint64_t used[DEVICES], peak[DEVICES];
};

static struct state *state(void)
{
    static _Atomic(struct state *) mapped;
    struct state *now = mapped;
    if (now == NULL) {
        const char *path = getenv("FAKE_STATE");
        int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
        now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, file >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, file, 0);
        if (file >= 0)
            close(file);
        mapped = now;
    }
    return now;
}

#ifdef FAKE_NVML

static int initialised;
PUBLIC int nvmlInit_v2(void) { initialised++; return 0; }
PUBLIC int nvmlInit(void) { return nvmlInit_v2(); }
PUBLIC int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
PUBLIC int nvmlShutdown(void) { return initialised > 0 ? initialised--, 0 : 1; }
PUBLIC const char *nvmlErrorString(int result) { return result == 0 ? "Success" : "fake error"; }
PUBLIC int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    const char *asked = getenv("FAKE_VERSION");
    return version == NULL ? 2 : (*version = asked ? atoi(asked) : 13050, 0);
}
PUBLIC int nvmlDeviceGetCount_v2(unsigned *count) { return !initialised ? 1 : count == NULL ? 2 : (*count = DEVICES, 0); }
PUBLIC int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }
static int number(const void *device) { return (int)(intptr_t)device - 1; }
PUBLIC int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    for (int at = 0; initialised && uuid != NULL && device != NULL && at < DEVICES; at++)
        if (strcmp(uuids[at], uuid) == 0)
            return *device = (void *)(intptr_t)(at + 1), 0;
    return !initialised ? 1 : uuid == NULL || device == NULL ? 2 : 6;
}
PUBLIC int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
    if (!initialised || id == NULL || device == NULL)
        return initialised ? 2 : 1;
    return *device = (void *)(intptr_t)(id[0] - '0' + 1), 0;
}
PUBLIC int nvmlDeviceGetIndex(void *device, unsigned *index)
{
    return device == NULL || index == NULL ? 2 : (*index = (unsigned)number(device), 0);
}
PUBLIC int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
    return device == NULL || uuid == NULL || length < 41 ? 2 : (strcpy(uuid, uuids[number(device)]), 0);
}
struct memory { unsigned long long total, free, used; };
PUBLIC int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    if (device == NULL || memory == NULL)
        return 2;
    uint64_t used = state()->used[number(device)];
    *memory = (struct memory){DEVICE_BYTES, DEVICE_BYTES - used, used};
    return 0;
}
struct memory2 { unsigned version; unsigned long long total, reserved, free, used; };
PUBLIC int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory2 *memory)
{
    if (device == NULL || memory == NULL || memory->version != (sizeof *memory | 2 << 24))
        return memory == NULL || device == NULL ? 2 : 25;
    uint64_t used = state()->used[number(device)];
    *memory = (struct memory2){memory->version, DEVICE_BYTES, 7, DEVICE_BYTES - used - 7, used};
    return 0;
}
#define LIST(name) PUBLIC int name(void *device, unsigned *count, void *infos) \
    { (void)infos; return device == NULL || count == NULL ? 2 : (*count = 77, 7); }
LIST(nvmlDeviceGetComputeRunningProcesses)
LIST(nvmlDeviceGetComputeRunningProcesses_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
struct listed { unsigned pid; unsigned long long used; unsigned instances[2]; };
/* What this driver calls us: FAKE_OUTER, as a driver that sees us from outside our pid namespace. */
static unsigned called(void)
{
    const char *outer = getenv("FAKE_OUTER");
    return outer != NULL ? (unsigned)atoi(outer) : (unsigned)getpid();
}
/* 77 processes, of which ours is one where FAKE_KNOWS says so. */
PUBLIC int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct listed *rows)
{
    unsigned room = device == NULL || count == NULL ? 0 : *count;
    if (device == NULL || count == NULL)
        return 2;
    *count = 77;
    if (room < 77)
        return 7;
    for (unsigned at = 0; at < 77; at++)
        rows[at] = (struct listed){.pid = at + 1};
    if (getenv("FAKE_KNOWS") != NULL)
        rows[5].pid = called();
    return 0;
}
struct rates { unsigned gpu, memory; };
PUBLIC int nvmlDeviceGetUtilizationRates(void *device, struct rates *rates)
{
    return device == NULL || rates == NULL ? 2 : (*rates = (struct rates){97, 88}, 0);
}
PUBLIC int nvmlDeviceGetEncoderUtilization(void *device, unsigned *percent, unsigned *period)
{
    return device == NULL || percent == NULL || period == NULL ? 2 : (*percent = 66, *period = 1000, 0);
}
PUBLIC int nvmlGpmQueryDeviceSupport(void *device, unsigned *support)
{
    return device == NULL || support == NULL ? 2 : (support[1] = 1, 0);
}
struct details { unsigned version, mode, count; void *processes; };
PUBLIC int nvmlDeviceGetRunningProcessDetailList(void *device, struct details *details)
{
    if (device == NULL || details == NULL)
        return 2;
    return details->mode > 3 ? 2 : (details->count = 77, 7);
}
struct use { unsigned long long time; unsigned pid, sm, memory, encoder, decoder, jpeg, optical_flow; };
struct uses { unsigned version, count; unsigned long long since; struct use *processes; };
PUBLIC int nvmlDeviceGetProcessesUtilizationInfo(void *device, struct uses *uses)
{
    unsigned room = device == NULL || uses == NULL ? 0 : uses->count;
    if (device == NULL || uses == NULL)
        return 2;
    uses->count = 2;
    if (room < 2)
        return 7;
    uses->processes[0] = (struct use){.pid = 1, .sm = 10};
    uses->processes[1] = (struct use){.pid = called(), .sm = 20};
    return 0;
}
struct sample { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; };
PUBLIC int nvmlDeviceGetProcessUtilization(void *device, struct sample *samples, unsigned *count, unsigned long long since)
{
    (void)since;
    if (device == NULL || count == NULL)
        return 2;
    if (samples != NULL) {
        samples[0] = (struct sample){.pid = 1, .sm = 10, .encoder = 50};
        samples[1] = (struct sample){.pid = called(), .sm = 20, .memory = 60, .encoder = 7};
    }
    *count = 2;
    return 0;
}

#else

enum { OK, INVALID = 1, OOM = 2, NOT_INITIALISED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, NO_CONTEXT = 201, FAILED = 999 };
typedef unsigned long long ptr;

struct context { int device; int primary; size_t heap, stack, fifo; };
struct thing { ptr key; uint64_t bytes; int device; struct context *context; void *pool; int references; struct thing *next; };
struct pool { int device; uint64_t live, reserved, threshold; int explicit_; };

static int visible[DEVICES], visible_count, initialised;
static struct context primaries[DEVICES];
static int retained[DEVICES];
static struct pool pools[DEVICES];
static struct pool *current_pools[DEVICES];
static __thread struct context *stack_of[8];
static __thread int depth;
static struct thing *things;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static _Atomic ptr next_address = 0x7f0000000000ull;
static _Atomic int calls;
static int capturing;

static void lock(void) { while (atomic_flag_test_and_set(&busy)) usleep(0); }
static void unlock(void) { atomic_flag_clear(&busy); }

/* The n-th call that would hand something out fails (FAKE_FAIL_AT). */
static bool fails(void)
{
    const char *at = getenv("FAKE_FAIL_AT");
    return at != NULL && ++calls == atoi(at);
}

static bool take(int device, uint64_t bytes)
{
    uint64_t now = atomic_fetch_add(&state()->used[device], bytes) + bytes;
    if (now > DEVICE_BYTES) {
        atomic_fetch_sub(&state()->used[device], bytes);
        return false;
    }
    uint64_t peak = state()->peak[device];
    while (peak < now && !atomic_compare_exchange_weak(&state()->peak[device], &peak, now))
        ;
    return true;
}
static void give(int device, uint64_t bytes) { atomic_fetch_sub(&state()->used[device], bytes); }

static struct context *current(void) { return depth > 0 ? stack_of[depth - 1] : NULL; }

static ptr keep(ptr key, uint64_t bytes, int device, struct context *context, void *pool)
{
    struct thing *thing = malloc(sizeof *thing);
    if (key == 0)
        key = atomic_fetch_add(&next_address, (bytes + 0x1ff) & ~0x1ffull);
    lock();
    *thing = (struct thing){key, bytes, device, context, pool, 1, things};
    things = thing;
    unlock();
    return key;
}
static struct thing *drop(ptr key)
{
    lock();
    struct thing **at = &things, *found;
    while (*at != NULL && (*at)->key != key)
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    unlock();
    return found;
}
static struct thing *find(ptr key)
{
    struct thing *found;
    lock();
    for (found = things; found != NULL && found->key != key; found = found->next)
        ;
    unlock();
    return found;
}

PUBLIC int cuInit(unsigned flags)
{
    (void)flags;
    if (getenv("FAKE_ENVIRON") != NULL) { /* what the driver was shown, for a test to read */
        const char *seen = getenv("CUDA_VISIBLE_DEVICES");
        int file = open(getenv("FAKE_ENVIRON"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (write(file, seen ? seen : "(unset)", strlen(seen ? seen : "(unset)")) < 0)
            return FAILED;
        close(file);
    }
    if (fails())
        return FAILED;
    if (initialised)
        return visible_count > 0 ? OK : NO_DEVICE;
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    if (getenv("FAKE_IGNORES_ENVIRONMENT") != NULL)
        list = NULL;
    initialised = 1;
    for (int at = 0; list == NULL && at < DEVICES; at++)
        visible[visible_count++] = at;
    for (; list != NULL && *list != '\0'; list += strcspn(list, ","), list += *list == ',')
        for (int at = 0; at < DEVICES; at++)
            if (strncmp(list, uuids[at], strlen(uuids[at])) == 0)
                visible[visible_count++] = at;
    return visible_count > 0 ? OK : NO_DEVICE;
}
static int real_device(int device) { return initialised && device >= 0 && device < visible_count ? visible[device] : -1; }
PUBLIC int cuDriverGetVersion(int *version)
{
    const char *asked = getenv("FAKE_VERSION");
    return version == NULL ? INVALID : (*version = asked ? atoi(asked) : 13050, OK);
}
PUBLIC int cuDeviceGetCount(int *count) { return !initialised ? NOT_INITIALISED : count == NULL ? INVALID : (*count = visible_count, OK); }
PUBLIC int cuDeviceGet(int *device, int ordinal)
{
    return device == NULL ? INVALID : real_device(ordinal) < 0 ? INVALID_DEVICE : (*device = ordinal, OK);
}
PUBLIC int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    const char *text = uuid != NULL && real_device(device) >= 0 ? uuids[real_device(device)] + 4 : NULL;
    for (int byte = 0; text != NULL && byte < 16; text += *text == '-') {
        char digits[3] = {text[0], text[1], 0};
        uuid[byte++] = (unsigned char)strtoul(digits, NULL, 16);
        text += 2;
    }
    return text == NULL ? INVALID : OK;
}
PUBLIC int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    return bytes == NULL ? INVALID : real_device(device) < 0 ? INVALID_DEVICE : (*bytes = DEVICE_BYTES, OK);
}
PUBLIC int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    return value == NULL ? INVALID : (*value = attribute == 16 ? 10 : attribute == 39 ? 1000 : 1, OK);
}
PUBLIC int cuGetErrorString(int error, const char **text) { return text == NULL ? INVALID : (*text = error == OOM ? "out of memory" : "fake error", OK); }
PUBLIC int cuGetErrorName(int error, const char **text) { return text == NULL ? INVALID : (*text = error == OOM ? "CUDA_ERROR_OUT_OF_MEMORY" : "FAKE", OK); }

/* ---- contexts ---- */
static void free_of(struct context *context)
{
    for (;;) {
        ptr key = 0;
        lock();
        for (struct thing *at = things; at != NULL && key == 0; at = at->next)
            if (at->context == context && at->pool == NULL)
                key = at->key;
        unlock();
        struct thing *thing = key != 0 ? drop(key) : NULL;
        if (thing == NULL)
            return;
        give(thing->device, thing->bytes);
        free(thing);
    }
}
PUBLIC int cuCtxGetCurrent(void **context) { return !initialised ? NOT_INITIALISED : context == NULL ? INVALID : (*context = current(), OK); }
PUBLIC int cuCtxSetCurrent(void *context) { depth = context != NULL; stack_of[0] = context; return OK; }
PUBLIC int cuCtxPushCurrent_v2(void *context) { return context == NULL || depth == 8 ? INVALID : (stack_of[depth++] = context, OK); }
PUBLIC int cuCtxPopCurrent_v2(void **context) { if (context) *context = current(); return depth > 0 ? depth--, OK : NO_CONTEXT; }
PUBLIC int cuCtxGetDevice(int *device)
{
    struct context *now = current();
    for (int at = 0; now != NULL && device != NULL && at < visible_count; at++)
        if (visible[at] == now->device)
            return *device = at, OK;
    return device == NULL ? INVALID : NO_CONTEXT;
}
PUBLIC int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (context == NULL || real_device(device) < 0)
        return context == NULL ? INVALID : initialised ? INVALID_DEVICE : NOT_INITIALISED;
    if (fails())
        return FAILED;
    struct context *primary = &primaries[real_device(device)];
    primary->device = real_device(device);
    primary->primary = 1;
    primary->heap = 8 << 20;
    retained[primary->device]++;
    *context = primary;
    return OK;
}
PUBLIC int cuDevicePrimaryCtxRelease_v2(int device)
{
    int real = real_device(device);
    if (real < 0 || retained[real] == 0)
        return real < 0 ? INVALID_DEVICE : NO_CONTEXT;
    if (--retained[real] == 0)
        free_of(&primaries[real]);
    return OK;
}
PUBLIC int cuDevicePrimaryCtxReset_v2(int device)
{
    int real = real_device(device);
    if (real < 0)
        return INVALID_DEVICE;
    free_of(&primaries[real]);
    return OK;
}
PUBLIC int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    if (flags == NULL || active == NULL || real_device(device) < 0)
        return INVALID;
    *flags = 0;
    *active = retained[real_device(device)] > 0;
    return OK;
}
PUBLIC int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    (void)flags;
    if (context == NULL || real_device(device) < 0)
        return context == NULL ? INVALID : INVALID_DEVICE;
    if (fails())
        return FAILED;
    struct context *made = calloc(1, sizeof *made);
    made->device = real_device(device);
    made->heap = 8 << 20;
    *context = made;
    return cuCtxPushCurrent_v2(made);
}
PUBLIC int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device) { (void)parameters; return cuCtxCreate_v2(context, flags, device); }
PUBLIC int cuCtxDestroy_v2(void *context)
{
    if (context == NULL || ((struct context *)context)->primary)
        return INVALID;
    free_of(context);
    if (current() == context)
        depth--;
    return OK; /* kept: a late use of it must not crash the test */
}
PUBLIC int cuCtxGetLimit(size_t *value, int limit)
{
    struct context *now = current();
    if (value == NULL || now == NULL)
        return value == NULL ? INVALID : NO_CONTEXT;
    *value = limit == 0 ? now->stack : limit == 1 ? now->fifo : now->heap;
    return OK;
}
PUBLIC int cuCtxSetLimit(int limit, size_t value)
{
    struct context *now = current();
    if (now == NULL)
        return NO_CONTEXT;
    if (fails())
        return FAILED;
    *(limit == 0 ? &now->stack : limit == 1 ? &now->fifo : &now->heap) = value;
    return OK;
}

/* ---- memory ---- */
PUBLIC int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct context *now = current();
    if (now == NULL)
        return NO_CONTEXT;
    if (free_bytes != NULL)
        *free_bytes = DEVICE_BYTES - state()->used[now->device];
    if (total != NULL)
        *total = DEVICE_BYTES;
    return OK;
}
PUBLIC int cuMemAlloc_v2(ptr *out, size_t bytes)
{
    struct context *now = current();
    if (out == NULL || bytes == 0 || now == NULL)
        return now == NULL ? NO_CONTEXT : INVALID;
    if (fails())
        return FAILED;
    if (!take(now->device, bytes))
        return OOM;
    *out = keep(0, bytes, now->device, now, NULL);
    return OK;
}
PUBLIC int cuMemAlloc(unsigned *out, unsigned bytes)
{
    ptr wide = 0;
    int result = out == NULL ? INVALID : cuMemAlloc_v2(&wide, bytes);
    if (result == OK)
        *out = (unsigned)wide;
    return result;
}
PUBLIC int cuMemAllocManaged(ptr *out, size_t bytes, unsigned flags) { (void)flags; return cuMemAlloc_v2(out, bytes); }
PUBLIC int cuMemAllocPitch_v2(ptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    if (out == NULL || pitch == NULL)
        return INVALID;
    *pitch = (width + 511) & ~(size_t)511;
    return cuMemAlloc_v2(out, *pitch * height);
}
static int pool_free(struct thing *thing)
{
    struct pool *pool = thing->pool;
    pool->live -= thing->bytes;
    if (pool->reserved - pool->live > pool->threshold) {
        uint64_t less = pool->reserved - pool->live - pool->threshold;
        pool->reserved -= less;
        give(pool->device, less);
    }
    free(thing);
    return OK;
}
PUBLIC int cuMemFree_v2(ptr pointer)
{
    if (pointer == 0)
        return OK;
    struct thing *thing = drop(pointer);
    if (thing == NULL)
        return INVALID;
    if (thing->pool != NULL)
        return pool_free(thing);
    give(thing->device, thing->bytes);
    free(thing);
    return OK;
}
struct prop { int type, handle, location, id; };
PUBLIC int cuMemCreate(ptr *handle, size_t bytes, const struct prop *prop, unsigned long long flags)
{
    (void)flags;
    if (handle == NULL || prop == NULL || bytes == 0)
        return INVALID;
    if (fails())
        return FAILED;
    int device = prop->location == 1 ? real_device(prop->id) : -1;
    if (prop->location == 1 && (device < 0 || !take(device, bytes)))
        return device < 0 ? INVALID_DEVICE : OOM;
    *handle = keep(0, device < 0 ? 0 : bytes, device < 0 ? 0 : device, NULL, NULL);
    return OK;
}
static int unreference(ptr handle)
{
    struct thing *thing = find(handle);
    if (thing == NULL)
        return INVALID;
    if (--thing->references > 0)
        return OK;
    drop(handle);
    give(thing->device, thing->bytes);
    free(thing);
    return OK;
}
PUBLIC int cuMemRelease(ptr handle) { return unreference(handle); }
PUBLIC int cuMemMap(ptr address, size_t bytes, size_t offset, ptr handle, unsigned long long flags)
{
    (void)offset, (void)flags;
    struct thing *thing = find(handle);
    if (thing == NULL || address == 0)
        return INVALID;
    if (fails())
        return FAILED;
    thing->references++;
    struct thing *mapping = find(keep(address, bytes, 0, NULL, NULL));
    mapping->pool = (void *)(intptr_t)handle;
    return OK;
}
PUBLIC int cuMemUnmap(ptr address, size_t bytes)
{
    for (ptr at = address; at < address + bytes;) {
        struct thing *mapping = drop(at);
        if (mapping == NULL)
            return INVALID;
        at += mapping->bytes;
        unreference((ptr)(intptr_t)mapping->pool);
        free(mapping);
    }
    return OK;
}
PUBLIC int cuMemRetainAllocationHandle(ptr *handle, ptr address)
{
    struct thing *mapping = find(address);
    if (handle == NULL || mapping == NULL)
        return INVALID;
    *handle = (ptr)(intptr_t)mapping->pool;
    find(*handle)->references++;
    return OK;
}

/* ---- pools: grow in steps of 32 MiB, keep up to their threshold ---- */
PUBLIC int cuDeviceGetDefaultMemPool(void **pool, int device)
{
    if (pool == NULL || real_device(device) < 0)
        return INVALID;
    pools[real_device(device)].device = real_device(device);
    *pool = &pools[real_device(device)];
    return OK;
}
PUBLIC int cuDeviceGetMemPool(void **pool, int device)
{
    int result = cuDeviceGetDefaultMemPool(pool, device);
    if (result == OK && current_pools[real_device(device)] != NULL)
        *pool = current_pools[real_device(device)];
    return result;
}
PUBLIC int cuDeviceSetMemPool(int device, void *pool) { current_pools[real_device(device)] = pool; return OK; }
struct pool_prop { int type, handles, location, id; };
PUBLIC int cuMemPoolCreate(void **pool, const struct pool_prop *prop)
{
    if (pool == NULL || prop == NULL)
        return INVALID;
    struct pool *made = calloc(1, sizeof *made);
    made->device = real_device(prop->id);
    *pool = made;
    return OK;
}
PUBLIC int cuMemPoolTrimTo(struct pool *pool, size_t keep_bytes)
{
    if (pool == NULL)
        return INVALID;
    uint64_t floor = pool->live > keep_bytes ? pool->live : keep_bytes;
    if (pool->reserved > floor) {
        give(pool->device, pool->reserved - floor);
        pool->reserved = floor;
    }
    return OK;
}
PUBLIC int cuMemPoolDestroy(struct pool *pool) { if (pool == NULL) return INVALID; pool->threshold = 0; return cuMemPoolTrimTo(pool, 0); }
PUBLIC int cuMemPoolSetAttribute(struct pool *pool, int attribute, uint64_t *value) { if (pool == NULL || value == NULL) return INVALID; if (attribute == 4) pool->threshold = *value; return OK; }
PUBLIC int cuMemPoolGetAttribute(struct pool *pool, int attribute, uint64_t *value)
{
    if (pool == NULL || value == NULL)
        return INVALID;
    *value = attribute == 4 ? pool->threshold : attribute == 5 ? pool->reserved : pool->live;
    return OK;
}
PUBLIC int cuStreamIsCapturing(void *stream, int *status) { (void)stream; return status == NULL ? INVALID : (*status = capturing, OK); }
PUBLIC int cuStreamIsCapturing_ptsz(void *stream, int *status) { return cuStreamIsCapturing(stream, status); }
PUBLIC int cuStreamBeginCapture_v2(void *stream, int mode) { (void)stream, (void)mode; capturing = 1; return OK; }
PUBLIC int cuStreamEndCapture(void *stream, void **graph) { (void)stream, (void)graph; capturing = 0; return OK; }
PUBLIC int cuStreamGetCtx(void *stream, void **context) { (void)stream; return context == NULL ? INVALID : (*context = current(), OK); }
PUBLIC int cuMemAllocFromPoolAsync(ptr *out, size_t bytes, struct pool *pool, void *stream)
{
    (void)stream;
    if (out == NULL || bytes == 0 || pool == NULL)
        return INVALID;
    if (fails())
        return FAILED;
    uint64_t wanted = pool->live + bytes > pool->reserved ? pool->live + bytes - pool->reserved : 0;
    uint64_t step = 32ull << 20, grown = (wanted + step - 1) / step * step;
    if (grown > 0 && !take(pool->device, grown))
        return OOM;
    pool->reserved += grown;
    pool->live += bytes;
    *out = keep(0, bytes, pool->device, current(), pool);
    return OK;
}
PUBLIC int cuMemAllocFromPoolAsync_ptsz(ptr *out, size_t bytes, struct pool *pool, void *stream) { return cuMemAllocFromPoolAsync(out, bytes, pool, stream); }
PUBLIC int cuMemFreeAsync(ptr pointer, void *stream) { (void)stream; return cuMemFree_v2(pointer); }
PUBLIC int cuMemFreeAsync_ptsz(ptr pointer, void *stream) { (void)stream; return cuMemFree_v2(pointer); }

/* ---- arrays ---- */
struct array { size_t width, height, depth; int format; unsigned channels, flags; };
static int array_create(void **out, uint64_t bytes)
{
    struct context *now = current();
    if (out == NULL || now == NULL)
        return out == NULL ? INVALID : NO_CONTEXT;
    if (fails())
        return FAILED;
    if (!take(now->device, bytes))
        return OOM;
    *out = (void *)(intptr_t)keep(0, bytes, now->device, now, NULL);
    return OK;
}
static uint64_t texels(const struct array *a) { return a->width * (a->height ? a->height : 1) * (a->depth ? a->depth : 1); }
PUBLIC int cuArray3DCreate_v2(void **out, const struct array *a)
{
    if (a == NULL)
        return INVALID;
    return array_create(out, (a->flags & 0xc0) ? 0 : texels(a) * a->channels * (a->format == 0x20 ? 4 : 1));
}
PUBLIC int cuArrayCreate_v2(void **out, const struct array *a)
{
    if (a == NULL)
        return INVALID;
    struct { size_t width, height; int format; unsigned channels; } flat;
    memcpy(&flat, a, sizeof flat);
    struct array solid = {flat.width, flat.height, 0, flat.format, flat.channels, 0};
    return cuArray3DCreate_v2(out, &solid);
}
PUBLIC int cuArrayDestroy(void *array) { return cuMemFree_v2((ptr)(intptr_t)array); }

/* ---- look-up, by the table's own rule ---- */
static const struct { const char *name, *base; int version, per_thread; } table[] = {
#define none 0
#define ptsz 1
#define ptds 1
#define X(index, symbol, base, version, per_thread, class) {#symbol, #base, version, per_thread},
#include FAKE_SYMBOLS
#undef X
    {"cuOfTomorrow", "cuOfTomorrow", 13050, 0},
};
PUBLIC int cuOfTomorrow(void) { return 0; }
PUBLIC int cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *status)
{
    int driver = 0;
    const char *best = NULL;
    int best_version = 0, best_threaded = -1, any = 0;
    if (symbol == NULL || out == NULL)
        return INVALID;
    cuDriverGetVersion(&driver);
    if (version > driver)
        return INVALID;
    for (size_t at = 0; at < sizeof table / sizeof *table; at++) {
        if (strcmp(table[at].base, symbol) != 0)
            continue;
        any = 1;
        if (table[at].version > version || (table[at].per_thread && !(flags & 2)))
            continue;
        if (table[at].per_thread > best_threaded || (table[at].per_thread == best_threaded && table[at].version >= best_version)) {
            best = table[at].name;
            best_version = table[at].version;
            best_threaded = table[at].per_thread;
        }
    }
    static void *self;
    if (self == NULL) {
        Dl_info info;
        dladdr((void *)&capturing, &info);
        self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }
    *out = best != NULL ? dlsym(self, best) : NULL;
    if (status != NULL)
        *status = best != NULL ? 0 : any ? 2 : 1;
    return OK;
}
PUBLIC int cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags)
{
    int result = cuGetProcAddress_v2(symbol, out, version, flags, NULL);
    return result == OK && *out == NULL ? 500 : result;
}
#endif
