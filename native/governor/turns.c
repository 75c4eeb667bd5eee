#include "turns.h"

#include <stddef.h>
#include <string.h>

#include "words.h"

#define QUANTUM (5 * TURNS_MILLISECOND)
#define LEAST_TURN (1 * TURNS_MILLISECOND)
/* How far behind a share may fall while it has nothing to do: what it may then claim at once. */
#define LAG (10 * TURNS_MILLISECOND)
/* Who waits looks at least this often; who did not for twice as long is stopped or dead. */
#define HEARTBEAT (10 * TURNS_MILLISECOND)
#define SEAT_KEPT (1000 * TURNS_MILLISECOND)
/* How long who is not first leaves a free turn to who is. */
#define COURTESY (300 * TURNS_MICROSECOND)
/* Nobody announces more than this: a longer turn is nonsense, and free. */
#define LONGEST (1000 * TURNS_MILLISECOND)
/* A neighbour is never taken to be further behind us or ahead of us than this, whatever the page says. */
#define FURTHEST (200 * TURNS_MILLISECOND)
/* Beside a turn that lasts this much longer, who comes back to work may launch a little: the driver gives it
 * slices, and a short request does not wait for the end of a long kernel. */
#define LONG (6 * TURNS_MILLISECOND)
#define FLOOR_PARTS 20 /* a share of a lower rank is owed one part in so many */
#define OWED UINT64_C(255)

#define SEAT_BITS UINT64_C(0xff)

/* ---- words of the page ---- */

static int seat_of(uint64_t word)
{
    int seat = (int)(word & SEAT_BITS) - 1;
    return seat < ALIQUOT_SEATS_MAX ? seat : TURNS_NO_SEAT;
}

static uint64_t turn_of(uint64_t until, int seat)
{
    return (until & ~SEAT_BITS) | (uint64_t)(seat + 1);
}

static uint64_t until_of(uint64_t word)
{
    return word & ~SEAT_BITS;
}

static bool swap_turn(struct turns *turns, uint64_t seen, uint64_t wanted)
{
    return __atomic_compare_exchange_n(&turns->page->turn, &seen, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static bool is_recent(uint64_t stamp, uint64_t now, uint64_t span)
{
    return stamp != 0 && stamp <= now + TURNS_MILLISECOND && now <= stamp + span;
}

/* In units of `virtual`: what `ns` are to a share of this weight. */
static uint64_t scaled(uint64_t ns, uint32_t weight)
{
    return ns * 1000 / (weight != 0 ? weight : 1);
}

static bool is_free(uint64_t word, uint64_t now)
{
    uint64_t until = until_of(word);
    return seat_of(word) == TURNS_NO_SEAT || until <= now || until > now + LONGEST;
}

/* ---- the own seat ---- */

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

static void write_seat(struct turns *turns)
{
    aliquot_seat *seat = &turns->page->seats[turns->seat];
    store(&seat->share, turns->share.id);
    store(&seat->rank, turns->share.rank);
    store(&seat->virtual, turns->virtual);
    store(&seat->charged, turns->charged);
    store(&seat->horizon, turns->horizon);
    store(&seat->waits, turns->waits);
    __atomic_store_n(&seat->weight, turns->share.weight, __ATOMIC_SEQ_CST);
    store(&seat->looked, turns->looked);
}

static bool take_seat(struct turns *turns, int at, uint64_t now)
{
    aliquot_seat *seat = &turns->page->seats[at];
    uint64_t owner = load(&seat->owner);
    if (owner != 0 && is_recent(load(&seat->looked), now, SEAT_KEPT))
        return false;
    if (!is_free(load(&turns->page->turn), now) && seat_of(load(&turns->page->turn)) == at)
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

/* ---- the neighbours ---- */

/* Remember who sits at `at`: what we knew of another who sat there is forgotten. */
static void meet(struct turns *turns, int at)
{
    const aliquot_seat *seat = &turns->page->seats[at];
    uint64_t owner = load(&seat->owner);
    if (turns->seen_owner[at] == owner)
        return;
    turns->seen_owner[at] = owner;
    turns->seen_virtual[at] = 0;
    turns->seen_charged[at] = load(&seat->charged);
}

/* How far who sits at `at` is, believed as far as it can be: it does not go back, and is not further from us
 * than a share that was there could be. What is beyond that is not remembered. */
static uint64_t virtual_of(struct turns *turns, int at)
{
    uint64_t said = load(&turns->page->seats[at].virtual);
    uint64_t far = scaled(FURTHEST, turns->share.weight);
    uint64_t least = turns->virtual > far ? turns->virtual - far : 0, most = add_capped(turns->virtual, far);
    meet(turns, at);
    if (said > most)
        return most;
    if (said < turns->seen_virtual[at])
        said = turns->seen_virtual[at] < most ? turns->seen_virtual[at] : most;
    turns->seen_virtual[at] = said;
    return said > least ? said : least;
}

static bool sits(const struct turns *turns, int at)
{
    return at != turns->seat && load(&turns->page->seats[at].owner) != 0;
}

static bool waits(const struct turns *turns, int at, uint64_t now)
{
    const aliquot_seat *seat = &turns->page->seats[at];
    return sits(turns, at) && load(&seat->waits) != 0 && is_recent(load(&seat->looked), now, 2 * HEARTBEAT);
}

struct turns_others turns_look(struct turns *turns, uint64_t now)
{
    struct turns_others others = {.first = true, .least = UINT64_MAX, .next = TURNS_NO_SEAT};
    uint64_t best_rank = 0, best = UINT64_MAX;
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        if (!waits(turns, at, now))
            continue;
        uint64_t rank = load(&turns->page->seats[at].rank), virtual = virtual_of(turns, at);
        others.waiting++;
        others.higher |= rank > turns->share.rank;
        if (rank > turns->share.rank || (rank == turns->share.rank &&
                                         (virtual < turns->virtual || (virtual == turns->virtual && at < turns->seat))))
            others.first = false;
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

/* What other processes of our share were charged since we last looked is charged to the share. More than
 * the device had time for since then was not. */
static void add_siblings(struct turns *turns, uint64_t now)
{
    uint64_t most = turns->looked != 0 && now > turns->looked ? now - turns->looked + 20 * TURNS_MILLISECOND : 0;
    uint64_t sum = 0;
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        const aliquot_seat *seat = &turns->page->seats[at];
        if (!sits(turns, at) || load(&seat->share) != turns->share.id)
            continue;
        meet(turns, at);
        uint64_t charged = load(&seat->charged);
        if (charged > turns->seen_charged[at])
            sum = add_capped(sum, charged - turns->seen_charged[at]);
        turns->seen_charged[at] = charged;
    }
    turns->virtual += scaled(sum < most ? sum : most, turns->share.weight);
}

/* Back after a time without work: with what was saved up to then, but no more than the lag. */
static void catch_up(struct turns *turns, uint64_t now)
{
    uint64_t least = UINT64_MAX, sibling = 0, lag = scaled(LAG, turns->share.weight);
    int holder = seat_of(load(&turns->page->turn));
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        const aliquot_seat *seat = &turns->page->seats[at];
        if (!sits(turns, at) || !is_recent(load(&seat->looked), now, SEAT_KEPT))
            continue;
        uint64_t virtual = load(&seat->virtual);
        if (load(&seat->share) == turns->share.id && virtual > sibling && virtual < turns->virtual + 100 * QUANTUM * 1000)
            sibling = virtual;
        if ((at == holder || waits(turns, at, now)) && virtual < least)
            least = virtual;
    }
    if (sibling > turns->virtual)
        turns->virtual = sibling;
    if (least != UINT64_MAX && least > lag && turns->virtual < least - lag)
        turns->virtual = least - lag;
}

/* ---- asking ---- */

static void begin_waiting(struct turns *turns, uint64_t now)
{
    if (turns->waits != 0)
        return;
    if (turns->horizon + TURNS_MILLISECOND < now) {
        catch_up(turns, now);
        turns->woken = true;
        turns->visited = 0;
    }
    turns->waits = now != 0 ? now : 1;
}

static bool is_outranked(const struct turns *turns, uint64_t now)
{
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        const aliquot_seat *seat = &turns->page->seats[at];
        uint64_t rank = load(&seat->rank);
        if (sits(turns, at) && rank > turns->share.rank && rank < OWED &&
            is_recent(load(&seat->looked), now, SEAT_KEPT))
            return true;
    }
    return false;
}

/* A share of a lower rank that did not get its floor is of the highest for one turn. */
static void raise_rank(struct turns *turns, uint64_t now)
{
    if (turns->floor_due + FLOOR_PARTS * LEAST_TURN < now)
        turns->floor_due = now > FLOOR_PARTS * LEAST_TURN ? now - FLOOR_PARTS * LEAST_TURN : 0;
    if (turns->share.rank < OWED && turns->floor_due <= now && is_outranked(turns, now))
        turns->share.rank = OWED;
}

static bool may_be_guest(struct turns *turns, uint64_t predicted, uint64_t word, uint64_t now)
{
    int holder = seat_of(word);
    return turns->woken && predicted != 0 && turns->visited + predicted <= QUANTUM / 2 && until_of(word) > now + LONG && load(&turns->page->seats[holder].rank) <= turns->share.rank &&
           turns->virtual <= virtual_of(turns, holder) + scaled(QUANTUM / 2, turns->share.weight);
}

static bool take(struct turns *turns, uint64_t word, uint64_t now)
{
    uint64_t mine = turn_of(now + TURNS_GRANT, turns->seat);
    int before = seat_of(word);
    if (!swap_turn(turns, word, mine))
        return false;
    if (before != turns->seat) {
        turns->used = 0;
        turns->woken = false;
        turns->taken++;
    }
    turns->word = mine;
    return true;
}

bool turns_ask(struct turns *turns, uint64_t predicted, uint64_t now, uint64_t *look)
{
    add_siblings(turns, now);
    begin_waiting(turns, now);
    raise_rank(turns, now);
    if (!turns_sit(turns, now)) {
        *look = now + HEARTBEAT;
        return false;
    }
    uint64_t word = load(&turns->page->turn);
    if (turns->word != 0 && word == turns->word && until_of(word) > now)
        return true;
    turns->word = 0;
    bool own = seat_of(word) == turns->seat;
    if (!is_free(word, now) && !own) {
        if (may_be_guest(turns, predicted, word, now))
            return true;
        store(&turns->page->waited, now);
        uint64_t until = until_of(word);
        *look = until < now + HEARTBEAT ? until + 1 : now + HEARTBEAT;
        return false;
    }
    if (word != turns->free_word) {
        turns->free_word = word;
        turns->free_since = now;
    }
    bool mine_to_take = turns_look(turns, now).first || now >= turns->free_since + COURTESY;
    *look = mine_to_take ? now : turns->free_since + COURTESY;
    return mine_to_take && take(turns, word, now);
}

void turns_stop_waiting(struct turns *turns)
{
    if (turns->waits == 0)
        return;
    turns->waits = 0;
    if (turns->seat != TURNS_NO_SEAT)
        store(&turns->page->seats[turns->seat].waits, 0);
}

/* ---- having it ---- */

uint64_t turns_until(const struct turns *turns, uint64_t now)
{
    uint64_t word = turns->page != NULL ? load(&turns->page->turn) : 0;
    return is_free(word, now) ? 0 : until_of(word);
}

bool turns_ours(const struct turns *turns)
{
    return turns->word != 0 && load(&turns->page->turn) == turns->word;
}

bool turns_renew(struct turns *turns, uint64_t horizon, uint64_t until)
{
    uint64_t wanted = turn_of(until, turns->seat);
    turns->horizon = horizon;
    store(&turns->page->seats[turns->seat].horizon, horizon);
    if (turns->word == 0 || (wanted != turns->word && !swap_turn(turns, turns->word, wanted))) {
        turns->word = 0;
        return false;
    }
    turns->word = wanted;
    return true;
}

int turns_pass(struct turns *turns, uint64_t now)
{
    struct turns_others others = turns_look(turns, now);
    turns->horizon = now;
    store(&turns->page->seats[turns->seat].horizon, now);
    bool freed = turns->word != 0 && swap_turn(turns, turns->word, turn_of(now, TURNS_NO_SEAT));
    turns->word = 0;
    return freed ? others.next : TURNS_NO_SEAT;
}

bool turns_over(const struct turns *turns, const struct turns_others *others)
{
    if (others->waiting == 0 || turns->used < LEAST_TURN)
        return false;
    if (others->higher || turns->share.rank == OWED)
        return true;
    return others->least != UINT64_MAX && turns->virtual > others->least + scaled(QUANTUM, turns->share.weight);
}

bool turns_contended(const struct turns *turns, uint64_t now, uint64_t span)
{
    return is_recent(load(&turns->page->waited), now, span);
}

/* ---- charging ---- */

void turns_charge(struct turns *turns, int64_t ns)
{
    uint64_t size = (uint64_t)(ns < 0 ? -ns : ns), far = scaled(size, turns->share.weight);
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
    if (turns->page == NULL || turns->seat == TURNS_NO_SEAT)
        return;
    store(&turns->page->seats[turns->seat].virtual, turns->virtual);
    store(&turns->page->seats[turns->seat].charged, turns->charged);
}

bool turns_beside(const struct turns *turns, uint64_t now)
{
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++) {
        const aliquot_seat *seat = &turns->page->seats[at];
        uint64_t horizon = load(&seat->horizon);
        if (sits(turns, at) && horizon > now && horizon < now + LONGEST &&
            is_recent(load(&seat->looked), now, SEAT_KEPT))
            return true;
    }
    return false;
}

void turns_announce(struct turns *turns, uint64_t horizon)
{
    turns->horizon = horizon;
    if (turns->page != NULL && turns->seat != TURNS_NO_SEAT)
        store(&turns->page->seats[turns->seat].horizon, horizon);
}

void turns_drained(struct turns *turns, uint64_t now)
{
    turns_announce(turns, now);
}

uint64_t turns_charged_to_others(const struct turns *turns)
{
    uint64_t sum = 0;
    for (int at = 0; at < ALIQUOT_SEATS_MAX; at++)
        if (sits(turns, at))
            sum += load(&turns->page->seats[at].charged);
    return sum;
}

uint64_t turns_progress(const struct turns *turns)
{
    return turns_charged_to_others(turns) * 256 + (load(&turns->page->turn) & SEAT_BITS);
}
