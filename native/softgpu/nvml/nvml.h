/* What the files of this library share. NVML sees all devices, whatever CUDA_VISIBLE_DEVICES says, and
 * never takes a process slot: looking at a card uses nothing of it. */
#ifndef SG_NVML_H
#define SG_NVML_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "device.h"
#include "nvml_types.h"

#define SG_EXPORT __attribute__((visibility("default")))
#define SG_ALIAS(name, target) extern __typeof__(target) name __attribute__((alias(#target), visibility("default")))

nvmlReturn_t sg_session_ready(void);
int sg_session_count(void);
/* The device of a handle; its state is not open yet. */
nvmlReturn_t sg_session_device(nvmlDevice_t handle, sg_device **device);
/* The same, with its shared state open. */
nvmlReturn_t sg_session_state(nvmlDevice_t handle, sg_device **device);
nvmlDevice_t sg_session_handle(int index);
nvmlReturn_t sg_copy_text(const char *from, char *to, unsigned length);

#endif
