/* A kernel's prologue: what it computes the same in every block of a launch (parameters, sizes, thread
 * numbers, and what follows from them) runs once for each warp of a worker, whose registers keep it.
 *
 * Compilers leave such instructions where they are used, since on a card they cost next to nothing;
 * here they are half of a short kernel. Copying only what does not depend on the thread, once a launch,
 * was rejected: thread numbers are as constant as parameters, because a worker's warps keep their place. */
#include "invariants.h"

#include <string.h>

static void count_written(const sg_operand *operand, size_t at) {
    if (operand->reg && operand->kind == OPERAND_REGISTER) {
        operand->reg->definitions++;
        operand->reg->defined_at = (uint32_t)at;
    }
    for (size_t i = 0; i < operand->item_count; i++)
        count_written(&operand->items[i], at);
}

static void forget(const sg_operand *operand) {
    if (operand->reg) {
        operand->reg->definitions = 0;
        operand->reg->invariant = operand->reg->uniform = operand->reg->kept = operand->reg->folded = false;
    }
    for (size_t i = 0; i < operand->item_count; i++)
        forget(&operand->items[i]);
}

/* Any mention in operand 0 counts: too many is safe. */
static void count_definitions(sg_function *function) {
    for (size_t i = 0; i < function->instruction_count; i++)
        for (size_t k = 0; k < function->instructions[i].operand_count; k++)
            forget(&function->instructions[i].operands[k]);
    for (size_t i = 0; i < function->instruction_count; i++)
        if (function->instructions[i].operand_count)
            count_written(&function->instructions[i].operands[0], i);
}

/* ---- which instructions ---- */

static bool listed(const char *opcode) {
    static const char *const pure[] = {"mov", "cvta", "add", "sub", "mul", "mad", "shl", "shr", "and", "or",  "xor",
                                       "not", "neg",  "abs", "min", "max", "cvt", "fma", "div", "rem", "selp", "setp"};
    for (size_t i = 0; i < sizeof pure / sizeof *pure; i++)
        if (!strcmp(opcode, pure[i]))
            return true;
    return false;
}

/* cvt of floats has forms that lowering refuses, which must not happen before they are reached. */
static bool converts_floats(const sg_instruction *instruction) {
    if (strcmp(instruction->opcode, "cvt") != 0)
        return false;
    for (size_t i = 0; i < instruction->word_count; i++)
        if (sg_words[instruction->words[i]].kind == KIND_FLOAT)
            return true;
    return false;
}

bool sg_is_pure(const sg_instruction *instruction) {
    sg_attributes attributes;
    return !instruction->guard && instruction->operand_count >= 2 &&
           instruction->operands[0].kind == OPERAND_REGISTER && listed(instruction->opcode) &&
           !sg_has_word(instruction, W_cc) && !converts_floats(instruction) && sg_match_form(instruction, &attributes);
}

/* A read of the kernel's own parameters that cannot fault. */
static bool reads_parameter(sg_lowering *l, const sg_instruction *instruction) {
    sg_attributes attributes;
    if (strcmp(instruction->opcode, "ld") != 0 || instruction->guard || instruction->operand_count != 2 ||
        !sg_match_form(instruction, &attributes))
        return false;
    const sg_operand *from = &instruction->operands[1];
    uint64_t size = (uint64_t)sg_bytes(attributes.type[0]) * attributes.vector;
    bool parameter = false;
    for (size_t i = 0; i < l->function->param_count; i++)
        parameter |= l->function->params[i] == from->variable;
    return from->kind == OPERAND_ADDRESS && !from->reg && parameter && from->integer <= from->variable->size &&
           from->variable->size - from->integer >= size && (from->variable->address + from->integer) % size == 0;
}

/* ---- which values ---- */

/* The same in every block, though not in every thread. */
static bool fixed_special(int special) {
    return special < SPECIAL_ctaid_x || (special > SPECIAL_ctaid_z && special <= SPECIAL_nwarpid);
}
/* The same in every thread of a block. */
static bool uniform_special(int special) { return special >= SPECIAL_ntid_x && special <= SPECIAL_nctaid_z; }

typedef enum { INVARIANT, UNIFORM } property;

static bool has_property(const sg_operand *operand, property wanted) {
    switch (operand->kind) {
    case OPERAND_REGISTER:
        return operand->reg->definitions == 1 && (wanted == INVARIANT ? operand->reg->invariant : operand->reg->uniform);
    case OPERAND_SPECIAL:
        return wanted == INVARIANT ? fixed_special(operand->special) : uniform_special(operand->special);
    case OPERAND_INTEGER: case OPERAND_SINGLE: case OPERAND_DOUBLE: return true;
    case OPERAND_NAME: return operand->variable && operand->variable->space != W_local;
    default: return false;
    }
}

static bool written_once(const sg_operand *operand) {
    bool once = operand->kind == OPERAND_SINK || operand->kind == OPERAND_VECTOR ||
                (operand->kind == OPERAND_REGISTER && operand->reg->definitions == 1);
    for (size_t i = 0; i < operand->item_count; i++)
        once &= written_once(&operand->items[i]);
    return once;
}

static bool follows(sg_lowering *l, const sg_instruction *instruction, property wanted) {
    if (!written_once(&instruction->operands[0]))
        return false;
    if (reads_parameter(l, instruction))
        return true;
    for (size_t k = 1; k < instruction->operand_count; k++)
        if (!has_property(&instruction->operands[k], wanted))
            return false;
    return sg_is_pure(instruction);
}

static void mark(const sg_operand *operand, property found) {
    if (operand->reg && found == INVARIANT)
        operand->reg->invariant = true;
    else if (operand->reg)
        operand->reg->uniform = true;
    for (size_t i = 0; i < operand->item_count; i++)
        mark(&operand->items[i], found);
}

/* ---- moving ---- */

/* Chosen instructions in an order in which each finds its sources, others behind in theirs. */
typedef struct {
    size_t *order;
    bool *chosen;
    size_t count;
} selection;

/* Text mostly defines before it uses: few rounds find nearly all, and the rest is only slower. */
enum { MOST_ROUNDS = 4 };

static void choose(sg_lowering *l, property wanted, selection *s) {
    const sg_function *function = l->function;
    bool more = true;
    for (int round = 0; more && round < MOST_ROUNDS; round++) {
        more = false;
        for (size_t i = 0; i < function->instruction_count; i++) {
            const sg_instruction *instruction = &function->instructions[i];
            if (s->chosen[i] || !instruction->operand_count || !follows(l, instruction, wanted))
                continue;
            mark(&instruction->operands[0], wanted);
            s->chosen[i] = true;
            s->order[s->count++] = i;
            more = true;
        }
    }
}

static void keep(const sg_operand *operand) {
    if (operand->reg)
        operand->reg->kept |= operand->reg->invariant;
    for (size_t i = 0; i < operand->item_count; i++)
        keep(&operand->items[i]);
}

static void rearrange(sg_lowering *l, const selection *s) {
    sg_function *function = l->function;
    size_t count = function->instruction_count, behind = s->count;
    sg_instruction *moved = sg_allocate(l->compiler, count * sizeof *moved + 1);
    size_t *position = sg_allocate(l->compiler, (count + 1) * sizeof *position);
    for (size_t i = 0; i < s->count; i++)
        moved[i] = function->instructions[s->order[i]];
    for (size_t i = 0; i < count; i++) {
        position[i] = behind;
        if (!s->chosen[i])
            moved[behind++] = function->instructions[i];
    }
    position[count] = behind;
    for (size_t i = 0; i < function->label_count; i++)
        function->labels[i].position = position[function->labels[i].position];
    function->instructions = moved;
    for (size_t i = s->count; i < count; i++) {
        if (moved[i].guard)
            moved[i].guard->kept |= moved[i].guard->invariant;
        for (size_t k = 0; k < moved[i].operand_count; k++)
            keep(&moved[i].operands[k]);
    }
}

static selection nothing_yet(sg_lowering *l) {
    size_t count = l->function->instruction_count;
    return (selection){.order = sg_allocate(l->compiler, count * sizeof(size_t) + 1),
                       .chosen = sg_allocate(l->compiler, count + 1)};
}

size_t sg_move_invariants(sg_lowering *l) {
    sg_function *function = l->function;
    count_definitions(function);
    if (!function->entry)
        return 0;
    selection uniform = nothing_yet(l), invariant = nothing_yet(l);
    choose(l, UNIFORM, &uniform);
    choose(l, INVARIANT, &invariant);
    rearrange(l, &invariant);
    for (size_t i = 0; i < function->instruction_count; i++) { /* positions have changed */
        const sg_operand *to = function->instructions[i].operands;
        if (function->instructions[i].operand_count && to->kind == OPERAND_REGISTER)
            to->reg->defined_at = (uint32_t)i;
    }
    return invariant.count;
}
