/* Physical memory and pools as file descriptors. Each descriptor that a process of the share gives out bears a name
 * (descriptors.h) by which the ledger tells whose memory it is; one without a name that this share knows is refused.
 * Descriptors keep memory by themselves: it stays charged while one is open, wherever it lies. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "account.h"
#include "descriptors.h"
#include "governor.h"
#include "ledger.h"
#include "sharing.h"
#include "surface.h"

enum { POSIX_DESCRIPTOR = 1 };

/* The descriptor that the driver gave for `thing`, named; closed where it cannot be. */
static CUresult give(enum kind kind, uint64_t thing, int got, int *out)
{
    uint64_t key = sharing_export(kind, thing, descriptors_new_key(), true);
    if (key == 0 || !descriptors_name(got, key)) {
        int saved = errno;
        close(got);
        errno = saved;
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *out = got;
    return CUDA_SUCCESS;
}

#define EXPORT(name, kind, type)                                                                   \
    EXPORTED CUresult name(void *out, type thing, int handle_type, unsigned long long flags)       \
    {                                                                                              \
        int got = -1;                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        if (handle_type != POSIX_DESCRIPTOR)                                                       \
            return CUDA_ERROR_NOT_SUPPORTED;                                                       \
        CUresult result = REAL(name, CUresult (*)(void *, type, int, unsigned long long))(         \
            out != NULL ? &got : NULL, thing, handle_type, flags);                                 \
        return result != CUDA_SUCCESS || out == NULL ? result : give(kind, (uint64_t)thing, got, out); \
    }

EXPORT(cuMemExportToShareableHandle, KIND_HANDLE, CUmemGenericAllocationHandle)
EXPORT(cuMemPoolExportToShareableHandle, KIND_POOL, CUmemoryPool)

/* The number in the ledger of what the descriptor holds, as one holder more. */
static CUresult take(void *os_handle, int handle_type, int *export)
{
    int descriptor = (int)(intptr_t)os_handle;
    if (handle_type != POSIX_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int saved = errno;
    bool is_open = fcntl(descriptor, F_GETFD) >= 0;
    errno = saved;
    if (!is_open)
        return CUDA_ERROR_INVALID_VALUE;
    *export = sharing_import(descriptors_key(descriptor));
    return *export < 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

EXPORTED CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle, int handle_type)
{
    typedef CUresult import(CUmemGenericAllocationHandle *, void *, int);
    CUmemGenericAllocationHandle got = 0;
    int export;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (!book_has_room())
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = take(os_handle, handle_type, &export);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemImportFromShareableHandle, import *)(out != NULL ? &got : NULL, os_handle, handle_type);
    if (result != CUDA_SUCCESS) {
        sharing_let_go((unsigned)export);
        return result;
    }
    struct entry entry = {.kind = KIND_HANDLE, .key = got, .references = 1, .export = (uint16_t)(export + 1), .imported = true};
    book_lock();
    struct entry *known = book_find(KIND_HANDLE, got);
    bool own = known != NULL && !known->imported; /* a driver may give the handle that the memory has here already */
    if (known != NULL)
        known->references++;
    else
        book_put(&entry);
    book_unlock();
    if (own)
        sharing_let_go((unsigned)export);
    if (out != NULL)
        *out = got;
    return result;
}

/* An imported pool holds nothing; the memory that is opened through it does, each by itself. */
EXPORTED CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *os_handle, int handle_type,
                                                     unsigned long long flags)
{
    typedef CUresult import(CUmemoryPool *, void *, int, unsigned long long);
    int export;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = take(os_handle, handle_type, &export);
    if (result != CUDA_SUCCESS)
        return result;
    sharing_let_go((unsigned)export);
    return REAL(cuMemPoolImportFromShareableHandle, import *)(out, os_handle, handle_type, flags);
}
