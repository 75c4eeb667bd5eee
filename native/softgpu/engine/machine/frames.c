/* Frames of called functions: kept by the worker and used again. */
#include "machine.h"

#include <stdlib.h>

sg_frame *sg_take_frame(sg_worker *worker, const sg_code *code) {
    for (size_t i = worker->free_count; i-- > 0;) {
        sg_frame *frame = worker->free_frames[i];
        if (frame->capacity < code->frame_bytes)
            continue;
        worker->free_frames[i] = worker->free_frames[--worker->free_count];
        frame->code = code;
        return frame;
    }
    sg_frame *frame = calloc(1, sizeof *frame);
    if (!frame)
        return NULL;
    frame->capacity = code->frame_bytes;
    frame->registers = aligned_alloc(64, (code->frame_bytes + 63) & ~(size_t)63);
    if (!frame->registers) {
        free(frame);
        return NULL;
    }
    memset(frame->registers, 0, code->frame_bytes);
    frame->code = code;
    frame->next = worker->frames;
    worker->frames = frame;
    return frame;
}

void sg_give_frame(sg_worker *worker, sg_frame *frame) {
    if (worker->free_count == worker->free_capacity) {
        size_t capacity = worker->free_capacity ? worker->free_capacity * 2 : 16;
        sg_frame **grown = realloc(worker->free_frames, capacity * sizeof *grown);
        if (!grown)
            return; /* not used again; it is freed with the worker all the same */
        worker->free_frames = grown;
        worker->free_capacity = capacity;
    }
    worker->free_frames[worker->free_count++] = frame;
}

void sg_free_frames(sg_worker *worker) {
    while (worker->frames) {
        sg_frame *frame = worker->frames;
        worker->frames = frame->next;
        free(frame->registers);
        free(frame);
    }
    free(worker->free_frames);
    worker->free_frames = NULL;
    worker->free_count = worker->free_capacity = 0;
}
