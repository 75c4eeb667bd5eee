/* Asking for the turn, having it, and giving it up. */
#include "turns.h"

#include <stddef.h>

#include "neighbours.h"
#include "seats.h"

/* How far who has the turn gets ahead of who waits, and how much it may always launch. Beside a program that hurries,
 * which waits for each little work, that is no quantum and a turn as short as a change of hands allows. */
#define QUANTUM (5 * TURNS_MILLISECOND)
#define LEAST_TURN (1 * TURNS_MILLISECOND)
#define LEAST_HURRIED (1250 * TURNS_MICROSECOND)
/* How long who is not first leaves a free turn to who is. */
#define COURTESY (300 * TURNS_MICROSECOND)
/* Beside a turn that lasts this much longer, who comes back to work may launch a little: the driver gives it
 * slices, and a short request does not wait for the end of a long kernel. Who hurries may as far as its part goes. */
#define LONG (2 * TURNS_MILLISECOND)
/* How far who runs in a lane may get ahead of the others, how long it keeps out of the way of what is to be measured,
 * and when it looks again. */
#define LANE_AHEAD (2 * TURNS_MILLISECOND)
#define QUIET (2 * TURNS_MILLISECOND)
#define LANE_LOOK (200 * TURNS_MICROSECOND)
#define FLOOR_PARTS 20 /* a share of a lower rank is owed one part in so many */
#define OWED UINT64_C(255)

static bool swap_turn(struct turns *turns, uint64_t seen, uint64_t wanted)
{
    return __atomic_compare_exchange_n(&turns->page->turn, &seen, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* ---- asking ---- */

static void begin_waiting(struct turns *turns, uint64_t now)
{
    if (turns->waits != 0)
        return;
    if (turns->horizon + TURNS_MILLISECOND < now) {
        neighbours_catch_up(turns, now);
        turns->woken = true;
        turns->visited = 0;
    }
    turns->waits = now != 0 ? now : 1;
}

/* A share of a lower rank that did not get its floor is of the highest for one turn. */
static void raise_rank(struct turns *turns, uint64_t now)
{
    if (turns->floor_due + FLOOR_PARTS * LEAST_TURN < now)
        turns->floor_due = now > FLOOR_PARTS * LEAST_TURN ? now - FLOOR_PARTS * LEAST_TURN : 0;
    if (turns->share.rank < OWED && turns->floor_due <= now && neighbours_outrank(turns, OWED, now))
        turns->share.rank = OWED;
}

static bool may_be_guest(struct turns *turns, uint64_t predicted, uint64_t word, uint64_t now)
{
    int holder = seats_of(word);
    if (predicted == 0 || seats_until(word) <= now + LONG || load(&turns->page->seats[holder].rank) > turns->share.rank)
        return false;
    uint64_t theirs = neighbours_virtual(turns, holder);
    if (turns->hurries && turns->virtual <= theirs)
        return true;
    return turns->woken && turns->visited + predicted <= QUANTUM / 2 &&
           turns->virtual <= theirs + seats_scaled(QUANTUM / 2, turns->share.weight);
}

/* In the lane no turn is taken, or who fills it would wait for who does not. Where nobody wants one the device is ours
 * anyway, and a turn costs nothing. */
static bool is_in_lane(struct turns *turns, uint64_t word, uint64_t now)
{
    return now < turns->lane_until && (!seats_free(turns, word, now) || turns_look(turns, now).waiting != 0);
}

/* Beside others as far as the own part goes; that is told by where the one is who is least ahead. */
static bool may_run_beside(struct turns *turns, uint64_t predicted, uint64_t word, uint64_t now)
{
    uint64_t least = turns_look(turns, now).least;
    int holder = seats_of(word);
    if (!seats_free(turns, word, now) && holder != turns->seat && neighbours_virtual(turns, holder) < least)
        least = neighbours_virtual(turns, holder);
    return predicted != 0 && !seats_recent(load(&turns->page->quiet), now, QUIET) &&
           (least == UINT64_MAX || turns->virtual <= least + seats_scaled(LANE_AHEAD, turns->share.weight));
}

static void say_waiting(struct turns *turns, uint64_t now)
{
    store(&turns->page->waited, now);
    if (turns->hurries)
        store(&turns->page->hurried, now);
}

static bool take(struct turns *turns, uint64_t word, uint64_t now)
{
    uint64_t mine = seats_word(now + TURNS_GRANT, turns->seat);
    int before = seats_of(word);
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

static enum turns_answer ask_of_holder(struct turns *turns, uint64_t predicted, uint64_t word, uint64_t now,
                                       uint64_t *look)
{
    uint64_t until = seats_until(word);
    if (may_be_guest(turns, predicted, word, now))
        return TURNS_GUEST;
    say_waiting(turns, now);
    *look = until < now + SEATS_HEARTBEAT ? until + 1 : now + SEATS_HEARTBEAT;
    return TURNS_WAIT;
}

static enum turns_answer ask_of_nobody(struct turns *turns, uint64_t word, uint64_t now, uint64_t *look)
{
    if (word != turns->free_word) {
        turns->free_word = word;
        turns->free_since = now;
    }
    bool mine_to_take = turns_look(turns, now).first || now >= turns->free_since + COURTESY;
    *look = mine_to_take ? now : turns->free_since + COURTESY;
    return mine_to_take && take(turns, word, now) ? TURNS_OURS : TURNS_WAIT;
}

enum turns_answer turns_ask(struct turns *turns, uint64_t predicted, uint64_t now, uint64_t *look)
{
    neighbours_add_siblings(turns, now);
    begin_waiting(turns, now);
    raise_rank(turns, now);
    *look = now + SEATS_HEARTBEAT;
    if (!turns_sit(turns, now))
        return TURNS_WAIT;
    uint64_t word = load(&turns->page->turn);
    if (turns->word != 0 && word == turns->word && seats_until(word) > now) {
        *look = seats_until(word) + 1;
        return turns->closing ? TURNS_WAIT : TURNS_OURS;
    }
    turns->word = 0;
    turns->closing = false;
    if (is_in_lane(turns, word, now)) {
        if (may_run_beside(turns, predicted, word, now))
            return TURNS_BESIDE;
        say_waiting(turns, now);
        *look = now + LANE_LOOK;
        return TURNS_WAIT;
    }
    if (!seats_free(turns, word, now) && seats_of(word) != turns->seat)
        return ask_of_holder(turns, predicted, word, now, look);
    return ask_of_nobody(turns, word, now, look);
}

void turns_run_beside(struct turns *turns, uint64_t until)
{
    turns->lane_until = until;
}

/* ---- having it ---- */

uint64_t turns_until(const struct turns *turns, uint64_t now)
{
    uint64_t word = turns->page != NULL ? load(&turns->page->turn) : 0;
    return word == 0 || seats_free(turns, word, now) ? 0 : seats_until(word);
}

bool turns_ours(const struct turns *turns)
{
    return turns->word != 0 && load(&turns->page->turn) == turns->word;
}

bool turns_renew(struct turns *turns, uint64_t horizon, uint64_t until, uint64_t now)
{
    uint64_t wanted = turns->closing ? turns->word : seats_word(until, turns->seat);
    turns->looked = now;
    store(&turns->page->seats[turns->seat].looked, now);
    turns_announce(turns, horizon);
    if (turns->word == 0 || !(wanted != turns->word ? swap_turn(turns, turns->word, wanted) : turns_ours(turns))) {
        turns->word = 0;
        return false;
    }
    turns->word = wanted;
    return true;
}

int turns_pass(struct turns *turns, uint64_t now)
{
    struct turns_others others = turns_look(turns, now);
    turns_announce(turns, now);
    bool freed = turns->word != 0 && swap_turn(turns, turns->word, seats_word(now, TURNS_NO_SEAT));
    turns->word = 0;
    turns->closing = false;
    return freed ? others.next : TURNS_NO_SEAT;
}

int turns_close(struct turns *turns, uint64_t until, uint64_t now)
{
    struct turns_others others = turns_look(turns, now);
    uint64_t word = seats_word(until, turns->seat);
    if (turns->word == 0 || !swap_turn(turns, turns->word, word))
        return TURNS_NO_SEAT;
    turns->word = word;
    turns->closing = true;
    return others.next;
}

static uint64_t least_turn(const struct turns *turns, const struct turns_others *others)
{
    if (turns->hurries && others->calm)
        return 0; /* it has little to do at a time, and neighbours that have much */
    return others->hurried ? LEAST_HURRIED : LEAST_TURN;
}

/* Up to where the turn goes on; below the own place: not even so far. */
static uint64_t mark(const struct turns *turns, const struct turns_others *others)
{
    uint64_t ahead = turns->hurries || others->hurried ? 0 : seats_scaled(QUANTUM, turns->share.weight);
    return add_capped(others->least, ahead);
}

static bool must_yield(const struct turns *turns, const struct turns_others *others)
{
    return others->higher || turns->share.rank == OWED;
}

uint64_t turns_left(const struct turns *turns, const struct turns_others *others)
{
    if (others->waiting == 0 || (others->least == UINT64_MAX && !must_yield(turns, others)))
        return UINT64_MAX;
    uint64_t least = least_turn(turns, others), until = must_yield(turns, others) ? 0 : mark(turns, others);
    uint64_t left = least > turns->used ? least - turns->used : 0;
    uint64_t ahead = until > turns->virtual ? (until - turns->virtual) / 1000 * turns->share.weight : 0;
    return left > ahead ? left : ahead;
}

bool turns_over(const struct turns *turns, const struct turns_others *others, uint64_t predicted)
{
    if (others->waiting == 0 || turns->used == 0 || turns->used + predicted <= least_turn(turns, others))
        return false;
    if (must_yield(turns, others))
        return true;
    return others->least != UINT64_MAX && turns->virtual > mark(turns, others);
}

void turns_want_quiet(struct turns *turns, uint64_t now)
{
    store(&turns->page->quiet, now);
}
