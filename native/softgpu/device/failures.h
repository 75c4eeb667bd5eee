/* Failures on demand: what a device was told to do wrong, while programs run on it.
 *
 * The file `failures` in the device's folder has one failure a line; `aliquot softgpu fail` writes it, and so may
 * anybody who can. Each process reads it anew when it has changed: the command counts up a word of the shared
 * state, which is looked at with every call; a file edited by hand is noticed within LOOK_NS of failures.c. */
#ifndef SG_FAILURES_H
#define SG_FAILURES_H

#include "device.h"

enum { SG_FAILING_EVENTS = 16 };

/* Parts of NVML that can be told to be missing, by the file of ../nvml that they are in. */
typedef enum {
    SG_NVML_ACCOUNTING, SG_NVML_CLOCKS, SG_NVML_ECC, SG_NVML_FIELDS, SG_NVML_PCIE, SG_NVML_POWER, SG_NVML_PROCESSES,
    SG_NVML_TEMPERATURE, SG_NVML_TOPOLOGY, SG_NVML_USAGE, SG_NVML_PARTS
} sg_nvml_part;

/* Something that happened once: its number tells a later one from an earlier. */
typedef struct {
    enum { SG_EVENT_XID, SG_EVENT_CORRECTED, SG_EVENT_UNCORRECTED } kind;
    uint64_t value;
    uint64_t serial;
} sg_failing_event;

typedef struct {
    bool lost, hang;
    uint64_t slow_ppm;         /* durations, 1000000 as they are */
    uint64_t allocation;       /* the n-th allocation of each process fails; 0 none */
    bool allocation_and_later;
    int branch;                /* of the driver; 0 as it is */
    uint32_t without;          /* a bit for each sg_nvml_part */
    int event_count;
    sg_failing_event events[SG_FAILING_EVENTS];
} sg_failures;

/* What is in force now. Nothing where the file is missing; a line that cannot be read is left out and named in
 * the device's log. Reports new XIDs and memory errors to incidents.c, whoever is first. */
void sg_failures_now(sg_device *device, sg_failures *failures);
/* The same, cheap where nothing is in force: false then, and `failures` is not written. */
bool sg_failures_any(sg_device *device, sg_failures *failures);
/* The newest event's number; 0 none. */
uint64_t sg_failures_newest(const sg_failures *failures);
/* Does this allocation fail? Counts it. */
bool sg_failures_allocation(sg_device *device);
/* The oldest driver branch that one of the devices was told, the driver being one for all of them; 0 none.
 * `cheap`: a few loads for a device that this process has opened, where a file edited by hand is noticed at the next
 * question that is not; of another, what is known may be LOOK_NS old. */
int sg_oldest_branch(sg_device *devices, int count, bool cheap);
/* A branch of drivers: 470, whose CUDA is 11040 and takes PTX up to .version 7.4. */
typedef struct {
    int branch, cuda_version, ptx_version;
} sg_driver_branch;
/* NULL for a branch that is not known. */
const sg_driver_branch *sg_driver_branch_of(int branch);
/* CUDA's version of a driver branch, as cuDriverGetVersion tells it; 0 for a branch that is not known. */
int sg_cuda_version_of_branch(int branch);

#endif
