#include "cuda_devices.h"

#include <stdatomic.h>

#include "aliquot_abi.h"
#include "governor.h"
#include "refusal.h"
#include "share.h"
#include "surface.h"

static struct {
    CUdevice device;
    int index;
} known[ALIQUOT_DEVICES_MAX];
static atomic_uint known_count;

static bool uuid_of(CUdevice device, unsigned char uuid[16])
{
    typedef CUresult get_uuid(void *, CUdevice);
    return REAL(cuDeviceGetUuid_v2, get_uuid *)(uuid, device) == CUDA_SUCCESS ||
           REAL(cuDeviceGetUuid, get_uuid *)(uuid, device) == CUDA_SUCCESS;
}

bool devices_learn(void)
{
    int count = 0;
    if (REAL(cuDeviceGetCount, CUresult (*)(int *))(&count) != CUDA_SUCCESS)
        return true; /* nothing shown, nothing wrong */
    for (int ordinal = 0; ordinal < count; ordinal++) {
        CUdevice device;
        unsigned char uuid[16];
        int index = -1;
        if (REAL(cuDeviceGet, CUresult (*)(CUdevice *, int))(&device, ordinal) == CUDA_SUCCESS && uuid_of(device, uuid))
            index = share_device_of_uuid_bytes(uuid);
        if (index < 0 || ordinal >= ALIQUOT_DEVICES_MAX) {
            refusal_set("Aliquot: the driver at ", share.driver_path,
                        " shows a device that is not in this share, so nothing may run; see `aliquot doctor`", NULL);
            governor_close();
            return false;
        }
        known[ordinal].device = device;
        known[ordinal].index = index;
    }
    atomic_store_explicit(&known_count, (unsigned)count, memory_order_release);
    return true;
}

int devices_share_index(CUdevice device)
{
    unsigned count = atomic_load_explicit(&known_count, memory_order_acquire);
    for (unsigned at = 0; at < count; at++)
        if (known[at].device == device)
            return known[at].index;
    return -1;
}

CUdevice devices_of_share(unsigned index)
{
    unsigned count = atomic_load_explicit(&known_count, memory_order_acquire);
    for (unsigned at = 0; at < count; at++)
        if (known[at].index == (int)index)
            return known[at].device;
    return -1;
}
