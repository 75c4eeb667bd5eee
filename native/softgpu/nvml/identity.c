/* Which devices there are, and what each is. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nvml.h"

SG_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = (unsigned)sg_session_count();
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);

SG_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *handle) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (handle == NULL || index >= (unsigned)sg_session_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    *handle = sg_session_handle((int)index);
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);

typedef bool (*matcher)(const sg_facts *facts, const void *wanted);

static nvmlReturn_t find(matcher matches, const void *wanted, nvmlDevice_t *handle) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (wanted == NULL || handle == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < sg_session_count(); i++) {
        sg_device *device = (sg_device *)sg_session_handle(i);
        if (matches(&device->facts, wanted)) {
            *handle = sg_session_handle(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const sg_facts *facts, const void *wanted) {
    return strcasecmp(facts->uuid, wanted) == 0;
}

static bool has_pci_id(const sg_facts *facts, const void *wanted) {
    unsigned domain = 0, bus, device, function;
    if (sscanf(wanted, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) < 3)
        return false;
    return facts->pci_domain == domain && facts->pci_bus == bus && facts->pci_device == device;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle) {
    return find(has_uuid, uuid, handle);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *handle) {
    return find(has_pci_id, id, handle);
}
SG_ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2);

SG_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned length) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    return result == NVML_SUCCESS ? sg_copy_text(device->facts.name, name, length) : result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned length) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    return result == NVML_SUCCESS ? sg_copy_text(device->facts.uuid, uuid, length) : result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned *index) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (index == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = (unsigned)(device - (sg_device *)sg_session_handle(0));
    return NVML_SUCCESS;
}
/* There is no /dev/nvidiaN; the index is the only number there is. */
SG_ALIAS(nvmlDeviceGetMinorNumber, nvmlDeviceGetIndex);

SG_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    const sg_facts *facts = &device->facts;
    memset(pci, 0, sizeof *pci);
    pci->domain = facts->pci_domain;
    pci->bus = facts->pci_bus;
    pci->device = facts->pci_device;
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xFFFF, pci->bus & 0xFF,
             pci->device & 0xFF);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_v2_t *pci) {
    nvmlPciInfo_t full;
    nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(handle, &full);
    if (result != NVML_SUCCESS)
        return result;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(pci, 0, sizeof *pci);
    memcpy(pci->busId, full.busIdLegacy, sizeof pci->busId);
    pci->domain = full.domain;
    pci->bus = full.bus;
    pci->device = full.device;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2);

SG_EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_v1_t *pci) {
    nvmlPciInfo_t full;
    nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(handle, &full);
    if (result != NVML_SUCCESS)
        return result;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (pci->version != NVML_STRUCT_VERSION(nvmlPciInfoExt_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *pci = (nvmlPciInfoExt_v1_t){.version = pci->version,
                                 .domain = full.domain,
                                 .bus = full.bus,
                                 .device = full.device,
                                 .baseClass = 3,  /* display */
                                 .subClass = 2};  /* 3D controller */
    memcpy(pci->busId, full.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}
