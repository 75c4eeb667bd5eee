/* How long the device was busy: since it was made, and in the last second.
 *
 * The busy time is real time. A kernel runs on the machine's CPUs and holds the device for as long as
 * that takes, so that is what the device was busy for; `instructions` is kept beside it. */
#include <time.h>

#include <stdlib.h>

#include "model_layout.h"
#include "turns.h"

uint64_t sg_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Only the one whose turn it is writes the device's window, and a process its own. */
void sg_recent_add(sg_recent *recent, uint64_t from_ns, uint64_t to_ns) {
    if (to_ns - from_ns > SG_BUCKETS * SG_BUCKET_NS)
        from_ns = to_ns - SG_BUCKETS * SG_BUCKET_NS;
    while (from_ns < to_ns) {
        uint64_t period = from_ns / SG_BUCKET_NS;
        uint64_t end = (period + 1) * SG_BUCKET_NS < to_ns ? (period + 1) * SG_BUCKET_NS : to_ns;
        unsigned i = (unsigned)(period % SG_BUCKETS);
        if (atomic_load(&recent->period[i]) != period) {
            atomic_store(&recent->busy_ns[i], 0);
            atomic_store(&recent->period[i], period);
        }
        atomic_fetch_add(&recent->busy_ns[i], end - from_ns);
        from_ns = end;
    }
}

/* Busy nanoseconds of the last ten whole buckets: of one second. */
uint64_t sg_recent_busy_ns(sg_recent *recent, uint64_t now_ns) {
    uint64_t period = now_ns / SG_BUCKET_NS, busy = 0;
    for (unsigned i = 0; i < SG_BUCKETS; i++) {
        uint64_t age = period - atomic_load(&recent->period[i]);
        uint64_t ns = atomic_load(&recent->busy_ns[i]);
        if (age >= 1 && age <= 10)
            busy += ns < SG_BUCKET_NS ? ns : SG_BUCKET_NS;
    }
    return busy;
}

uint64_t sg_busy_ns(sg_device *device) {
    sg_model *model = sg_model_used(device) ? sg_model_look(device) : NULL;
    uint64_t busy = model != NULL ? model->compute_ns : atomic_load(&device->state->busy_ns);
    free(model);
    return busy;
}

/* A holder killed while it ran left `running_since_ns` behind, but not the lock. */
uint64_t sg_running_since(sg_device *device, int slot) {
    uint64_t since = atomic_load(&device->state->running_since_ns);
    if (since == 0 || (slot >= 0 && atomic_load(&device->state->running_slot) != (uint32_t)slot))
        return 0;
    if (!sg_turn_is_held(device, sg_state_file(device)) &&
        atomic_load(&device->state->running_slot) != (uint32_t)device->slot)
        return 0;
    return since;
}

/* What it adds to the last second. */
uint64_t sg_running_busy_ns(sg_device *device, int slot, uint64_t now_ns) {
    uint64_t since = sg_running_since(device, slot);
    uint64_t end = now_ns / SG_BUCKET_NS * SG_BUCKET_NS, begin = end - 10 * SG_BUCKET_NS;
    return since == 0 || since >= end ? 0 : end - (since > begin ? since : begin);
}

static int samples_of(sg_recent *recent, uint64_t now, uint64_t since, sg_sample samples[SG_SAMPLES]) {
    uint64_t period = now / SG_BUCKET_NS;
    for (unsigned i = 0; i < SG_SAMPLES; i++) {
        uint64_t wanted = period - SG_SAMPLES + i, begin = wanted * SG_BUCKET_NS, end = begin + SG_BUCKET_NS;
        unsigned bucket = (unsigned)(wanted % SG_BUCKETS);
        uint64_t busy = atomic_load(&recent->period[bucket]) == wanted ? atomic_load(&recent->busy_ns[bucket]) : 0;
        if (since != 0 && since < end)
            busy += end - (since > begin ? since : begin);
        samples[i] = (sg_sample){.end_ns = end,
                                 .busy_permille = busy >= SG_BUCKET_NS ? 1000 : (unsigned)(busy * 1000 / SG_BUCKET_NS)};
    }
    return SG_SAMPLES;
}

/* By the model's clock, and told as if that clock said the machine's time now. */
static int modelled_samples(const sg_model *model, sg_sample samples[SG_SAMPLES]) {
    sg_recent recent = model->recent;
    int count = samples_of(&recent, model->now_ns, 0, samples);
    for (int i = 0; i < count; i++)
        samples[i].end_ns += sg_monotonic_ns() - model->now_ns;
    return count;
}

int sg_recent_samples(sg_device *device, sg_sample samples[SG_SAMPLES]) {
    sg_model *model = sg_model_used(device) ? sg_model_look(device) : NULL;
    if (model == NULL)
        return samples_of(&device->state->recent, sg_monotonic_ns(), sg_running_since(device, -1), samples);
    int count = modelled_samples(model, samples);
    free(model);
    return count;
}

static unsigned permille(uint64_t busy_ns) {
    return busy_ns >= 1000000000u ? 1000 : (unsigned)(busy_ns / 1000000);
}

/* Of the last second on the model's clock. */
static unsigned modelled_permille(sg_device *device) {
    sg_model *model = sg_model_look(device);
    unsigned busy = model != NULL ? permille(sg_recent_busy_ns(&model->recent, model->now_ns)) : 0;
    free(model);
    return busy;
}

unsigned sg_recent_permille(sg_device *device) {
    if (sg_model_used(device))
        return modelled_permille(device);
    uint64_t now = sg_monotonic_ns();
    uint64_t busy = sg_recent_busy_ns(&device->state->recent, now) + sg_running_busy_ns(device, -1, now);
    return busy >= 1000000000u ? 1000 : (unsigned)(busy / 1000000);
}
