/* The few types of NVML that the wrappers look into, and its result codes. */
#ifndef GOVERNOR_NVML_API_H
#define GOVERNOR_NVML_API_H

#include <stdbool.h>

#include "ledger.h"

typedef int nvmlReturn_t;
typedef void *nvmlDevice_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_NOT_READY = 27,
};

/* nvmlProcessUtilizationSample_t: percent of the device over the driver's sample period. */
struct utilisation_sample {
    unsigned pid;
    unsigned long long time;
    unsigned multiprocessors, memory, encoder, decoder;
};

/* Percent of the device's time as percent of the share's part of it; at most 100. */
unsigned nvml_percent_of_share(unsigned device, unsigned percent);

/* Set `named` of each of our processes to what the driver calls it. False: the driver lists none of them. */
bool nvml_name_as_driver(nvmlDevice_t device, struct ledger_process *processes, unsigned count);
/* The process that the driver means; NULL where it is none of ours. */
const struct ledger_process *nvml_ours(unsigned named, const struct ledger_process *processes, unsigned count);

/* The device of the share that the driver's handle is of; -1 where it is of none. */
int nvml_index_of(nvmlDevice_t device);

#endif
