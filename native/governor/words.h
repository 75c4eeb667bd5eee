/* Words of a file that others write too: read and written whole, and never trusted. */
#ifndef GOVERNOR_WORDS_H
#define GOVERNOR_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static inline uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value >= 0 && value < 1e30 ? value : 0; /* a NaN fails both */
}

static inline uint64_t as_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline void add_double(uint64_t *word, double more)
{
    uint64_t seen = load(word);
    while (!__atomic_compare_exchange_n(word, &seen, as_bits(as_double(seen) + more), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        ;
}

static inline uint64_t add_capped(uint64_t left, uint64_t right)
{
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

static inline uint64_t now_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return now_of(CLOCK_MONOTONIC);
}

/* The same as of the last tick, some milliseconds ago at most, for a fraction of the price. An integral that
 * takes all its moments from here is right on average, and off by a tick's bytes at most. */
static inline uint64_t now_coarse_ns(void)
{
    return now_of(CLOCK_MONOTONIC_COARSE);
}

#endif
