/* The neighbours' seats: read, and believed as far as they can be. */
#include "neighbours.h"

#include <stddef.h>

#include "seats.h"

/* How far behind a share may fall while it has nothing to do: what it may then claim at once. */
#define LAG (10 * TURNS_MILLISECOND)
/* A neighbour is never taken to be further behind us or ahead of us than this, whatever the page says. */
#define FURTHEST (200 * TURNS_MILLISECOND)
/* A sibling is not: it is where we are but for what was not told yet. */
#define SIBLING_FURTHEST (500 * TURNS_MILLISECOND * 1000)

/* Remember who sits at `at`: what we knew of another who sat there is forgotten. */
static void meet(struct turns *turns, int at)
{
    const aliquot_seat *seat = &turns->page->seats[at];
    uint64_t owner = load(&seat->owner);
    uint32_t weight = __atomic_load_n(&seat->weight, __ATOMIC_ACQUIRE);
    if (turns->seen_owner[at] != owner)
        turns->seen_charged[at] = load(&seat->charged);
    if (turns->seen_owner[at] != owner || turns->seen_weight[at] != weight)
        turns->seen_virtual[at] = 0; /* with another weight it may go back */
    turns->seen_owner[at] = owner;
    turns->seen_weight[at] = weight;
}

/* It does not go back, and is not further from us than a share that was there could be. What is beyond that is not
 * remembered. */
uint64_t neighbours_virtual(struct turns *turns, int at)
{
    uint64_t said = load(&turns->page->seats[at].virtual);
    uint64_t far = seats_scaled(FURTHEST, turns->share.weight);
    uint64_t least = turns->virtual > far ? turns->virtual - far : 0, most = add_capped(turns->virtual, far);
    meet(turns, at);
    if (said > most)
        return most;
    if (said < turns->seen_virtual[at])
        said = turns->seen_virtual[at] < most ? turns->seen_virtual[at] : most;
    turns->seen_virtual[at] = said;
    return said > least ? said : least;
}

static bool waits(const struct turns *turns, int at, uint64_t now)
{
    const aliquot_seat *seat = &turns->page->seats[at];
    return seats_taken(turns, at) && load(&seat->waits) != 0 &&
           seats_recent(load(&seat->looked), now, 2 * SEATS_HEARTBEAT);
}

static bool goes_before(const struct turns *turns, int at, uint64_t rank, uint64_t virtual)
{
    if (rank != turns->share.rank)
        return rank > turns->share.rank;
    return virtual < turns->virtual || (virtual == turns->virtual && at < turns->seat);
}

struct turns_others turns_look(struct turns *turns, uint64_t now)
{
    struct turns_others others = {.first = true, .least = UINT64_MAX, .next = TURNS_NO_SEAT};
    uint64_t best_rank = 0, best = UINT64_MAX;
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        if (!waits(turns, at, now))
            continue;
        const aliquot_seat *seat = &turns->page->seats[at];
        uint64_t rank = load(&seat->rank), virtual = neighbours_virtual(turns, at);
        bool hurries = load(&seat->hurries) != 0;
        others.waiting++;
        others.hurried |= hurries;
        others.calm |= !hurries;
        others.higher |= rank > turns->share.rank;
        others.first &= !goes_before(turns, at, rank, virtual);
        if (rank >= turns->share.rank && virtual < others.least)
            others.least = virtual;
        if (others.next == TURNS_NO_SEAT || rank > best_rank || (rank == best_rank && virtual < best)) {
            others.next = at;
            best_rank = rank;
            best = virtual;
        }
    }
    return others;
}

/* More than the device had time for since then was not. */
void neighbours_add_siblings(struct turns *turns, uint64_t now)
{
    uint64_t most = turns->looked != 0 && now > turns->looked ? now - turns->looked + 20 * TURNS_MILLISECOND : 0;
    uint64_t sum = 0;
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        const aliquot_seat *seat = &turns->page->seats[at];
        if (!seats_taken(turns, at) || load(&seat->share) != turns->share.id)
            continue;
        meet(turns, at);
        uint64_t charged = load(&seat->charged);
        if (charged > turns->seen_charged[at])
            sum = add_capped(sum, charged - turns->seen_charged[at]);
        turns->seen_charged[at] = charged;
    }
    turns->virtual += seats_scaled(sum < most ? sum : most, turns->share.weight);
}

static bool works(const struct turns *turns, int at, uint64_t now)
{
    const aliquot_seat *seat = &turns->page->seats[at];
    uint64_t horizon = load(&seat->horizon);
    return seats_taken(turns, at) && horizon > now && horizon < now + SEATS_LONGEST &&
           seats_recent(load(&seat->looked), now, SEATS_KEPT);
}

void neighbours_catch_up(struct turns *turns, uint64_t now)
{
    uint64_t least = UINT64_MAX, sibling = 0, lag = seats_scaled(LAG, turns->share.weight);
    int holder = seats_of(load(&turns->page->turn));
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        const aliquot_seat *seat = &turns->page->seats[at];
        if (!seats_taken(turns, at) || !seats_recent(load(&seat->looked), now, SEATS_KEPT))
            continue;
        uint64_t virtual = load(&seat->virtual);
        if (load(&seat->share) == turns->share.id && virtual > sibling && virtual < turns->virtual + SIBLING_FURTHEST)
            sibling = virtual;
        if ((at == holder || waits(turns, at, now) || works(turns, at, now)) && virtual < least)
            least = virtual;
    }
    if (sibling > turns->virtual)
        turns->virtual = sibling;
    if (least != UINT64_MAX && least > lag && turns->virtual < least - lag)
        turns->virtual = least - lag;
}

void turns_weigh(struct turns *turns, struct turns_share share, uint64_t now)
{
    uint32_t before = turns->share.weight;
    turns->share = share;
    if (before == share.weight || turns->page == NULL || share.weight == 0)
        return;
    uint64_t at = turns_look(turns, now).least;
    int holder = seats_of(load(&turns->page->turn));
    if (at == UINT64_MAX && holder != TURNS_NO_SEAT && seats_taken(turns, holder))
        at = neighbours_virtual(turns, holder);
    if (at == UINT64_MAX || (turns->virtual < at && share.weight < before))
        return; /* it was owed this much by a part that it no longer has */
    uint64_t far = turns->virtual > at ? turns->virtual - at : at - turns->virtual;
    far = far / share.weight * before;
    turns->virtual = turns->virtual > at ? at + far : at > far ? at - far : 0;
}

bool neighbours_outrank(const struct turns *turns, uint64_t most, uint64_t now)
{
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        const aliquot_seat *seat = &turns->page->seats[at];
        uint64_t rank = load(&seat->rank);
        if (seats_taken(turns, at) && rank > turns->share.rank && rank < most &&
            seats_recent(load(&seat->looked), now, SEATS_KEPT))
            return true;
    }
    return false;
}

bool turns_contended(const struct turns *turns, uint64_t now, uint64_t span)
{
    return seats_recent(load(&turns->page->waited), now, span);
}

bool turns_hurried(const struct turns *turns, uint64_t now, uint64_t span)
{
    return seats_recent(load(&turns->page->hurried), now, span);
}

uint64_t turns_beside(const struct turns *turns, uint64_t now)
{
    uint64_t until = 0;
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        uint64_t horizon = load(&turns->page->seats[at].horizon);
        if (works(turns, at, now) && horizon > until)
            until = horizon;
    }
    return until;
}

uint64_t turns_charged_to_others(const struct turns *turns)
{
    uint64_t sum = 0;
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++)
        if (seats_taken(turns, at))
            sum += load(&turns->page->seats[at].charged);
    return sum;
}

uint64_t turns_progress(const struct turns *turns)
{
    return turns_charged_to_others(turns) * 256 + (load(&turns->page->turn) & SEATS_BITS);
}
