/* What the files of this library share. NVML sees all devices, whatever CUDA_VISIBLE_DEVICES says, and
 * never takes a process slot: looking at a card uses nothing of it. */
#ifndef SG_NVML_H
#define SG_NVML_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "device.h"
#include "failures.h"
#include "nvml_types.h"

#define SG_EXPORT __attribute__((visibility("default")))
#define SG_ALIAS(name, target) extern __typeof__(target) name __attribute__((alias(SG_TEXT(target)), visibility("default")))
#define SG_TEXT(name) SG_TEXT_OF(name) /* by the name that a late function has in here */
#define SG_TEXT_OF(name) #name

nvmlReturn_t sg_session_ready(void);
int sg_session_count(void);
/* The driver branch that the devices were told to be of; 0 none. */
int sg_session_branch(void);
/* The device of a handle; its state is not open yet. */
nvmlReturn_t sg_session_device_for(const char *file, nvmlDevice_t handle, sg_device **device);
/* The same, with its shared state open. */
nvmlReturn_t sg_session_state_for(const char *file, nvmlDevice_t handle, sg_device **device);
/* The device of a handle, where there is a place for the answer. */
nvmlReturn_t sg_session_ask_for(const char *file, nvmlDevice_t handle, const void *answer, sg_device **device);
/* The same answer for every device. */
nvmlReturn_t sg_answer_for(const char *file, nvmlDevice_t handle, unsigned constant, unsigned *value);
/* Who asks is known by its file: a device can be told that a part of NVML is missing (device/failures.h). */
#define sg_session_device(...) sg_session_device_for(__FILE__, __VA_ARGS__)
#define sg_session_state(...) sg_session_state_for(__FILE__, __VA_ARGS__)
#define sg_session_ask(...) sg_session_ask_for(__FILE__, __VA_ARGS__)
#define sg_answer(...) sg_answer_for(__FILE__, __VA_ARGS__)
nvmlDevice_t sg_session_handle(int index);
nvmlReturn_t sg_copy_text(const char *from, char *to, unsigned length);
unsigned long long sg_microseconds_now(void); /* since the epoch, as NVML's time stamps are */
/* What a device draws that was busy for so much of the time: a model, see power.c. */
uint64_t sg_modelled_power_mw(const sg_facts *facts, unsigned busy_permille);
/* The processes that the caller can see, in NVML's way with arrays: *count is the room for answers in `array` on
 * the way in, what there is on the way out. *processes is malloc'd. */
nvmlReturn_t sg_list_processes(nvmlDevice_t handle, unsigned *count, const void *array, sg_process **processes);
void sg_events_forget(void); /* in a forked child */

/* What the tables of fields.c and others call; defined where their subject is. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *rates);
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, unsigned *current, unsigned *pending);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, unsigned type, unsigned counter,
                                         unsigned long long *count);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t handle, unsigned cause, unsigned *count,
                                       unsigned long long *addresses);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t handle, unsigned *pending);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t handle, unsigned *corrected, unsigned *uncorrected,
                                       unsigned *pending, unsigned *failed);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned *milliwatts);
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned *milliwatts);
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t handle, unsigned *milliwatts);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned *milliwatts);
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle, unsigned *least, unsigned *most);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t handle, unsigned long long *millijoules);

#endif
