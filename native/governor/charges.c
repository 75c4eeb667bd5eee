/* What work is charged: by what was predicted when it is launched, by what it took when it has ended. */
#include "gates.h"

#include "bucket.h"
#include "ledger.h"
#include "measure.h"

/* A program that waited for its work in the last so much is not launch-bound, whatever its pace. */
#define WAITED_LATELY (20 * MILLISECOND)
/* Nobody is charged so much between two looks. */
#define MUCH (100000 * MILLISECOND)
/* What is longer is waited for: it may take much more than it should. */
#define FORESEEN_LONGEST (6 * MILLISECOND)

void charges_spend(struct gate *gate, int64_t ns, uint64_t now)
{
    turns_charge(&gate->turns, ns);
    bucket_spend(&share.ledger->devices[gate->device].ready, ns, gate->share.weight, now);
    bucket_spend(&gate->own_ready, ns, gate->share.weight, now);
    gate->since_wait += ns > 0 ? (uint64_t)ns : 0;
}

void charges_close_batch(struct gate *gate, uint64_t now)
{
    uint64_t joined = batches_close(&gate->batches, now);
    if (joined != 0)
        charges_spend(gate, (int64_t)joined, now);
}

static bool was_disturbed(const struct gate *gate, const struct batch *batch, uint64_t others, uint64_t now)
{
    if (gate->turns.page == NULL)
        return false;
    return batch->disturbed || batch->taken != gate->turns.taken || (!turns_ours(&gate->turns) && others != 0) ||
           turns_beside(&gate->turns, now) > now;
}

static void note(uint32_t *usual, uint32_t now)
{
    *usual = (*usual * 7 + now) / 8;
}

static void learn_of_program(struct gate *gate, const struct measure *measure, const struct verdict *verdict)
{
    if (measure->known && !measure->solo && measure->launches > 2)
        note(&gate->pace, measure->issuing > measure->predicted ? 256 : 0);
    if (!measure->known || measure->disturbed || !verdict->exact)
        return;
    uint64_t off = measure->span > measure->predicted ? measure->span - measure->predicted
                                                      : measure->predicted - measure->span;
    off = measure->predicted != 0 ? off * 256 / measure->predicted : 256;
    note(&gate->surprise, off < 1024 ? (uint32_t)off : 1024);
}

static void judge(struct gate *gate, const struct batch *batch, uint64_t span, bool measured, uint64_t now)
{
    uint64_t others = gate->turns.page != NULL ? turns_charged_to_others(&gate->turns) - batch->others : 0;
    others = others < MUCH ? others : 0; /* it was charged back to them */
    struct measure measure = {
        .span = span,
        .predicted = batch->predicted,
        .issuing = batch->closed_ns - batch->opened_ns,
        .others = others,
        .lead = batch->lead,
        .launches = batch->launches,
        .measured = measured,
        .known = batch->known,
        .solo = batch->solo,
        .first = batch->first,
        .disturbed = was_disturbed(gate, batch, others, now),
    };
    struct verdict verdict = measure_judge(&measure);
    if (verdict.learn)
        estimate_learn(batch->shape, verdict.charge, verdict.rough);
    if (verdict.drift)
        estimate_drift(&gate->ratio, verdict.charge, batch->predicted);
    learn_of_program(gate, &measure, &verdict);
    charges_spend(gate, (int64_t)verdict.charge - (int64_t)batch->predicted, now);
    ledger_computed(gate->device, verdict.charge);
}

void charges_reap(struct gate *gate, uint64_t now)
{
    struct batch *oldest;
    uint64_t span;
    bool any = false;
    for (;;) {
        enum batch_state state = batches_oldest(&gate->batches, &oldest, &span, atomic_load(&gate_captures) == 0);
        if (state == BATCH_NONE || state == BATCH_RUNS || (state == BATCH_LOST && now < oldest->due_ns))
            break;
        judge(gate, oldest, span, state == BATCH_ENDED, now);
        batches_drop(&gate->batches, oldest, now);
        any = true;
    }
    if (any && gate->batches.count == 0) {
        gate->drained_ns = now;
        turns_announce(&gate->turns, now);
        turns_stop_waiting(&gate->turns);
    }
}

bool charges_foresee(const struct gate *gate)
{
    for (unsigned at = 0; at < gate->batches.count; at++) {
        const struct batch *batch = &gate->batches.ring[(gate->batches.first + at) % BATCHES_MAX];
        if (!batch->known || batch->predicted > FORESEEN_LONGEST)
            return false;
    }
    return gate->surprise < 64;
}

bool charges_launch_bound(const struct gate *gate, uint64_t now)
{
    return gate->pace > 128 && gate->waited_ns + WAITED_LATELY < now && gate->share.policy == POLICY_FAIR;
}
