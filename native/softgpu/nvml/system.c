/* What NVML says about the system, and its error sentences. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nvml.h"

/* Shaped like a driver version, because programs split it at its points. 615 is the branch of CUDA 13.5;
 * a minor number of 0 was never released. */
enum { DRIVER_BRANCH = 615 };

static int branch(void) {
    int told = sg_session_branch();
    return told != 0 ? told : DRIVER_BRANCH;
}

static nvmlReturn_t version(bool of_nvml, char *text, unsigned length) {
    char value[32];
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    int is = branch();
    if (of_nvml)
        snprintf(value, sizeof value, "%d.%d.00.00", sg_cuda_version_of_branch(is) / 1000, is);
    else
        snprintf(value, sizeof value, "%d.00.00", is);
    return sg_copy_text(value, text, length);
}

SG_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned length) {
    return version(false, text, length);
}

SG_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, unsigned length) {
    return version(true, text, length);
}

/* Works without nvmlInit, as NVIDIA documents. */
SG_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *number) {
    if (number == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *number = sg_cuda_version_of_branch(branch());
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);

SG_EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t *info, unsigned length) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_STRUCT_VERSION(nvmlSystemDriverBranchInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    char name[16];
    snprintf(name, sizeof name, "r%d_00", branch());
    return sg_copy_text(name, info->branch, length < sizeof info->branch ? length : sizeof info->branch);
}

/* S-class units, host interface cards, devices kept from the driver: this machine has none. */
static nvmlReturn_t count_none(unsigned *count) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlUnitGetCount(unsigned *count) {
    return count_none(count);
}

SG_EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned *count) {
    return count_none(count);
}

SG_EXPORT nvmlReturn_t nvmlSystemGetHicVersion(unsigned *count, void *entries) {
    (void)entries;
    return count_none(count);
}

SG_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    char found[4096];
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (name == NULL || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    sg_read_process_name((int32_t)pid, found, sizeof found);
    if (found[0] == '\0')
        return NVML_ERROR_NOT_FOUND;
    snprintf(name, length, "%s", found);
    return NVML_SUCCESS;
}

typedef struct {
    int code;
    const char *sentence;
} error_entry;

static const error_entry errors[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "Driver/library version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {22, "The requested vgpu operation is not available on target device, because ECC is enabled"},
    {23, "Insufficient Resources"},
    {24, "Frequency Not Supported"},
    {25, "The provided version is invalid/unsupported"},
    {26, "The requested functionality has been deprecated"},
    {27, "The system is not ready for the request"},
    {28, "No GPUs were found"},
    {29, "Resource not in correct state to perform requested operation"},
    {30, "The requested reset type is not supported"},
};

SG_EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)result)
            return errors[i].sentence;
    return "Unknown Error";
}
