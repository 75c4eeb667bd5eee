/* What a program is told: the share as if it were the device. */
#include "account.h"
#include "cuda_devices.h"
#include "governor.h"
#include "ledger.h"
#include "pools.h"
#include "refusal.h"
#include "share.h"
#include "surface.h"
#include "window.h"

/* The newest CUDA version of the table: a program is never told of functions it could not get. */
enum { NEWEST = GOVERNOR_NEWEST_VERSION };

EXPORTED CUresult cuDriverGetVersion(int *version)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuDriverGetVersion, CUresult (*)(int *))(version);
    if (result == CUDA_SUCCESS && version != NULL && *version > NEWEST)
        *version = NEWEST;
    return result;
}

/* ---- memory ---- */

EXPORTED CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    size_t device_free = 0, device_total = 0;
    uint64_t context;
    unsigned device;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = account_place(&context, &device);
    if (result == CUDA_SUCCESS)
        result = REAL(cuMemGetInfo_v2, CUresult (*)(size_t *, size_t *))(&device_free, &device_total);
    if (result != CUDA_SUCCESS)
        return result;
    pools_settle();
    struct window seen = window_of(device, device_free, device_total);
    if (free_bytes != NULL)
        *free_bytes = seen.free;
    if (total_bytes != NULL)
        *total_bytes = seen.total;
    return result;
}

static unsigned in_32_bits(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (unsigned)value;
}

EXPORTED CUresult cuMemGetInfo(unsigned *free_bytes, unsigned *total_bytes)
{
    size_t wide_free, wide_total;
    CUresult result = cuMemGetInfo_v2(&wide_free, &wide_total);
    if (result == CUDA_SUCCESS && free_bytes != NULL)
        *free_bytes = in_32_bits(wide_free);
    if (result == CUDA_SUCCESS && total_bytes != NULL)
        *total_bytes = in_32_bits(wide_total);
    return result;
}

EXPORTED CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    size_t physical = 0;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuDeviceTotalMem_v2, CUresult (*)(size_t *, CUdevice))(bytes != NULL ? &physical : NULL, device);
    int index = devices_share_index(device);
    if (result != CUDA_SUCCESS || bytes == NULL)
        return result;
    if (index < 0)
        return CUDA_ERROR_SYSTEM_NOT_READY;
    *bytes = window_of((unsigned)index, physical, physical).total;
    return result;
}

EXPORTED CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
    size_t wide;
    CUresult result = cuDeviceTotalMem_v2(bytes != NULL ? &wide : NULL, device);
    if (result == CUDA_SUCCESS && bytes != NULL)
        *bytes = in_32_bits(wide);
    return result;
}

/* ---- words for errors ---- */

/* Asked when nothing else works, so this works without a share and without a driver. */
EXPORTED CUresult cuGetErrorString(CUresult error, const char **text)
{
    const char *sentence = refusal_sentence();
    if (error == CUDA_ERROR_SYSTEM_NOT_READY && sentence != NULL && text != NULL) {
        *text = sentence;
        return CUDA_SUCCESS;
    }
    if (governor_start())
        return REAL(cuGetErrorString, CUresult (*)(CUresult, const char **))(error, text);
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error == CUDA_SUCCESS ? "no error" : error == CUDA_ERROR_SYSTEM_NOT_READY ? refusal_sentence() : NULL;
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuGetErrorName(CUresult error, const char **text)
{
    if (governor_start())
        return REAL(cuGetErrorName, CUresult (*)(CUresult, const char **))(error, text);
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error == CUDA_SUCCESS                  ? "CUDA_SUCCESS"
            : error == CUDA_ERROR_SYSTEM_NOT_READY ? "CUDA_ERROR_SYSTEM_NOT_READY"
                                                   : NULL;
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
