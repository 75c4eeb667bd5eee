/* The link to the host, as far as the profile's card has one. Nothing here counts what crosses it: there is
 * no link. Throughput, replays and errors of it are therefore not supported. */
#include "nvml.h"

static nvmlReturn_t link_of(nvmlDevice_t handle, const void *answer, sg_device **device) {
    nvmlReturn_t result = sg_session_ask(handle, answer, device);
    if (result == NVML_SUCCESS && ((*device)->facts.pcie_generation == 0 || (*device)->facts.pcie_width == 0))
        result = NVML_ERROR_NOT_SUPPORTED;
    return result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t handle, unsigned *generation) {
    sg_device *device;
    nvmlReturn_t result = link_of(handle, generation, &device);
    if (result == NVML_SUCCESS)
        *generation = (unsigned)device->facts.pcie_generation;
    return result;
}
SG_ALIAS(nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetMaxPcieLinkGeneration);
SG_ALIAS(nvmlDeviceGetGpuMaxPcieLinkGeneration, nvmlDeviceGetMaxPcieLinkGeneration);
/* NVML_PCIE_LINK_MAX_SPEED_*: one number a generation, as above. */
SG_ALIAS(nvmlDeviceGetPcieLinkMaxSpeed, nvmlDeviceGetMaxPcieLinkGeneration);

SG_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t handle, unsigned *lanes) {
    sg_device *device;
    nvmlReturn_t result = link_of(handle, lanes, &device);
    if (result == NVML_SUCCESS)
        *lanes = (unsigned)device->facts.pcie_width;
    return result;
}
SG_ALIAS(nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetMaxPcieLinkWidth);

/* Mega-transfers a second on each lane: 2,500 and 5,000, then 8,000 and doubled with each generation. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t handle, unsigned *megatransfers) {
    sg_device *device;
    nvmlReturn_t result = link_of(handle, megatransfers, &device);
    if (result != NVML_SUCCESS)
        return result;
    unsigned generation = (unsigned)device->facts.pcie_generation;
    if (generation > 8)
        return NVML_ERROR_NOT_SUPPORTED;
    *megatransfers = generation <= 2 ? 2500 * generation : 8000u << (generation - 3);
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t handle, unsigned *type) {
    sg_device *device;
    nvmlReturn_t result = link_of(handle, type, &device);
    if (result == NVML_SUCCESS)
        *type = 2; /* PCI express */
    return result;
}
