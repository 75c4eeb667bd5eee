/* A lock between the threads of one process, that costs one locked instruction: a pthread mutex costs two and two
 * calls, and two of them are in the way of each allocation. Held for nanoseconds (some microseconds where the
 * dead are cleared), never across a call into the driver, and never by a thread that is gone: a child of fork()
 * opens it anew. Who waits sleeps in between, so that a holder of lower priority gets its time. */
#ifndef GOVERNOR_LATCH_H
#define GOVERNOR_LATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

typedef atomic_bool latch;

static inline bool latch_try(latch *lock)
{
    return !atomic_load_explicit(lock, memory_order_relaxed) &&
           !atomic_exchange_explicit(lock, true, memory_order_acquire);
}

static inline void latch_wait(latch *lock)
{
    const struct timespec moment = {.tv_nsec = 20000};
    for (unsigned looks = 1; !latch_try(lock); looks++)
        if (looks % 64 != 0)
            __builtin_ia32_pause();
        else
            nanosleep(&moment, NULL);
}

static inline void latch_take(latch *lock)
{
    if (!latch_try(lock))
        latch_wait(lock);
}

static inline void latch_let_go(latch *lock)
{
    atomic_store_explicit(lock, false, memory_order_release);
}

#endif
