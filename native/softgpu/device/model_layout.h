/* The model of a device, as it lies in `state`. Only device/ includes this.
 *
 * It has no lock. Every process has two areas of its own. Whoever changes something takes a private copy of
 * the area that is published, changes that, writes it into the one of its own areas that is not published,
 * and publishes it by compare-and-swap of one word; where somebody else was faster it begins anew. So a kill
 * leaves the last published model as it was, and who is stopped in the middle finds, when it goes on, that
 * its swap fails. What is read is made plausible first (sg_model_copy_in): every tenant can write here. */
#ifndef SG_MODEL_LAYOUT_H
#define SG_MODEL_LAYOUT_H

#include "layout.h"
#include "model.h"

enum { SG_MODEL_MEMBERS = SG_MODEL_SLOTS, SG_MODEL_PENDING = 256, SG_MODEL_THREADS = 128, SG_MODEL_PAST = 32 };
enum { SG_MODEL_AREAS = 2 * SG_MODEL_MEMBERS };
#define SG_NOBODY (-1)
/* What a virtual clock says at first: 0 means never. */
#define SG_MODEL_BEGIN_NS UINT64_C(1000000000)

typedef struct {
    uint64_t after[2]; /* sequence numbers of the same process; 0 none */
    sg_shared_end beyond; /* of another */
    uint64_t submitted_ns;
    uint64_t left_ns;
    uint64_t ended_ns;
    uint64_t bytes;
    uint32_t engine;
    uint32_t ended;
} sg_pending;

typedef struct {
    int32_t pid;
    uint32_t unused;
    uint64_t pid_namespace, start_ticks;
    uint64_t compute_ns, copy_ns, kernels, copies, bytes, copied;
    char name[64];
} sg_ledger;

/* A process. Its pending operations are numbered without a gap from `first`. */
typedef struct {
    uint32_t slot;
    uint32_t order; /* who goes first where nothing else decides */
    uint64_t incarnation;
    uint64_t first;
    uint32_t begin, count; /* in sg_model.pending */
    uint32_t head;         /* the operations before it have ended */
    uint32_t unused;
    sg_ledger ledger;
    sg_recent recent;
} sg_member;

typedef enum {
    SG_THREAD_RUNS, SG_THREAD_WAITS_END, SG_THREAD_WAITS_TIME, SG_THREAD_ABSENT, SG_THREAD_WAITS_SIGNAL
} sg_thread_state;

typedef struct {
    uint32_t member; /* index */
    uint32_t state;
    uint64_t thread; /* its own number for itself */
    uint64_t until;  /* a sequence number, nanoseconds, or the key of a signal */
} sg_thread;

typedef struct {
    uint64_t now_ns;
    int32_t holder;    /* of the compute engine: whose context is loaded; an index, or SG_NOBODY */
    int32_t copier[2]; /* of the copy engines */
    uint32_t unused;
    uint64_t running;  /* on the compute engine, a sequence number; 0 none */
    uint64_t copying[2];
    uint64_t slice_end_ns, switch_end_ns;
    uint64_t compute_ns, switching_ns, switches, preemptions;
    uint64_t arrived; /* of a scripted arrival: a bit for each place */
    uint32_t party;   /* how many are to arrive before time begins */
    uint32_t member_count, thread_count, past_count;
    sg_recent recent;
    sg_thread threads[SG_MODEL_THREADS];
    sg_ledger past[SG_MODEL_PAST]; /* processes that left, the last ones */
    sg_member members[SG_MODEL_MEMBERS];
    sg_pending pending[SG_MODEL_MEMBERS * SG_MODEL_PENDING];
} sg_model;

/* ---- engines.c: pure functions of the model ---- */

/* Joins end that can; no engine begins with anything. */
void sg_model_end_joins(sg_model *model);
/* What can begin or end at this very moment does. */
void sg_model_settle(sg_model *model, const sg_facts *facts);
/* The next moment at which something changes by itself; SG_FOREVER: never. */
uint64_t sg_model_next_ns(const sg_model *model);
void sg_model_advance(sg_model *model, const sg_facts *facts, uint64_t to_ns);
bool sg_model_has_ended(const sg_model *model, const sg_member *member, uint64_t sequence);
/* Who is no more part of it has nothing that others have to wait for. */
bool sg_model_shared_ended(const sg_model *model, const sg_shared_end *end);
static inline sg_pending *sg_model_operation(const sg_model *model, const sg_member *member, uint64_t sequence) {
    uint64_t index = sequence - member->first;
    return sequence < member->first || index >= member->count
               ? NULL
               : (sg_pending *)&model->pending[member->begin + index];
}

/* ---- members.c ---- */

int sg_model_find(const sg_model *model, uint32_t slot, uint64_t incarnation);
/* Its index; SG_NOBODY where there is no room. */
int sg_model_admit(sg_model *model, const sg_member *member);
void sg_model_dismiss(sg_model *model, int index);
sg_thread *sg_model_thread(sg_model *model, uint32_t member, uint64_t thread);
sg_thread *sg_model_add_thread(sg_model *model, uint32_t member, uint64_t thread);
void sg_model_remove_thread(sg_model *model, sg_thread *thread);

/* Whose slot is still its own. */
bool sg_member_alive(const sg_device *device, const sg_member *member);

/* ---- publishing.c ---- */

/* A private copy; false where it changed meanwhile. `mine` is laid out last. */
bool sg_model_copy_in(const sg_device *device, uint64_t published, sg_model *copy, int64_t mine_slot);
uint64_t sg_model_published(const sg_device *device);
/* The clock alone, of the published model. */
uint64_t sg_model_published_ns(const sg_device *device);
/* False: somebody was faster. */
bool sg_model_publish(sg_device *device, const sg_model *model, uint64_t *published);
int sg_model_prepare(sg_device *device);
size_t sg_model_file_bytes(const sg_facts *facts);

/* ---- clock.c ---- */

/* Let time pass, as far as nobody who runs is left behind. Slots to wake are marked. */
void sg_model_let_pass(sg_model *model, const sg_facts *facts, bool *wake);
/* A look at the model as it is now, for who only reads. malloc'd; NULL without memory. */
sg_model *sg_model_look(sg_device *device);

#endif
