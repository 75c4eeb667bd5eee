/* How devices lie to each other and to the processors. Software GPUs of one PCI bus share its bridge, all of
 * them the host's; and the processor that runs them is the machine's own, so every CPU is near. */
#include <limits.h>
#include <sched.h>

#include "nvml.h"

enum { LEVEL_INTERNAL = 0, LEVEL_SINGLE = 10, LEVEL_HOSTBRIDGE = 30, LEVEL_SYSTEM = 50 };

static unsigned level_between(const sg_device *one, const sg_device *other) {
    if (one == other)
        return LEVEL_INTERNAL;
    bool same_bus = one->facts.pci_domain == other->facts.pci_domain && one->facts.pci_bus == other->facts.pci_bus;
    return same_bus ? LEVEL_SINGLE : LEVEL_HOSTBRIDGE;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first, nvmlDevice_t second, unsigned *level) {
    sg_device *one, *other;
    nvmlReturn_t result = sg_session_ask(first, level, &one);
    if (result == NVML_SUCCESS)
        result = sg_session_device(second, &other);
    if (result == NVML_SUCCESS)
        *level = level_between(one, other);
    return result;
}

/* NVML's way with arrays, except that there is no error where the room is too small: *count is what fits. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t handle, unsigned level, unsigned *count,
                                                        nvmlDevice_t *handles) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, count, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (level > LEVEL_SYSTEM || level % 10 != 0 || (*count > 0 && handles == NULL))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count, found = 0;
    for (int i = 0; i < sg_session_count(); i++) {
        nvmlDevice_t other = sg_session_handle(i);
        if (other == handle || level_between(device, (sg_device *)other) != level)
            continue;
        if (found < room)
            handles[found] = other;
        found++;
    }
    *count = room == 0 || found < room ? found : room;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned *count, nvmlDevice_t *handles) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL || (*count > 0 && handles == NULL) || cpu >= CPU_SETSIZE)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count, all = (unsigned)sg_session_count();
    for (unsigned i = 0; i < all && i < room; i++)
        handles[i] = sg_session_handle((int)i);
    *count = room == 0 || all < room ? all : room;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t first, nvmlDevice_t second, int *same) {
    sg_device *one, *other;
    nvmlReturn_t result = sg_session_ask(first, same, &one);
    if (result == NVML_SUCCESS)
        result = sg_session_device(second, &other);
    if (result == NVML_SUCCESS)
        *same = one == other;
    return result;
}

/* The CPUs that this process may run on: its kernels run there. `words` is the length of the set. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned words, unsigned long *set) {
    cpu_set_t allowed;
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, set, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (words == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return NVML_ERROR_OPERATING_SYSTEM;
    const unsigned bits = sizeof *set * CHAR_BIT;
    for (unsigned i = 0; i < words; i++)
        set[i] = 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && cpu / bits < words; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            set[cpu / bits] |= 1ul << cpu % bits;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t handle, unsigned words, unsigned long *set,
                                                           unsigned scope) {
    return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetCpuAffinity(handle, words, set);
}

/* What the driver grants by cuCtxEnablePeerAccess, without a link between the cards. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second, unsigned capability,
                                              unsigned *status) {
    enum { READ = 0, WRITE = 1, NVLINK = 2, ATOMICS = 3, BY_PCI = 4, CAPABILITIES };
    enum { OK = 0, NOT_SUPPORTED = 5 };
    sg_device *one, *other;
    nvmlReturn_t result = sg_session_ask(first, status, &one);
    if (result == NVML_SUCCESS)
        result = sg_session_device(second, &other);
    if (result != NVML_SUCCESS)
        return result;
    if (one == other || capability >= CAPABILITIES)
        return NVML_ERROR_INVALID_ARGUMENT;
    bool peers = sg_facts_can_be_peers(&one->facts, &other->facts);
    *status = peers && capability != NVLINK ? OK : NOT_SUPPORTED;
    return NVML_SUCCESS;
}
