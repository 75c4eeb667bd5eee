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

/* Thirteen digits, as on a card; drawn from the UUID, so that they stay with the device. */
static void write_serial(const sg_facts *facts, char serial[16]) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | facts->uuid_bytes[i];
    snprintf(serial, 16, "%013llu", (unsigned long long)(number % 10000000000000u));
}

static bool has_serial(const sg_facts *facts, const void *wanted) {
    char serial[16];
    write_serial(facts, serial);
    return strcmp(serial, wanted) == 0;
}

static bool has_uuid_bytes(const sg_facts *facts, const void *wanted) {
    return memcmp(facts->uuid_bytes, wanted, sizeof facts->uuid_bytes) == 0;
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

SG_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_v1_t *uuid, nvmlDevice_t *handle) {
    enum { TEXT = 1, BYTES = 2 };
    char text[sizeof uuid->value.str + 1] = "";
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (uuid == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != NVML_STRUCT_VERSION(nvmlUUID_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == BYTES)
        return find(has_uuid_bytes, uuid->value.bytes, handle);
    memcpy(text, uuid->value.str, sizeof uuid->value.str); /* may fill it without an end */
    return uuid->type == TEXT ? find(has_uuid, text, handle) : NVML_ERROR_INVALID_ARGUMENT;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *handle) {
    return find(has_serial, serial, handle);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t handle, char *serial, unsigned length) {
    char text[16];
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    write_serial(&device->facts, text);
    return sg_copy_text(text, serial, length);
}

/* One board a device, told apart by where it sits. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t handle, unsigned *id) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, id, &device);
    if (result == NVML_SUCCESS)
        *id = device->facts.pci_domain << 16 | device->facts.pci_bus << 8 | device->facts.pci_device;
    return result;
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
    pci->pciDeviceId = (unsigned)facts->pci_device_id;
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
    pci->pciDeviceId = full.pciDeviceId;
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
                                 .pciDeviceId = full.pciDeviceId,
                                 .baseClass = 3,  /* display */
                                 .subClass = 2};  /* 3D controller */
    memcpy(pci->busId, full.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}
