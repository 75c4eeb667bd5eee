/* Modules and libraries: their code and static data take memory that the driver tells nobody (overhead.h). */
#include "account.h"
#include "context_memory.h"
#include "governor.h"
#include "overhead.h"
#include "surface.h"

typedef CUresult unload(void *);

/* False: it does not fit the share. */
static bool charge(void *handle, const struct overhead *before)
{
    struct entry entry = {.kind = KIND_MODULE, .key = (uint64_t)handle, .owner = before->context,
                          .device = (uint8_t)before->device, .bytes = overhead_end(before), .references = 1};
    if (entry.bytes == 0)
        return true;
    if (!book_has_room() || account_charge(entry.device, entry.bytes) != CUDA_SUCCESS)
        return false;
    book_lock();
    book_put(&entry);
    book_unlock();
    return true;
}

#define LOAD(name, real_unload, parameters, arguments)                                             \
    EXPORTED CUresult name parameters                                                              \
    {                                                                                              \
        struct overhead before;                                                                    \
        void *got = NULL, **place = out != NULL ? &got : NULL;                                     \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        overhead_begin(&before);                                                                   \
        CUresult result = REAL(name, CUresult(*) parameters) arguments;                            \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        if (!charge(got, &before)) {                                                               \
            REAL(real_unload, unload *)(got);                                                      \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        }                                                                                          \
        if (out != NULL)                                                                           \
            *out = got;                                                                            \
        return result;                                                                             \
    }

LOAD(cuModuleLoad, cuModuleUnload, (void **out, const char *file), (place, file))
LOAD(cuModuleLoadData, cuModuleUnload, (void **out, const void *image), (place, image))
LOAD(cuModuleLoadDataEx, cuModuleUnload,
     (void **out, const void *image, unsigned count, void *options, void **values),
     (place, image, count, options, values))
LOAD(cuModuleLoadFatBinary, cuModuleUnload, (void **out, const void *image), (place, image))
LOAD(cuLibraryLoadData, cuLibraryUnload,
     (void **out, const void *code, void *jit, void **jit_values, unsigned jit_count, void *options, void **values,
      unsigned count),
     (place, code, jit, jit_values, jit_count, options, values, count))
LOAD(cuLibraryLoadFromFile, cuLibraryUnload,
     (void **out, const char *file, void *jit, void **jit_values, unsigned jit_count, void *options, void **values,
      unsigned count),
     (place, file, jit, jit_values, jit_count, options, values, count))

#define UNLOAD(name)                                                                               \
    EXPORTED CUresult name(void *handle)                                                           \
    {                                                                                              \
        struct entry entry;                                                                        \
        struct overhead before;                                                                    \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        overhead_begin(&before);                                                                   \
        bool known = account_take(KIND_MODULE, (uint64_t)handle, &entry);                          \
        CUresult result = account_gave(known, &entry, REAL(name, unload *)(handle));               \
        if (result == CUDA_SUCCESS)                                                                \
            context_memory_unloaded(&before);                                                      \
        return result;                                                                             \
    }

UNLOAD(cuModuleUnload)
UNLOAD(cuLibraryUnload)
