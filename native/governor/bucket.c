#include "bucket.h"

#include "words.h"

/* What an idle share saves up: GPU time that it may then use at once. */
#define SAVED UINT64_C(5000000)
/* A word further ahead than this is nonsense: nobody spends ten seconds at once. */
#define FURTHEST UINT64_C(10000000000)

static uint64_t earning(uint64_t ns, uint32_t weight)
{
    return ns * 1000 / (weight != 0 ? weight : 1);
}

static uint64_t believed(uint64_t ready, uint32_t weight, uint64_t now)
{
    uint64_t saved = earning(SAVED, weight), oldest = now > saved ? now - saved : 0;
    if (ready < oldest || ready > add_capped(now, earning(FURTHEST, weight)))
        return oldest;
    return ready;
}

void bucket_spend(uint64_t *ready, int64_t ns, uint32_t weight, uint64_t now)
{
    uint64_t size = earning((uint64_t)(ns < 0 ? -ns : ns), weight), seen = load(ready), wanted;
    do {
        uint64_t from = believed(seen, weight, now);
        wanted = ns >= 0 ? from + size : from > size ? from - size : 0;
    } while (!__atomic_compare_exchange_n(ready, &seen, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

uint64_t bucket_wait(const uint64_t *ready, uint64_t more, uint32_t weight, uint64_t now)
{
    uint64_t from = add_capped(believed(load(ready), weight, now), earning(more, weight));
    return from > now ? from : 0;
}
