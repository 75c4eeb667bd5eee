/* What a launch should cost, learned from what launches like it did.
 *
 * A shape is a function with its grid and block, or an executable graph. Kept without a lock: threads that
 * race lose a lesson, never more. Pure: no clock, no driver. */
#ifndef GOVERNOR_ESTIMATE_H
#define GOVERNOR_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

struct estimate {
    uint64_t key;      /* of the shape; 0 free */
    uint64_t ns;       /* 0: not known */
    uint32_t measured; /* how often */
    uint32_t opened;   /* batches that began with it */
};

/* Below this a launch may join a batch; at and above it is measured by itself. */
#define ESTIMATE_ALWAYS_SOLO_NS UINT64_C(200000)
enum { ESTIMATE_FIRST_SOLOS = 8, ESTIMATE_SOLO_EACH = 17 };

/* The entry of `key` (never 0), made where there is none; another one of its row goes for it. */
struct estimate *estimate_of(uint64_t key);

uint64_t estimate_mix(uint64_t hash, uint64_t word);

/* Whether the batch that begins with this launch should be measured by itself. */
bool estimate_wants_solo(struct estimate *entry);
/* It took `ns` alone. `roughly`: as far as can be told, for the device changed hands meanwhile; what is better known
 * stays. */
void estimate_learn(struct estimate *entry, uint64_t ns, bool roughly);
static inline bool estimate_is_rough(const struct estimate *entry)
{
    return __atomic_load_n(&entry->measured, __ATOMIC_RELAXED) == 0;
}

/* A whole batch took `measured` where `predicted` was the sum: costs have drifted. `*ratio` is in 1/65536. */
void estimate_drift(uint32_t *ratio, uint64_t measured, uint64_t predicted);
static inline uint64_t estimate_scaled(uint64_t ns, uint32_t ratio)
{
    return (uint64_t)(((unsigned __int128)ns * ratio) >> 16);
}

/* Whether a launch of it may join a batch that is open. */
static inline bool estimate_joins(const struct estimate *entry, uint64_t predicted)
{
    return predicted != 0 && predicted < ESTIMATE_ALWAYS_SOLO_NS &&
           __atomic_load_n(&entry->measured, __ATOMIC_RELAXED) >= ESTIMATE_FIRST_SOLOS;
}

#define ESTIMATE_NO_DRIFT UINT32_C(65536)

/* In a forked child and after a context is gone: handles mean something else. */
void estimate_forget(void);

#endif
