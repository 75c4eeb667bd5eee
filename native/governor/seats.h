/* The words of the page of turns, as turns.c and neighbours.c read and write them. Of turns.h only. */
#ifndef GOVERNOR_SEATS_H
#define GOVERNOR_SEATS_H

#include "turns.h"
#include "words.h"

#define SEATS_BITS UINT64_C(0xff) /* of the turn's word: whose it is */
/* Nobody announces more than this: a longer turn is nonsense, and free. */
#define SEATS_LONGEST (1000 * TURNS_MILLISECOND)
/* Who waits looks at least this often; who did not for twice as long is stopped or dead. */
#define SEATS_HEARTBEAT (10 * TURNS_MILLISECOND)
#define SEATS_KEPT (1000 * TURNS_MILLISECOND)

static inline int seats_of(uint64_t word)
{
    int seat = (int)(word & SEATS_BITS) - 1;
    return seat < ALIQUOT_SEATS_MAX ? seat : TURNS_NO_SEAT;
}

static inline uint64_t seats_word(uint64_t until, int seat)
{
    return (until & ~SEATS_BITS) | (uint64_t)(seat + 1);
}

static inline uint64_t seats_until(uint64_t word)
{
    return word & ~SEATS_BITS;
}

static inline bool seats_recent(uint64_t stamp, uint64_t now, uint64_t span)
{
    return stamp != 0 && stamp <= now + TURNS_MILLISECOND && now <= stamp + span;
}

/* In units of `virtual`: what `ns` are to a share of this weight. */
static inline uint64_t seats_scaled(uint64_t ns, uint32_t weight)
{
    return ns * 1000 / (weight != 0 ? weight : 1);
}

/* Whether somebody else sits at `at`. */
static inline bool seats_taken(const struct turns *turns, int at)
{
    return at != turns->seat && load(&turns->page->seats[at].owner) != 0;
}

/* The turn is nobody's: it was given up, its time is over, or who has it was not heard of for too long. */
bool seats_free(const struct turns *turns, uint64_t word, uint64_t now);

#endif
