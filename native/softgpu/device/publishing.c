/* The model in the file: copied out of the published area, written to one's own, published by one swap. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "model_layout.h"

enum { AREA_BITS = 8 };

size_t sg_model_file_bytes(const sg_facts *facts) {
    return facts->time == SG_TIME_REAL ? 0 : SG_MODEL_AREAS * sizeof(sg_model);
}

static sg_model *area(const sg_device *device, unsigned index) {
    return (sg_model *)((unsigned char *)device->state + device->model_offset) + index;
}

/* The area of a published word; SG_MODEL_AREAS or more: none. */
static unsigned area_of(uint64_t published) {
    return (unsigned)(published & ((1u << AREA_BITS) - 1)) - 1;
}

uint64_t sg_model_published(const sg_device *device) {
    return atomic_load(&device->state->model_published);
}

uint64_t sg_model_published_ns(const sg_device *device) {
    uint64_t before, now_ns;
    do {
        before = sg_model_published(device);
        if (area_of(before) >= SG_MODEL_AREAS)
            return SG_MODEL_BEGIN_NS;
        now_ns = *(const volatile uint64_t *)&area(device, area_of(before))->now_ns;
        atomic_thread_fence(memory_order_acquire);
    } while (sg_model_published(device) != before);
    return now_ns;
}

static void make_empty(sg_model *model) {
    memset(model, 0, offsetof(sg_model, threads));
    memset(model->past, 0, sizeof model->past);
    model->now_ns = SG_MODEL_BEGIN_NS;
    model->holder = model->copier[0] = model->copier[1] = SG_NOBODY;
}

static bool is_index(int32_t index, uint32_t count) {
    return index == SG_NOBODY || (index >= 0 && (uint32_t)index < count);
}

static bool head_plausible(const sg_model *model) {
    return model->member_count <= SG_MODEL_MEMBERS && model->thread_count <= SG_MODEL_THREADS &&
           is_index(model->holder, model->member_count) && is_index(model->copier[0], model->member_count) &&
           is_index(model->copier[1], model->member_count);
}

static bool parts_plausible(const sg_model *model) {
    for (uint32_t i = 0; i < model->thread_count; i++)
        if (model->threads[i].member >= model->member_count)
            return false;
    for (uint32_t i = 0; i < model->member_count; i++) {
        const sg_member *member = &model->members[i];
        if (member->count > SG_MODEL_PENDING || member->head > member->count || member->slot >= SG_MODEL_MEMBERS ||
            member->begin > SG_MODEL_MEMBERS * SG_MODEL_PENDING - SG_MODEL_PENDING)
            return false;
    }
    return true;
}

/* Without the holes that collected operations left. */
static void copy_pending(sg_model *copy, const sg_model *from, int64_t mine_slot) {
    uint32_t at = 0;
    for (int mine = 0; mine < 2; mine++)
        for (uint32_t i = 0; i < copy->member_count; i++) {
            sg_member *member = &copy->members[i];
            if ((int64_t)member->slot == mine_slot ? !mine : mine)
                continue;
            memcpy(&copy->pending[at], &from->pending[member->begin], member->count * sizeof *copy->pending);
            member->begin = at;
            at += member->count;
        }
}

bool sg_model_copy_in(const sg_device *device, uint64_t published, sg_model *copy, int64_t mine_slot) {
    if (area_of(published) >= SG_MODEL_AREAS) {
        make_empty(copy);
        return true;
    }
    const sg_model *from = area(device, area_of(published));
    memcpy(copy, from, offsetof(sg_model, threads));
    bool plausible = head_plausible(copy);
    if (plausible) {
        memcpy(copy->threads, from->threads, copy->thread_count * sizeof *copy->threads);
        memcpy(copy->past, from->past, sizeof copy->past);
        memcpy(copy->members, from->members, copy->member_count * sizeof *copy->members);
        plausible = parts_plausible(copy);
    }
    if (plausible)
        copy_pending(copy, from, mine_slot);
    else
        make_empty(copy); /* torn by a writer, which the next line sees, or by somebody who should not */
    atomic_thread_fence(memory_order_acquire);
    return sg_model_published(device) == published;
}

static void copy_out(sg_model *to, const sg_model *model) {
    uint32_t end = 0;
    for (uint32_t i = 0; i < model->member_count; i++)
        if (model->members[i].begin + model->members[i].count > end)
            end = model->members[i].begin + model->members[i].count;
    memcpy(to, model, offsetof(sg_model, threads));
    memcpy(to->threads, model->threads, model->thread_count * sizeof *to->threads);
    memcpy(to->past, model->past, sizeof to->past);
    memcpy(to->members, model->members, model->member_count * sizeof *to->members);
    memcpy(to->pending, model->pending, end * sizeof *to->pending);
}

bool sg_model_publish(sg_device *device, const sg_model *model, uint64_t *published) {
    unsigned own = 2 * (unsigned)device->slot;
    own += area_of(*published) == own;
    copy_out(area(device, own), model);
    uint64_t next = ((*published >> AREA_BITS) + 1) << AREA_BITS | (own + 1);
    if (!atomic_compare_exchange_strong(&device->state->model_published, published, next))
        return false;
    *published = next;
    return true;
}

/* Blocks for our two areas now, so that a full disk is an error here and not SIGBUS later. */
int sg_model_prepare(sg_device *device) {
    int file = sg_state_file(device);
    if (device->slot >= SG_MODEL_MEMBERS)
        return -EUSERS;
    off_t begin = (off_t)(device->model_offset + 2 * (size_t)device->slot * sizeof(sg_model));
    if (file < 0)
        return file;
    if (fallocate(file, 0, begin, (off_t)(2 * sizeof(sg_model))) != 0 && errno != EOPNOTSUPP)
        return -errno;
    return 0;
}
