/* Who takes part in a model: processes, and the threads of theirs that use the device. */
#include <string.h>

#include "model_layout.h"

int sg_model_find(const sg_model *model, uint32_t slot, uint64_t incarnation) {
    for (uint32_t i = 0; i < model->member_count; i++)
        if (model->members[i].slot == slot && model->members[i].incarnation == incarnation)
            return (int)i;
    return SG_NOBODY;
}

/* Indices from `from` on are now one more or less. */
static void renumber(sg_model *model, int from, int by) {
    if (model->holder >= from)
        model->holder += by;
    for (int e = 0; e < 2; e++)
        if (model->copier[e] >= from)
            model->copier[e] += by;
    for (uint32_t i = 0; i < model->thread_count; i++)
        if ((int)model->threads[i].member >= from)
            model->threads[i].member = (uint32_t)((int)model->threads[i].member + by);
}

static bool goes_before(const sg_member *a, const sg_member *b) {
    return a->order != b->order ? a->order < b->order : a->slot < b->slot;
}

int sg_model_admit(sg_model *model, const sg_member *member) {
    uint32_t at = 0, end = 0;
    if (model->member_count == SG_MODEL_MEMBERS)
        return SG_NOBODY;
    for (uint32_t i = 0; i < model->member_count; i++) {
        at += goes_before(&model->members[i], member);
        if (model->members[i].begin + model->members[i].count > end)
            end = model->members[i].begin + model->members[i].count;
    }
    memmove(&model->members[at + 1], &model->members[at], (model->member_count - at) * sizeof *model->members);
    model->members[at] = *member;
    model->members[at].begin = end;
    model->members[at].count = model->members[at].head = 0;
    model->member_count++;
    renumber(model, (int)at, 1);
    return (int)at;
}

void sg_model_dismiss(sg_model *model, int index) {
    model->past[model->past_count++ % SG_MODEL_PAST] = model->members[index].ledger;
    for (uint32_t i = 0; i < model->thread_count;)
        if ((int)model->threads[i].member == index)
            sg_model_remove_thread(model, &model->threads[i]);
        else
            i++;
    if (model->holder == index) {
        model->holder = SG_NOBODY;
        model->running = 0;
    }
    for (int e = 0; e < 2; e++)
        if (model->copier[e] == index) {
            model->copier[e] = SG_NOBODY;
            model->copying[e] = 0;
        }
    model->member_count--;
    memmove(&model->members[index], &model->members[index + 1],
            (model->member_count - (uint32_t)index) * sizeof *model->members);
    renumber(model, index + 1, -1);
}

bool sg_member_alive(const sg_device *device, const sg_member *member) {
    const sg_slot *slot = &device->state->slots[member->slot];
    if (atomic_load(&slot->incarnation) != member->incarnation || atomic_load(&slot->used) == SG_SLOT_FREE)
        return false;
    return sg_slot_alive(device, (int)member->slot);
}

sg_thread *sg_model_thread(sg_model *model, uint32_t member, uint64_t thread) {
    for (uint32_t i = 0; i < model->thread_count; i++)
        if (model->threads[i].member == member && model->threads[i].thread == thread)
            return &model->threads[i];
    return NULL;
}

sg_thread *sg_model_add_thread(sg_model *model, uint32_t member, uint64_t thread) {
    if (model->thread_count == SG_MODEL_THREADS)
        return NULL;
    sg_thread *added = &model->threads[model->thread_count++];
    *added = (sg_thread){.member = member, .state = SG_THREAD_RUNS, .thread = thread};
    return added;
}

void sg_model_remove_thread(sg_model *model, sg_thread *thread) {
    *thread = model->threads[--model->thread_count];
}
