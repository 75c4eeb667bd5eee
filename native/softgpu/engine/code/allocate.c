/* Columns for registers. Compilers name thousands of registers and use few at a time: the
 * warps of a block together must stay in the cache.
 *
 * A register occupies its column from the first to the last instruction at which it is
 * mentioned or alive (liveness.c). Lanes that diverge do not matter: each has its own place
 * in the column and follows the text's flow by itself. */
#include "liveness.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    sg_lowering *lowering;
    sg_interval *intervals;
    size_t count, capacity;
} allocation;

static void mention(allocation *a, sg_register *reg, size_t position) {
    if (!reg->slot) { /* until columns are given, `slot` is one more than the interval's index */
        a->intervals = sg_grow(a->lowering->compiler, a->intervals, a->count, &a->capacity, sizeof *a->intervals);
        a->intervals[a->count++] = (sg_interval){reg, position, position};
        reg->slot = (uint32_t)a->count;
    }
    a->intervals[reg->slot - 1].last = position;
}

static void mention_operand(allocation *a, const sg_operand *operand, size_t position) {
    if (operand->reg)
        mention(a, operand->reg, position);
    if (operand->index)
        mention(a, operand->index, position);
    for (size_t i = 0; i < operand->item_count; i++)
        mention_operand(a, &operand->items[i], position);
}

static void collect(allocation *a) {
    const sg_function *function = a->lowering->function;
    for (size_t i = 0; i < function->instruction_count; i++) {
        const sg_instruction *instruction = &function->instructions[i];
        if (instruction->guard)
            mention(a, instruction->guard, i);
        for (size_t k = 0; k < instruction->operand_count; k++)
            mention_operand(a, &instruction->operands[k], i);
    }
}

static int by_start(const void *left, const void *right) {
    const sg_interval *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

typedef struct {
    sg_column *columns;
    size_t count;
} free_columns;

/* Predicates take 4 bytes each: not worth sharing. */
static void give_predicates(allocation *a) {
    sg_lowering *l = a->lowering;
    for (size_t i = 0; i < a->count; i++) {
        if (sg_width(a->intervals[i].reg->type) != 1)
            continue;
        a->intervals[i].reg->slot = l->frame_bytes;
        l->frame_bytes += 4;
    }
    l->frame_bytes = (l->frame_bytes + 63) / 64 * 64;
}

static void give_columns(allocation *a) {
    sg_lowering *l = a->lowering;
    sg_interval *active = sg_allocate(l->compiler, (a->count + 1) * sizeof *active);
    free_columns free[3]; /* of 4, 8 and 16 bytes a lane */
    for (int i = 0; i < 3; i++)
        free[i] = (free_columns){sg_allocate(l->compiler, (a->count + 1) * sizeof(sg_column)), 0};
    size_t active_count = 0;
    uint32_t pressure = 0, most = 0;
    for (size_t i = 0; i < a->count; i++) {
        sg_interval *starting = &a->intervals[i];
        for (size_t k = 0; k < active_count;) {
            if (active[k].last >= starting->first) {
                k++;
                continue;
            }
            unsigned width = sg_width(active[k].reg->type);
            free_columns *list = &free[width / 8];
            list->columns[list->count++] = active[k].reg->slot;
            pressure -= width / 4;
            active[k] = active[--active_count];
        }
        unsigned width = sg_width(starting->reg->type);
        if (width == 1)
            continue;
        free_columns *list = &free[width / 8];
        if (list->count) {
            starting->reg->slot = list->columns[--list->count];
        } else {
            starting->reg->slot = l->frame_bytes;
            l->frame_bytes += width * LANES;
        }
        active[active_count++] = *starting;
        pressure += width / 4;
        most = pressure > most ? pressure : most;
    }
    l->code->pressure = most;
}

void sg_allocate_columns(sg_lowering *l) {
    allocation a = {.lowering = l};
    collect(&a);
    sg_extend_live(l, a.intervals, a.count);
    for (size_t i = 0; i < a.count; i++) /* the next block reads what this one's warp has */
        if (a.intervals[i].reg->kept)
            a.intervals[i].last = l->function->instruction_count;
    if (a.count)
        qsort(a.intervals, a.count, sizeof *a.intervals, by_start);
    give_predicates(&a);
    give_columns(&a);
}
