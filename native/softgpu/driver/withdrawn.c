/* Functions that the driver does not have which a device was told to be of.
 *
 * cuGetProcAddress does not find them (procaddress.c). A program that links to one, or has looked it up with dlsym,
 * calls it all the same: then it answers NOT_SUPPORTED, which is what callers of the driver expect where something
 * is missing, and names itself in the log, once.
 *
 * A library file for each branch, chosen by `aliquot softgpu env`, would make the loader miss the names too. It was
 * rejected: what a device is told holds for programs that run, in every shell and in containers, and a file holds
 * for programs that start with it. */
#include "failing.h"
#include "late_symbol.h"

int sg_withdrawn(unsigned late) {
    sg_late_symbol *symbol = &sg_late_symbols[late];
    if (symbol->version <= sg_driver_cuda_version(true))
        return CUDA_SUCCESS;
    if (!atomic_exchange(&symbol->named, true))
        sg_log_unsupported("withdrawn", symbol->name);
    return CUDA_ERROR_NOT_SUPPORTED;
}
