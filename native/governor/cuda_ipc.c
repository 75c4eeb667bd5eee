/* Memory of another process of the same share, by its 64-byte handle. Such a handle is the same for the same memory
 * and no other, so a hash of it finds, in the ledger, who pays (exports.h). Memory that nobody of this share
 * exported is refused: it would be nobody's charge here.
 *
 * A file descriptor of memory (cuMemExportToShareableHandle) says nothing of whose memory it is, and is refused. */
#include <string.h>

#include "account.h"
#include "governor.h"
#include "ledger.h"
#include "surface.h"

/* FNV-1a; never 0, which is a free place. */
static uint64_t key_of(const CUipcMemHandle *handle)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t at = 0; at < sizeof handle->reserved; at++)
        hash = (hash ^ (unsigned char)handle->reserved[at]) * 0x100000001b3u;
    return hash != 0 ? hash : 1;
}

/* ---- exporting ---- */

/* The book's entry of the allocation that `address` lies in. Under the book's lock. */
static struct entry *memory_at(CUdeviceptr address)
{
    struct entry *entry = book_find(KIND_MEMORY, address);
    return entry != NULL && entry->pool == 0 ? entry : NULL;
}

static CUdeviceptr base_of(CUdeviceptr address)
{
    CUdeviceptr base = address;
    size_t size;
    return REAL(cuMemGetAddressRange_v2, CUresult (*)(CUdeviceptr *, size_t *, CUdeviceptr))(&base, &size, address) ==
                   CUDA_SUCCESS
               ? base
               : address;
}

/* Where it cannot be written down, the handle is good for nothing in this share, and harmless. */
static void publish(uint64_t key, CUdeviceptr base)
{
    struct entry found = {0};
    book_lock();
    struct entry *entry = memory_at(base);
    if (entry != NULL)
        found = *entry;
    book_unlock();
    int export = entry != NULL ? ledger_export(key, found.device, found.bytes) : -1;
    if (export < 0)
        return;
    book_lock();
    entry = memory_at(base);
    bool still = entry != NULL && (entry->export == 0 || entry->export == export + 1);
    if (still)
        entry->export = (uint16_t)(export + 1);
    book_unlock();
    if (!still)
        ledger_withdraw((unsigned)export);
}

EXPORTED CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    CUipcMemHandle handle;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuIpcGetMemHandle, CUresult (*)(CUipcMemHandle *, CUdeviceptr))(out != NULL ? &handle : NULL, address);
    if (result != CUDA_SUCCESS || out == NULL)
        return result;
    publish(key_of(&handle), base_of(address));
    *out = handle;
    return result;
}

/* ---- importing ---- */

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

#define OPEN(name)                                                                                 \
    EXPORTED CUresult name(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)                \
    {                                                                                              \
        typedef CUresult open_handle(CUdeviceptr *, CUipcMemHandle, unsigned);                     \
        CUdeviceptr got = 0;                                                                       \
        uint64_t context;                                                                          \
        unsigned device;                                                                           \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        CUresult result = account_place(&context, &device);                                        \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        if (!book_has_room())                                                                      \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        int export = ledger_import(key_of(&handle));                                               \
        if (export < 0)                                                                            \
            return CUDA_ERROR_NOT_SUPPORTED;                                                       \
        result = REAL(name, open_handle *)(out != NULL ? &got : NULL, handle, flags);              \
        if (result != CUDA_SUCCESS) {                                                              \
            forget_failed(export);                                                                 \
            return result;                                                                         \
        }                                                                                          \
        remember(got, context, export);                                                            \
        if (out != NULL)                                                                           \
            *out = got;                                                                            \
        return result;                                                                             \
    }

/* A failed opening holds nothing; an earlier one of the same memory still does. */
static void forget_failed(int export)
{
    struct entry *entry;
    uint64_t at = 0;
    bool held = false;
    book_lock();
    while (!held && (entry = book_next(&at)) != NULL)
        held = entry->kind == KIND_IMPORT && entry->export == export + 1;
    book_unlock();
    if (!held)
        ledger_let_go((unsigned)export);
}

OPEN(cuIpcOpenMemHandle)
OPEN(cuIpcOpenMemHandle_v2)

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
