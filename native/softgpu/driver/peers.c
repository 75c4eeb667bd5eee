/* Peer access: kernels of one device in memory of another. All memory lies in one process here, so what
 * this keeps is the rule: nothing is reached that the program did not enable.
 * Which devices can be peers: device/facts.c. */
#include <string.h>

#include "driver.h"

enum { PERFORMANCE_RANK = 1, ACCESS_SUPPORTED, NATIVE_ATOMIC_SUPPORTED, ARRAY_ACCESS_SUPPORTED, PARTIAL_ATOMIC_SUPPORTED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* enabling and disabling */

static bool can_be_peers(const sg_gpu *one, const sg_gpu *other) {
    return one != other && sg_facts_can_be_peers(&one->device->facts, &other->device->facts);
}

bool sg_peers_possible(const sg_gpu *one, const sg_gpu *other) {
    return one == other || can_be_peers(one, other);
}

static CUresult two_devices(CUdevice device, CUdevice peer, const void *out, bool *can) {
    sg_gpu *one, *other;
    CUresult result = sg_gpu_get(device, &one);
    if (result == CUDA_SUCCESS)
        result = sg_gpu_get(peer, &other);
    if (result != CUDA_SUCCESS)
        return result;
    *can = can_be_peers(one, other);
    return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    bool possible;
    CUresult result = two_devices(device, peer, can, &possible);
    if (result == CUDA_SUCCESS)
        *can = possible;
    return result;
}

SG_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer) {
    bool possible;
    CUresult result = two_devices(device, peer, value, &possible);
    if (result != CUDA_SUCCESS)
        return result;
    if (attribute < PERFORMANCE_RANK || attribute > PARTIAL_ATOMIC_SUPPORTED || device == peer)
        return CUDA_ERROR_INVALID_VALUE;
    /* All pairs are as fast as each other: rank 0. Atomics are the host's, on whichever memory. */
    *value = possible && attribute != PERFORMANCE_RANK && attribute != PARTIAL_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

bool sg_peer_enabled(CUcontext context, CUcontext other) {
    if (other == NULL)
        return false;
    for (int i = 0; i < SG_PEERS; i++)
        if (atomic_load_explicit(&context->peers[i], memory_order_acquire) == other)
            return true;
    return false;
}

static CUresult enable(CUcontext context, CUcontext peer) {
    for (int i = 0; i < SG_PEERS; i++) {
        CUcontext known = atomic_load(&context->peers[i]);
        if (known != NULL && !atomic_load(&known->destroyed))
            continue;
        atomic_store(&context->peers[i], peer);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_TOO_MANY_PEERS;
}

SG_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    CUcontext context, other;
    CUresult result = sg_current(&context);
    if (result == CUDA_SUCCESS && peer == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS)
        result = sg_context_or_current(peer, &other);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!can_be_peers(context->gpu, other->gpu))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    result = sg_peer_enabled(context, other) ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : enable(context, other);
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(peer, SG_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SG_PEERS; i++)
        if (atomic_load(&context->peers[i]) == peer) {
            atomic_store(&context->peers[i], NULL);
            result = CUDA_SUCCESS;
        }
    pthread_mutex_unlock(&lock);
    return result;
}
