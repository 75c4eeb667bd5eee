/* Memory of another process of the same share, by its 64-byte handle. Such a handle is the same for the same memory
 * and no other, so a hash of it finds, in the ledger, who pays (exports.h). Memory that nobody of this share
 * exported is refused: it would be nobody's charge here. */
#include "account.h"
#include "governor.h"
#include "hash.h"
#include "sharing.h"
#include "surface.h"

static CUdeviceptr base_of(CUdeviceptr address)
{
    CUdeviceptr base = address;
    size_t size;
    return REAL(cuMemGetAddressRange_v2, CUresult (*)(CUdeviceptr *, size_t *, CUdeviceptr))(&base, &size, address) ==
                   CUDA_SUCCESS
               ? base
               : address;
}

EXPORTED CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    CUipcMemHandle handle;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuIpcGetMemHandle, CUresult (*)(CUipcMemHandle *, CUdeviceptr))(out != NULL ? &handle : NULL, address);
    if (result != CUDA_SUCCESS || out == NULL)
        return result;
    sharing_export(KIND_MEMORY, base_of(address), hash_of(&handle, sizeof handle), false);
    *out = handle;
    return result;
}

/* One pointer a memory, however often it is opened: each time is one close. */
static void remember(CUdeviceptr got, uint64_t context, int export)
{
    struct entry import = {.kind = KIND_IMPORT, .key = got, .owner = context, .references = 1,
                           .export = (uint16_t)(export + 1)};
    book_lock();
    struct entry *known = book_find(KIND_IMPORT, got);
    if (known != NULL)
        known->references++;
    else
        book_put(&import);
    book_unlock();
}

#define OPEN(name, key, parameters, arguments)                                                     \
    EXPORTED CUresult name parameters                                                              \
    {                                                                                              \
        CUdeviceptr got = 0, *place = out != NULL ? &got : NULL;                                   \
        uint64_t context;                                                                          \
        unsigned device;                                                                           \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        CUresult result = account_place(&context, &device);                                        \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        if (!book_has_room())                                                                      \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        int export = sharing_import(key);                                                          \
        if (export < 0)                                                                            \
            return CUDA_ERROR_NOT_SUPPORTED;                                                       \
        result = REAL(name, CUresult(*) parameters) arguments;                                     \
        if (result != CUDA_SUCCESS) {                                                              \
            sharing_let_go((unsigned)export);                                                      \
            return result;                                                                         \
        }                                                                                          \
        remember(got, context, export);                                                            \
        if (out != NULL)                                                                           \
            *out = got;                                                                            \
        return result;                                                                             \
    }

OPEN(cuIpcOpenMemHandle, hash_of(&handle, sizeof handle), (CUdeviceptr *out, CUipcMemHandle handle, unsigned flags),
     (place, handle, flags))
OPEN(cuIpcOpenMemHandle_v2, hash_of(&handle, sizeof handle),
     (CUdeviceptr *out, CUipcMemHandle handle, unsigned flags), (place, handle, flags))

EXPORTED CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct entry taken;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuIpcCloseMemHandle, CUresult (*)(CUdeviceptr))(address);
    if (result != CUDA_SUCCESS)
        return result;
    book_lock();
    struct entry *entry = book_find(KIND_IMPORT, address);
    bool last = entry != NULL && --entry->references == 0 && book_take(KIND_IMPORT, address, &taken);
    book_unlock();
    return account_gave(last, &taken, result);
}

/* ---- memory of a pool, whose 64 bytes of data are such a handle as well ---- */

EXPORTED CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
    CUmemPoolPtrExportData data;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuMemPoolExportPointer, CUresult (*)(CUmemPoolPtrExportData *, CUdeviceptr))(
        out != NULL ? &data : NULL, address);
    if (result != CUDA_SUCCESS || out == NULL)
        return result;
    sharing_export(KIND_MEMORY, base_of(address), hash_of(&data, sizeof data), false);
    *out = data;
    return result;
}

OPEN(cuMemPoolImportPointer, data != NULL ? hash_of(data, sizeof *data) : 0,
     (CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data), (place, pool, data))
