#include "liveness.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    size_t start, end; /* instructions [start, end) */
} block;

typedef struct {
    const sg_function *function;
    sg_interval *intervals;
    size_t words; /* of a set of registers */
    block *blocks;
    size_t block_count;
    size_t *block_at; /* of each instruction, and one behind the last */
    uint64_t *used, *defined, *in, *out; /* sets, one a block */
} flow;

/* Beyond this much the sets are not worth their memory: every interval is the function. */
static const size_t MOST_WORDS = (size_t)16 << 20;

static bool ends_block(const sg_instruction *instruction) {
    static const char *const enders[] = {"bra", "brx", "ret", "exit", "trap"};
    for (size_t i = 0; i < sizeof enders / sizeof *enders; i++)
        if (!strcmp(instruction->opcode, enders[i]))
            return true;
    return false;
}

static bool falls_through(const sg_instruction *instruction) { return instruction->guard || !ends_block(instruction); }

/* Whether operand 0 is only written. In doubt it is read too, which is safe. */
static bool writes_first(const sg_instruction *instruction) {
    static const char *const readers[] = {"st", "red", "bra", "brx", "call", "bar", "barrier", "prefetch", "prefetchu",
                                          "nanosleep", "pmevent", "fence", "membar", "cp", "mbarrier", "sust", "sured",
                                          "stmatrix", "wgmma"};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcmp(instruction->opcode, readers[i]))
            return false;
    if (!strcmp(instruction->opcode, "wmma"))
        return !sg_has_word(instruction, W_store) && !instruction->guard;
    return !instruction->guard; /* lanes that are off keep the old value */
}

static void put(uint64_t *set, size_t index) { set[index / 64] |= (uint64_t)1 << index % 64; }
static bool has(const uint64_t *set, size_t index) { return set[index / 64] >> index % 64 & 1; }

/* ---- blocks ---- */

static void find_blocks(flow *f) {
    const sg_function *function = f->function;
    size_t count = function->instruction_count;
    for (size_t i = 0; i < function->label_count; i++)
        f->block_at[function->labels[i].position] = 1;
    f->block_at[0] = 1;
    for (size_t i = 0; i < count; i++)
        if (ends_block(&function->instructions[i]))
            f->block_at[i + 1] = 1;
    for (size_t i = 0; i <= count; i++) { /* from marks to numbers */
        if (f->block_at[i])
            f->blocks[f->block_count++] = (block){i, i};
        f->block_at[i] = f->block_count - 1;
        f->blocks[f->block_count - 1].end = i < count ? i + 1 : i;
    }
}

/* ---- sets ---- */

static void read_register(flow *f, size_t b, const sg_register *reg) {
    size_t index = reg->slot - 1;
    if (!has(f->defined + b * f->words, index))
        put(f->used + b * f->words, index);
}

static void read_operand(flow *f, size_t b, const sg_operand *operand) {
    if (operand->reg)
        read_register(f, b, operand->reg);
    if (operand->index)
        read_register(f, b, operand->index);
    for (size_t i = 0; i < operand->item_count; i++)
        read_operand(f, b, &operand->items[i]);
}

static void write_operand(flow *f, size_t b, const sg_operand *operand) {
    if (operand->reg && operand->kind == OPERAND_REGISTER)
        put(f->defined + b * f->words, operand->reg->slot - 1);
    for (size_t i = 0; i < operand->item_count; i++)
        write_operand(f, b, &operand->items[i]);
}

static void fill_sets(flow *f) {
    for (size_t i = 0; i < f->function->instruction_count; i++) {
        const sg_instruction *instruction = &f->function->instructions[i];
        size_t b = f->block_at[i];
        bool writes = writes_first(instruction);
        if (instruction->guard)
            read_register(f, b, instruction->guard);
        for (size_t k = writes; k < instruction->operand_count; k++)
            read_operand(f, b, &instruction->operands[k]);
        if (writes && instruction->operand_count)
            write_operand(f, b, &instruction->operands[0]);
    }
}

/* ---- flow ---- */

static void merge_successor(flow *f, size_t b, const char *name) {
    const sg_label *label = name ? sg_find_label(f->function, name) : NULL;
    if (!label)
        return;
    const uint64_t *in = f->in + f->block_at[label->position] * f->words;
    for (size_t w = 0; label->target_count == 0 && w < f->words; w++)
        f->out[b * f->words + w] |= in[w];
    for (size_t i = 0; i < label->target_count; i++)
        if (label->targets[i] != name)
            merge_successor(f, b, label->targets[i]);
}

static void merge_successors(flow *f, size_t b) {
    if (f->blocks[b].start == f->blocks[b].end)
        return; /* the end of the text */
    const sg_instruction *last = &f->function->instructions[f->blocks[b].end - 1];
    bool branches = !strcmp(last->opcode, "bra") || !strcmp(last->opcode, "brx");
    for (size_t k = 0; branches && k < last->operand_count; k++)
        merge_successor(f, b, last->operands[k].name);
    if (falls_through(last) && b + 1 < f->block_count)
        for (size_t w = 0; w < f->words; w++)
            f->out[b * f->words + w] |= f->in[(b + 1) * f->words + w];
}

static void solve(flow *f) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t b = f->block_count; b-- > 0;) {
            merge_successors(f, b);
            for (size_t w = b * f->words; w < (b + 1) * f->words; w++) {
                uint64_t in = f->used[w] | (f->out[w] & ~f->defined[w]);
                changed |= in != f->in[w];
                f->in[w] = in;
            }
        }
    }
}

static void widen(flow *f, size_t count) {
    for (size_t b = 0; b < f->block_count; b++)
        for (size_t i = 0; i < count; i++) {
            sg_interval *interval = &f->intervals[i];
            const block *at = &f->blocks[b];
            if (has(f->in + b * f->words, i) && at->start < interval->first)
                interval->first = at->start;
            if (has(f->in + b * f->words, i) && at->start > interval->last)
                interval->last = at->start;
            if (has(f->out + b * f->words, i) && at->end > interval->last)
                interval->last = at->end;
            if (has(f->out + b * f->words, i) && at->end < interval->first)
                interval->first = at->end;
        }
}

static void widen_all(sg_interval *intervals, size_t count, size_t last) {
    for (size_t i = 0; i < count; i++)
        intervals[i] = (sg_interval){intervals[i].reg, 0, last};
}

void sg_extend_live(sg_lowering *lowering, sg_interval *intervals, size_t count) {
    const sg_function *function = lowering->function;
    size_t instructions = function->instruction_count;
    flow f = {.function = function, .intervals = intervals, .words = (count + 63) / 64};
    f.blocks = calloc(instructions + 2, sizeof *f.blocks);
    f.block_at = calloc(instructions + 2, sizeof *f.block_at);
    uint64_t *sets = NULL;
    if (f.blocks && f.block_at) {
        find_blocks(&f);
        size_t each = f.block_count * f.words;
        sets = each < MOST_WORDS ? calloc(4 * each + 1, sizeof *sets) : NULL;
        if (sets) {
            f.used = sets, f.defined = sets + each, f.in = sets + 2 * each, f.out = sets + 3 * each;
            fill_sets(&f);
            solve(&f);
            widen(&f, count);
        }
    }
    if (!sets) /* right as well, only wider */
        widen_all(intervals, count, instructions);
    free(sets);
    free(f.block_at);
    free(f.blocks);
}
