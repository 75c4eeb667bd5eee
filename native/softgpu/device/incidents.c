/* What went wrong with a device: XIDs and errors of memory, the last few of them in order, and how many
 * errors of memory there ever were.
 *
 * A ring in the shared state, without a lock: a writer draws a number, fills that number's place and writes
 * the number into it last. So a place that does not hold the number looked for is not yet written, was
 * overwritten, or its writer was killed; who reads steps over it. Nothing here is trusted further than to be
 * shown. */
#include "layout.h"

/* Numbers begin at 1: 0 is a place never written. */
static sg_incident_place *place_of(sg_device *device, uint64_t number) {
    return &device->state->incidents[number % SG_INCIDENTS];
}

void sg_incident_report(sg_device *device, sg_incident_kind kind, uint64_t value) {
    sg_state *state = device->state;
    if (kind == SG_INCIDENT_CORRECTED)
        atomic_fetch_add(&state->memory_errors[0], value);
    if (kind == SG_INCIDENT_UNCORRECTED)
        atomic_fetch_add(&state->memory_errors[1], value);
    uint64_t number = atomic_fetch_add(&state->incident_count, 1) + 1;
    sg_incident_place *place = place_of(device, number);
    atomic_store(&place->number, 0);
    atomic_store(&place->kind, (uint32_t)kind);
    atomic_store(&place->value, value);
    atomic_store(&place->number, number);
}

uint64_t sg_incident_newest(sg_device *device) {
    return atomic_load(&device->state->incident_count);
}

bool sg_incident_read(sg_device *device, uint64_t number, sg_incident *incident) {
    sg_incident_place *place = place_of(device, number);
    if (atomic_load(&place->number) != number)
        return false;
    *incident = (sg_incident){.kind = (sg_incident_kind)atomic_load(&place->kind), .value = atomic_load(&place->value)};
    return atomic_load(&place->number) == number;
}

uint64_t sg_memory_errors(sg_device *device, bool uncorrected) {
    return atomic_load(&device->state->memory_errors[uncorrected]);
}
