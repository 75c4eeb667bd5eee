/* The own seat: taking it, saying there what we do, and what we were charged. */
#include "seats.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* ---- life ---- */

void turns_begin(struct turns *turns, aliquot_turns *page, uint64_t owner)
{
    *turns = (struct turns){.page = page, .owner = owner, .seat = TURNS_NO_SEAT, .share = {.weight = 1}};
}

void turns_forget(struct turns *turns)
{
    struct turns_share share = turns->share;
    uint64_t charged = turns->charged;
    turns_begin(turns, turns->page, turns->owner);
    turns->share = share;
    turns->charged = charged;
}

void turns_mind_page(struct turns *turns)
{
    int before = errno;
    if (turns->page != NULL && madvise(turns->page, sizeof *turns->page, MADV_POPULATE_READ) != 0 && errno == EFAULT) {
        turns->page = NULL;
        turns_forget(turns);
    }
    errno = before;
}

/* ---- a seat ---- */

static void write_seat(struct turns *turns)
{
    aliquot_seat *seat = &turns->page->seats[turns->seat];
    store(&seat->share, turns->share.id);
    store(&seat->rank, turns->share.rank);
    store(&seat->virtual, turns->virtual);
    store(&seat->charged, turns->charged);
    store(&seat->horizon, turns->horizon);
    store(&seat->waits, turns->waits);
    store(&seat->hurries, turns->hurries);
    __atomic_store_n(&seat->weight, turns->share.weight, __ATOMIC_SEQ_CST);
    store(&seat->looked, turns->looked);
}

bool seats_free(const struct turns *turns, uint64_t word, uint64_t now)
{
    uint64_t until = seats_until(word);
    int at = seats_of(word);
    if (at == TURNS_NO_SEAT || until <= now || until > now + SEATS_LONGEST)
        return true;
    return at != turns->seat && !seats_recent(load(&turns->page->seats[at].looked), now, 2 * SEATS_HEARTBEAT);
}

static bool take_seat(struct turns *turns, int at, uint64_t now)
{
    aliquot_seat *seat = &turns->page->seats[at];
    uint64_t owner = load(&seat->owner), word = load(&turns->page->turn);
    if (owner != 0 && seats_recent(load(&seat->looked), now, SEATS_KEPT))
        return false;
    if (!seats_free(turns, word, now) && seats_of(word) == at)
        return false;
    return __atomic_compare_exchange_n(&seat->owner, &owner, turns->owner, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool turns_sit(struct turns *turns, uint64_t now)
{
    if (turns->seat == TURNS_NO_SEAT || load(&turns->page->seats[turns->seat].owner) != turns->owner) {
        int begin = turns->seat != TURNS_NO_SEAT ? turns->seat : 0;
        turns->seat = TURNS_NO_SEAT;
        turns->word = 0;
        for (int step = 0; step < ALIQUOT_SEATS_MAX && turns->seat == TURNS_NO_SEAT; step++)
            if (take_seat(turns, (begin + step) % ALIQUOT_SEATS_MAX, now))
                turns->seat = (begin + step) % ALIQUOT_SEATS_MAX;
        if (turns->seat == TURNS_NO_SEAT)
            return false;
    }
    turns->looked = now;
    write_seat(turns);
    return true;
}

void turns_stop_waiting(struct turns *turns)
{
    if (turns->waits == 0)
        return;
    turns->waits = 0;
    if (turns->seat != TURNS_NO_SEAT)
        store(&turns->page->seats[turns->seat].waits, 0);
}

/* ---- the own account ---- */

static void say_charges(const struct turns *turns)
{
    if (turns->page == NULL || turns->seat == TURNS_NO_SEAT)
        return;
    store(&turns->page->seats[turns->seat].virtual, turns->virtual);
    store(&turns->page->seats[turns->seat].charged, turns->charged);
}

enum { FLOOR_PARTS = 20 }; /* a share of a lower rank is owed one part in so many */

void turns_charge(struct turns *turns, int64_t ns)
{
    uint64_t size = (uint64_t)(ns < 0 ? -ns : ns), far = seats_scaled(size, turns->share.weight);
    if (ns < 0) {
        turns->virtual -= far < turns->virtual ? far : turns->virtual;
        turns->charged -= size < turns->charged ? size : turns->charged;
        turns->used -= size < turns->used ? size : turns->used;
    } else {
        turns->virtual += far;
        turns->charged += size;
        turns->used += size;
        turns->visited += turns->word == 0 ? size : 0;
        turns->floor_due += size * FLOOR_PARTS;
    }
    say_charges(turns);
}

void turns_idled(struct turns *turns, uint64_t ns)
{
    turns->virtual += seats_scaled(ns, turns->share.weight);
    turns->used += ns;
    say_charges(turns);
}

void turns_announce(struct turns *turns, uint64_t horizon)
{
    turns->horizon = horizon;
    if (turns->page != NULL && turns->seat != TURNS_NO_SEAT)
        store(&turns->page->seats[turns->seat].horizon, horizon);
}
