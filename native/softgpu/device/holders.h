/* Which processes hold something that several may: a bit for each slot in the device's state, and how often in each
 * process. A kill leaves its bit, which goes with the slot. */
#ifndef SG_HOLDERS_H
#define SG_HOLDERS_H

#include "layout.h"

enum { SG_HOLDER_WORDS = SG_MAXIMUM_PROCESSES / 64 };

static inline bool sg_holders_have(_Atomic uint64_t *holders, int slot) {
    return (atomic_load(&holders[slot / 64]) & UINT64_C(1) << slot % 64) != 0;
}

static inline void sg_holders_drop(_Atomic uint64_t *holders, int slot) {
    atomic_fetch_and(&holders[slot / 64], ~(UINT64_C(1) << slot % 64));
}

static inline void sg_holders_clear(_Atomic uint64_t *holders) {
    for (int word = 0; word < SG_HOLDER_WORDS; word++)
        atomic_store(&holders[word], 0);
}

static inline bool sg_holders_any(_Atomic uint64_t *holders) {
    uint64_t any = 0;
    for (int word = 0; word < SG_HOLDER_WORDS; word++)
        any |= atomic_load(&holders[word]);
    return any != 0;
}

static inline void sg_holders_drop_dead(_Atomic uint64_t *holders, const sg_dead *dead) {
    for (int slot = 0; slot < SG_MAXIMUM_PROCESSES; slot++)
        if (dead->slots[slot] && sg_holders_have(holders, slot))
            sg_holders_drop(holders, slot);
}

/* Once more by this process, as `times` counts. */
static inline void sg_hold(sg_device *device, _Atomic uint64_t *holders, uint16_t *times) {
    pthread_mutex_lock(&device->sharing);
    if ((*times)++ == 0)
        atomic_fetch_or(&holders[device->slot / 64], UINT64_C(1) << device->slot % 64);
    pthread_mutex_unlock(&device->sharing);
}

/* Once less. Where it was the last time, what is no more held by anybody is given back; where somebody sits on the
 * lock, by the next to look. */
static inline void sg_let_go(sg_device *device, _Atomic uint64_t *holders, uint16_t *times) {
    pthread_mutex_lock(&device->sharing);
    bool last = --*times == 0;
    if (last)
        sg_holders_drop(holders, device->slot);
    pthread_mutex_unlock(&device->sharing);
    if (last && sg_metadata_lock(device, 0) == 0) {
        sg_repair(device);
        sg_metadata_unlock(device);
    }
}

#endif
