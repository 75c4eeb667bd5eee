/* Whose turn it is on a device: the decisions of one process, over a page that all its neighbours map.
 *
 * Pure but for that page: no clock, no thread, no call of a driver; `now` comes in, on the device's clock.
 *
 * A turn is a lease of time. Who has it says until when its work should last, and renews that while it
 * looks; when the time is over, whoever waits takes the turn, alive or dead as the holder may be. So no
 * helper thread is needed in the tenant, and a process that was killed or stopped costs what it had
 * announced and no more. Among those who wait, the one goes first whose share was charged least for its
 * part of the device (`virtual`), and it goes on until it is ahead of the next by a quantum.
 *
 * Three run beside who has the turn: a guest, who comes back to work beside a long kernel; who feeds the device
 * too slowly to fill a turn of its own (a lane); and whoever waits, where the holder's work is about to end.
 *
 * Every tenant of the device can write to the page. Nothing in it is an index, a length or a pointer; a
 * time that cannot be is no time; the own seat is written anew at each look. Nonsense costs order, which
 * admission.c bounds, never memory.
 *
 * turns.c asks, has and gives up; seats.c is the own seat and the words of the page; neighbours.c reads the
 * others' seats. */
#ifndef GOVERNOR_TURNS_H
#define GOVERNOR_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "aliquot_abi.h"

#define TURNS_MICROSECOND UINT64_C(1000)
#define TURNS_MILLISECOND UINT64_C(1000000)

enum { TURNS_NO_SEAT = -1 };

/* What the limits file says of this share, at this moment. */
struct turns_share {
    uint64_t id;       /* of the lease, never 0 */
    uint32_t weight;   /* thousandths, at least 1 */
    uint64_t rank;
};

struct turns {
    aliquot_turns *page; /* NULL: no turns on this device */
    struct turns_share share;
    uint64_t owner;      /* our number, never 0 */
    int seat;            /* or TURNS_NO_SEAT */
    uint64_t word;       /* the turn as we last wrote it; 0: not ours */
    bool closing;        /* it is promised to whoever waits, from the moment in `word` on */
    bool hurries;        /* our program waits for little work at a time */
    uint64_t lane_until; /* we run beside others' turns, and have none of our own */
    uint64_t virtual;    /* of our share */
    uint64_t charged;    /* to this process */
    uint64_t used;       /* charged to this turn */
    uint64_t waits;      /* since when we do; 0 */
    uint64_t looked;
    uint64_t horizon;
    uint64_t taken;      /* how often the turn came to us from another, or from nobody */
    uint64_t free_word;  /* a turn that we saw free, */
    uint64_t free_since; /* and since when */
    bool woken;          /* back after a time without work, and has had no turn since, */
    uint64_t visited;    /* and was charged so much as a guest */
    uint64_t floor_due;  /* when a share of a lower rank is owed a turn */
    uint64_t seen_owner[ALIQUOT_SEATS_MAX];   /* of neighbours: who sat there, */
    uint64_t seen_virtual[ALIQUOT_SEATS_MAX]; /* how far it was, which never goes back, */
    uint64_t seen_charged[ALIQUOT_SEATS_MAX]; /* what it was charged, */
    uint32_t seen_weight[ALIQUOT_SEATS_MAX];  /* and by which part */
};

/* Who stands where among those who wait, seen from us. */
struct turns_others {
    unsigned waiting;      /* of other shares or processes */
    bool first;            /* nobody who waits goes before us */
    bool higher;           /* somebody of a higher rank waits */
    bool hurried;          /* somebody waits who hurries, */
    bool calm;             /* and somebody who does not */
    uint64_t least;        /* of those of our rank or higher: how far the one is who is least ahead */
    int next;              /* who that is; or TURNS_NO_SEAT */
};

/* Begin; `page` NULL: none. `owner` is a number that no other process drew. */
void turns_begin(struct turns *turns, aliquot_turns *page, uint64_t owner);

/* Begin anew, knowing nothing of the neighbours and owed nothing: what we knew was of no use. */
void turns_forget(struct turns *turns);

/* Before the page is looked at: where a tenant has cut the file short, a touch would end this process. Then there is
 * none any more. Kernels before 5.14 cannot be asked. */
void turns_mind_page(struct turns *turns);

/* What the limits say now. Where the weight is another, a lead stays what it is in time, for at a tenth of the
 * weight it would else count tenfold; a debt as well, but it shrinks with the weight. */
void turns_weigh(struct turns *turns, struct turns_share share, uint64_t now);

/* Take a seat or find the own one, write it anew. False: none is free. */
bool turns_sit(struct turns *turns, uint64_t now);

/* ---- asking ---- */

enum turns_answer {
    TURNS_WAIT,   /* look again at `*look` at the latest, or when the own seat's futex changes */
    TURNS_OURS,   /* until it is renewed at the latest at `now` + TURNS_GRANT */
    TURNS_GUEST,  /* launch a little beside long work of who has it, and go on waiting */
    TURNS_BESIDE, /* launch beside whoever has it: the lane */
};
/* Ask for the turn, for a launch that should take `predicted` (0: not known). */
enum turns_answer turns_ask(struct turns *turns, uint64_t predicted, uint64_t now, uint64_t *look);
/* No longer waiting: the launch was made, or is made out of turn. A guest goes on waiting until its work has ended,
 * or who has the turn would keep it. */
void turns_stop_waiting(struct turns *turns);
/* From now on until then we run beside others: we cannot fill a turn. */
void turns_run_beside(struct turns *turns, uint64_t until);

/* ---- having it ---- */

/* Until when somebody's turn has been announced to last; 0 where nobody's is. */
uint64_t turns_until(const struct turns *turns, uint64_t now);
/* Whether the turn is still ours. */
bool turns_ours(const struct turns *turns);
/* It is ours for as long as what was launched should last, `horizon`, and a little longer. False: lost. */
bool turns_renew(struct turns *turns, uint64_t horizon, uint64_t until, uint64_t now);
/* It is free. The seat to wake, or TURNS_NO_SEAT. */
int turns_pass(struct turns *turns, uint64_t now);
/* It will be free at `until`, and we launch nothing more: who waits need not wait for our word then. The same. */
int turns_close(struct turns *turns, uint64_t until, uint64_t now);

/* How much more may be launched in this turn beside those who wait; UINT64_MAX: no end. */
uint64_t turns_left(const struct turns *turns, const struct turns_others *others);
/* Whether the turn has gone on long enough for those who wait, before a launch of `predicted`. */
bool turns_over(const struct turns *turns, const struct turns_others *others, uint64_t predicted);

/* ---- the neighbours ---- */

struct turns_others turns_look(struct turns *turns, uint64_t now);
/* Whether anybody has waited within `span` before `now`; anybody who hurries. */
bool turns_contended(const struct turns *turns, uint64_t now, uint64_t span);
bool turns_hurried(const struct turns *turns, uint64_t now, uint64_t span);
/* Until when neighbours have said that work of their own may still be under way; 0: nobody did. */
uint64_t turns_beside(const struct turns *turns, uint64_t now);
/* Nobody is to run beside what we launch now: it is to be measured. */
void turns_want_quiet(struct turns *turns, uint64_t now);
/* What all others were charged in total: differences of it tell what they had meanwhile. */
uint64_t turns_charged_to_others(const struct turns *turns);
/* Changes when anybody gets on: takes or renews the turn, or is charged. */
uint64_t turns_progress(const struct turns *turns);

/* ---- the own account ---- */

/* `ns` more (or less) of the device's time to our share. */
void turns_charge(struct turns *turns, int64_t ns);
/* For `ns` the device did nothing, in our turn: that is on us, though it is no device time. */
void turns_idled(struct turns *turns, uint64_t ns);
/* Work of ours that was launched out of turn may be under way until `horizon`. */
void turns_announce(struct turns *turns, uint64_t horizon);

enum {
    TURNS_GRANT = 200000,    /* ns that a turn lasts before its holder has said more */
    TURNS_LINGER = 100000,   /* ns that a holder keeps it after its work has ended */
};

#endif
