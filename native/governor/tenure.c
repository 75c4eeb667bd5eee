/* The turn, once it is ours: how long it lasts, and when it ends. */
#include "gates.h"

#include "clock.h"

/* A program whose launches lie further apart than this gives its turn away in between. */
#define THINKS (60 * MICROSECOND)
/* Who waits may begin so long before the end of what is queued: it has to wake up, and the device never waits for it. */
#define EARLY (80 * MICROSECOND)

/* Shorter work is not delayed by more than its turn has room for. */
#define DELAYED (2 * MILLISECOND)
#define MOST_DELAY (1000 * MILLISECOND)

static void wake_seat(struct gate *gate, int seat)
{
    if (seat != TURNS_NO_SEAT)
        clock_wake(&gate->turns.page->seats[seat].wake);
}

void tenure_pass(struct gate *gate, uint64_t now)
{
    wake_seat(gate, turns_pass(&gate->turns, now));
}

bool tenure_close(struct gate *gate, uint64_t now)
{
    uint64_t until = gate->batches.horizon > now + EARLY ? gate->batches.horizon - EARLY : now;
    if (gate->turns.closing)
        return true;
    if (!charges_foresee(gate))
        return false;
    turns_announce(&gate->turns, gate->batches.horizon);
    wake_seat(gate, turns_close(&gate->turns, until, now));
    return true;
}

/* How much later long work ends for what others had meanwhile: guests, and who runs in a lane. */
static uint64_t delay(const struct gate *gate)
{
    const struct batch *oldest = gate_oldest(gate);
    if (oldest == NULL || !oldest->solo || oldest->predicted < DELAYED)
        return 0;
    uint64_t others = turns_charged_to_others(&gate->turns) - oldest->others;
    return others < MOST_DELAY ? others : 0;
}

/* While what was launched is late, the turn lasts for as long as we look, but not for ever: it may be waiting for work
 * of a neighbour. */
void tenure_renew(struct gate *gate, uint64_t now, uint64_t more)
{
    uint64_t later = delay(gate);
    uint64_t horizon = gate->batches.horizon + later > now ? gate->batches.horizon + later : now;
    const struct batch *oldest = gate_oldest(gate);
    if (oldest != NULL && now > oldest->due_ns + later + STUCK)
        return;
    if (oldest != NULL && horizon < now + 50 * MICROSECOND)
        horizon = now + 50 * MICROSECOND;
    turns_renew(&gate->turns, horizon + more + (oldest != NULL && !oldest->known ? STUCK : 0),
                horizon + more + TURNS_LINGER, now);
}

static bool is_done(const struct gate *gate, const struct turns_others *others, uint64_t next)
{
    return others->waiting != 0 && (gate->thinking > THINKS || turns_over(&gate->turns, others, next));
}

void tenure_before_wait(struct gate *gate, uint64_t now)
{
    const struct batch *oldest = gate_oldest(gate);
    if (gate->turns.page == NULL || oldest == NULL || !turns_ours(&gate->turns))
        return;
    struct turns_others others = turns_look(&gate->turns, now);
    if (is_done(gate, &others, oldest->predicted))
        tenure_close(gate, now);
}

void tenure_settle(struct gate *gate, uint64_t now)
{
    if (gate->turns.page == NULL || !turns_ours(&gate->turns))
        return;
    struct turns_others others = turns_look(&gate->turns, now);
    if (gate->batches.count == 0 && (gate->turns.closing || is_done(gate, &others, 0)))
        tenure_pass(gate, now);
    else
        tenure_renew(gate, now, 0);
}

void tenure_idled(struct gate *gate, uint64_t now)
{
    if (gate->batches.count != 0 || gate->drained_ns == 0 || now <= gate->drained_ns)
        return;
    uint64_t gap = now - gate->drained_ns;
    gate->thinking = (gate->thinking * 3 + gap) / 4;
    if (gate->turns.page != NULL && turns_ours(&gate->turns) && gate->turns.used != 0 && gap <= TURNS_LINGER &&
        turns_contended(&gate->turns, now, CALM))
        turns_idled(&gate->turns, gap);
}
