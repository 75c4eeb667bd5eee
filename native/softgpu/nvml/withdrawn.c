/* Functions that the NVML does not have which a device was told to have the driver of. See ../driver/withdrawn.c:
 * here there is no look-up but the loader's, and the answer is the one that NVML has for it. */
#include <stdatomic.h>

#include "late_symbol.h"
#include "nvml.h"

int sg_withdrawn(unsigned late) {
    sg_late_symbol *symbol = &sg_late_symbols[late];
    int branch = sg_session_branch();
    if (branch == 0 || symbol->version <= sg_cuda_version_of_branch(branch))
        return NVML_SUCCESS;
    if (!atomic_exchange(&symbol->named, true))
        sg_log_once((const sg_device *)sg_session_handle(0), "withdrawn", symbol->name);
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}
