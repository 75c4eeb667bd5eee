/* The engines of a device in model time: which operation each works on, and when it is done.
 *
 * Pure functions of the model. One compute engine, which holds one process's context at a time: it keeps it
 * while that process has work and its slice lasts, and the slice is renewed while nobody else has work. At
 * the end of a slice a kernel is preempted where it stands and goes on in its process's next slice. Within a
 * process, operations go to an engine in the order in which they were submitted, as far as what they follow
 * has ended. A copy engine takes what was submitted first, whoever it is of: copies are short and no card
 * slices them. */
#include "model_layout.h"

enum { FIRST_COPY_ENGINE = SG_ENGINE_COPY_IN, COPY_ENGINES = 2 };

bool sg_model_has_ended(const sg_model *model, const sg_member *member, uint64_t sequence) {
    const sg_pending *operation = sg_model_operation(model, member, sequence);
    return operation == NULL || operation->ended != 0;
}

bool sg_model_shared_ended(const sg_model *model, const sg_shared_end *end) {
    for (uint32_t i = 0; i < model->member_count && end->sequence != 0; i++) {
        const sg_member *member = &model->members[i];
        if (member->slot == end->slot && ((member->incarnation ^ end->incarnation) & SG_INCARNATION_MASK) == 0)
            return sg_model_has_ended(model, member, end->sequence);
    }
    return true;
}

static bool is_ready(const sg_model *model, const sg_member *member, const sg_pending *operation) {
    return !operation->ended && sg_model_has_ended(model, member, operation->after[0]) &&
           sg_model_has_ended(model, member, operation->after[1]) &&
           sg_model_shared_ended(model, &operation->beyond);
}

/* The sequence number of the first operation that this engine could begin with; 0 none. */
static uint64_t first_ready(const sg_model *model, const sg_member *member, uint32_t engine) {
    for (uint32_t i = member->head; i < member->count; i++) {
        const sg_pending *operation = &model->pending[member->begin + i];
        if (operation->engine == engine && is_ready(model, member, operation))
            return member->first + i;
    }
    return 0;
}

static void end_operation(sg_model *model, sg_member *member, sg_pending *operation) {
    operation->ended = 1;
    operation->ended_ns = model->now_ns;
    while (member->head < member->count && model->pending[member->begin + member->head].ended)
        member->head++;
}

/* Whether one that others may follow ended after one of theirs was looked at. */
static bool end_joins_once(sg_model *model) {
    bool follows_others = false, again = false;
    for (uint32_t m = 0; m < model->member_count; m++) {
        sg_member *member = &model->members[m];
        for (uint32_t i = member->head; i < member->count; i++) {
            sg_pending *operation = &model->pending[member->begin + i];
            bool ends = operation->engine == SG_ENGINE_NONE && is_ready(model, member, operation);
            if (ends)
                end_operation(model, member, operation);
            again = again || (ends && follows_others);
            follows_others = follows_others || (!operation->ended && operation->beyond.sequence != 0);
        }
    }
    return again;
}

/* In order: an operation follows only earlier ones of its process, so one pass ends all that can end, but for
 * what follows another process. Nothing follows itself: what is followed was there before. */
void sg_model_end_joins(sg_model *model) {
    while (end_joins_once(model))
        ;
}

/* ---- the compute engine ---- */

/* The next in turn after the holder that has work; SG_NOBODY where nobody else has. */
static int next_with_work(const sg_model *model) {
    int count = (int)model->member_count;
    for (int k = 1; k <= count; k++) {
        int i = (model->holder + k) % count;
        if (i != model->holder && first_ready(model, &model->members[i], SG_ENGINE_COMPUTE) != 0)
            return i;
    }
    return SG_NOBODY;
}

static void hand_over(sg_model *model, const sg_facts *facts, int to, uint64_t cost_ns) {
    model->switches += model->holder != SG_NOBODY;
    model->holder = to;
    model->running = 0;
    model->switch_end_ns = model->now_ns + cost_ns;
    model->slice_end_ns = model->switch_end_ns + (uint64_t)facts->time_slice_ns;
}

/* True where the holder changed: it may begin at once. */
static bool end_slice(sg_model *model, const sg_facts *facts) {
    int other = next_with_work(model);
    if (other == SG_NOBODY) {
        model->slice_end_ns = model->now_ns + (uint64_t)facts->time_slice_ns;
        return false;
    }
    model->preemptions += model->running != 0;
    hand_over(model, facts, other, (uint64_t)(model->running != 0 ? facts->preemption_ns : facts->switch_ns));
    return true;
}

static void choose_kernel(sg_model *model, const sg_facts *facts) {
    bool again = model->member_count > 0;
    while (again && model->now_ns >= model->switch_end_ns) {
        uint64_t next = model->running;
        if (next == 0 && model->holder != SG_NOBODY)
            next = first_ready(model, &model->members[model->holder], SG_ENGINE_COMPUTE);
        if (next == 0) {
            int other = next_with_work(model);
            again = other != SG_NOBODY;
            if (again)
                hand_over(model, facts, other, model->holder == SG_NOBODY ? 0 : (uint64_t)facts->switch_ns);
        } else {
            again = model->now_ns >= model->slice_end_ns && end_slice(model, facts);
            if (!again)
                model->running = next;
        }
    }
}

/* ---- the copy engines ---- */

static void choose_copy(sg_model *model, unsigned which) {
    uint64_t earliest = SG_FOREVER;
    if (model->copying[which] != 0)
        return;
    for (uint32_t m = 0; m < model->member_count; m++) {
        const sg_member *member = &model->members[m];
        uint64_t sequence = first_ready(model, member, FIRST_COPY_ENGINE + which);
        if (sequence == 0 || sg_model_operation(model, member, sequence)->submitted_ns >= earliest)
            continue;
        earliest = sg_model_operation(model, member, sequence)->submitted_ns;
        model->copier[which] = (int32_t)m;
        model->copying[which] = sequence;
    }
}

void sg_model_settle(sg_model *model, const sg_facts *facts) {
    sg_model_end_joins(model);
    choose_kernel(model, facts);
    for (unsigned e = 0; e < COPY_ENGINES; e++)
        choose_copy(model, e);
}

/* ---- time passes ---- */

static sg_pending *kernel_now(const sg_model *model) {
    if (model->holder == SG_NOBODY || model->running == 0 || model->now_ns < model->switch_end_ns)
        return NULL;
    return sg_model_operation(model, &model->members[model->holder], model->running);
}

static sg_pending *copy_now(const sg_model *model, unsigned which) {
    if (model->copying[which] == 0 || model->copier[which] == SG_NOBODY)
        return NULL;
    return sg_model_operation(model, &model->members[model->copier[which]], model->copying[which]);
}

static uint64_t end_of(const sg_model *model, const sg_pending *operation) {
    return operation == NULL || operation->left_ns > SG_FOREVER - 1 - model->now_ns
               ? SG_FOREVER
               : model->now_ns + operation->left_ns;
}

/* Two kernels that never end would hand the device to and fro without end: a change of hands counts only
 * where somebody comes to an end by it. */
static bool slice_matters(const sg_model *model, const sg_pending *kernel) {
    int other = next_with_work(model);
    if (other == SG_NOBODY)
        return false;
    if (kernel->left_ns != SG_FOREVER)
        return true;
    for (uint32_t m = 0; m < model->member_count; m++) {
        uint64_t sequence = first_ready(model, &model->members[m], SG_ENGINE_COMPUTE);
        if (sequence != 0 && sg_model_operation(model, &model->members[m], sequence)->left_ns != SG_FOREVER)
            return true;
    }
    return false;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t sg_model_next_ns(const sg_model *model) {
    uint64_t next = SG_FOREVER;
    const sg_pending *kernel = kernel_now(model);
    if (model->now_ns < model->switch_end_ns)
        next = model->switch_end_ns;
    else if (kernel != NULL)
        next = earlier(end_of(model, kernel), slice_matters(model, kernel) ? model->slice_end_ns : SG_FOREVER);
    for (unsigned e = 0; e < COPY_ENGINES; e++)
        next = earlier(next, end_of(model, copy_now(model, e)));
    return next > model->now_ns ? next : model->now_ns;
}

static bool work_on(sg_pending *operation, uint64_t ns) {
    if (operation->left_ns != SG_FOREVER)
        operation->left_ns -= earlier(operation->left_ns, ns);
    return operation->left_ns == 0;
}

static void run_kernel(sg_model *model, uint64_t to_ns) {
    sg_pending *kernel = kernel_now(model);
    if (kernel == NULL) {
        if (model->now_ns < model->switch_end_ns)
            model->switching_ns += earlier(to_ns, model->switch_end_ns) - model->now_ns;
        return;
    }
    sg_member *member = &model->members[model->holder];
    uint64_t ns = earlier(to_ns, end_of(model, kernel)) - model->now_ns;
    sg_recent_add(&model->recent, model->now_ns, model->now_ns + ns);
    sg_recent_add(&member->recent, model->now_ns, model->now_ns + ns);
    model->compute_ns += ns;
    member->ledger.compute_ns += ns;
}

/* Not past the next change, but for the engines that stand still. */
static void advance_once(sg_model *model, uint64_t to_ns) {
    uint64_t ns = to_ns - model->now_ns;
    sg_pending *kernel = kernel_now(model), *copies[COPY_ENGINES] = {copy_now(model, 0), copy_now(model, 1)};
    run_kernel(model, to_ns);
    model->now_ns = to_ns;
    if (kernel != NULL && work_on(kernel, ns)) {
        sg_member *member = &model->members[model->holder];
        member->ledger.kernels++;
        member->ledger.bytes += kernel->bytes;
        end_operation(model, member, kernel);
        model->running = 0;
    }
    for (unsigned e = 0; e < COPY_ENGINES; e++) {
        if (copies[e] == NULL)
            continue;
        sg_member *member = &model->members[model->copier[e]];
        member->ledger.copy_ns += ns;
        if (!work_on(copies[e], ns))
            continue;
        member->ledger.copies++;
        member->ledger.copied += copies[e]->bytes;
        end_operation(model, member, copies[e]);
        model->copying[e] = 0;
    }
}

/* What somebody wrote into the model who should not have must not keep us for ever. */
enum { MOST_CHANGES = 1000000 };

void sg_model_advance(sg_model *model, const sg_facts *facts, uint64_t to_ns) {
    sg_model_settle(model, facts);
    for (int i = 0; i < MOST_CHANGES && model->now_ns < to_ns; i++) {
        advance_once(model, earlier(to_ns, sg_model_next_ns(model)));
        sg_model_settle(model, facts);
    }
    if (model->now_ns < to_ns)
        model->now_ns = to_ns;
}
