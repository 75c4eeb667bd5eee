/* cuInit, and what every other call asks first. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "failing.h"
#include "ipc_events.h"

typedef enum { NOT_YET, READY, FORKED } phase;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic phase now = NOT_YET;
static sg_device *devices; /* all that there are */
static int device_count;
static sg_gpu *gpus;
static int gpu_count;

/* A context does not survive fork, as on a card: every call in the child says NOT_INITIALIZED. The
 * child lets go of the files so that it does not keep the parent's memory alive; the locks it may
 * have copied in any state are made new. */
static void after_fork_in_child(void) {
    if (atomic_load(&now) != READY)
        return;
    atomic_store(&now, FORKED);
    for (int i = 0; i < gpu_count; i++)
        sg_device_forget(gpus[i].device);
    pthread_mutex_init(&lock, NULL);
    sg_objects_forget();
    sg_memory_forget();
    sg_queues_forget();
    sg_interprocess_forget();
    sg_graph_memory_forget();
    sg_capture_forget();
}

static CUresult find_devices(void) {
    static char folder[4096]; /* under `lock`; too large for small thread stacks */
    int chosen[SG_MAXIMUM_DEVICES];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (devices == NULL && (devices = calloc(SG_MAXIMUM_DEVICES, sizeof *devices)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (sg_inventory_folder((const void *)&find_devices, folder, sizeof folder) != 0)
        return CUDA_ERROR_NO_DEVICE;
    int count = device_count = sg_inventory_read(folder, devices, SG_MAXIMUM_DEVICES);
    if (visible != NULL)
        count = sg_visible_select(visible, devices, device_count, chosen);
    if (count == 0)
        return CUDA_ERROR_NO_DEVICE;
    /* Who sets a limit wants it held: the default instead would be a surprise, and a program is told nowhere else. */
    if (!sg_budget_understood(&devices[visible != NULL ? chosen[0] : 0]))
        return CUDA_ERROR_INVALID_VALUE;
    if ((gpus = calloc((size_t)count, sizeof *gpus)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < count; i++) {
        gpus[i].device = &devices[visible != NULL ? chosen[i] : i];
        gpus[i].ordinal = i;
    }
    gpu_count = count;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuInit(unsigned flags) {
    CUresult result = CUDA_SUCCESS;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&now) == FORKED)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    if (atomic_load(&now) == NOT_YET) {
        result = find_devices();
        if (result == CUDA_SUCCESS && pthread_atfork(NULL, NULL, after_fork_in_child) != 0)
            result = CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS)
            atomic_store(&now, READY);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* What a program sees that looks names up before it calls cuInit: read once. */
static sg_device *inventory_before(int *count) {
    static char folder[4096]; /* under `lock`, as the next two */
    static sg_device *early;
    static int early_count;
    pthread_mutex_lock(&lock);
    if (early == NULL && (early = calloc(SG_MAXIMUM_DEVICES, sizeof *early)) != NULL &&
        sg_inventory_folder((const void *)&find_devices, folder, sizeof folder) == 0)
        early_count = sg_inventory_read(folder, early, SG_MAXIMUM_DEVICES);
    *count = early_count;
    pthread_mutex_unlock(&lock);
    return early;
}

sg_device *sg_inventory(int *count) {
    if (atomic_load_explicit(&now, memory_order_acquire) == NOT_YET)
        return inventory_before(count);
    *count = device_count;
    return devices;
}

SG_EXPORT CUresult cuDriverGetVersion(int *version) {
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sg_driver_cuda_version(false);
    return CUDA_SUCCESS;
}

CUresult sg_ready(void) {
    return atomic_load_explicit(&now, memory_order_acquire) == READY ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

int sg_gpu_count(void) {
    return gpu_count;
}

CUresult sg_gpu_get(CUdevice ordinal, sg_gpu **gpu) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (ordinal < 0 || ordinal >= gpu_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *gpu = &gpus[ordinal];
    return CUDA_SUCCESS;
}

void sg_log_unsupported(const char *kind, const char *name) {
    CUcontext context = sg_ready() == CUDA_SUCCESS ? sg_current_or_null() : NULL;
    int count;
    const sg_device *known = sg_inventory(&count);
    if (context != NULL)
        sg_log_once(context->gpu->device, kind, name);
    else if (count > 0)
        sg_log_once(gpu_count > 0 ? gpus[0].device : &known[0], kind, name);
}
