/* Addresses of global accesses. Compilers compute them in 64 bits, in three steps an access:
 *
 *     mul.wide.s32 %t, %i, 4;   add.s64 %r, %base, %t;   ld.global.f32 %f, [%r];
 *
 * Where the base is one value for the whole block, the access itself takes (base, scale, index): the
 * machine then sees from 32 small indices whether the lanes are neighbours, and computes one address.
 *
 * The access reads base and index later than the computation did, so both must still have the values
 * they had there: `stands`. */
#include "invariants.h"

#include <string.h>

enum { FARTHEST = 512, MOST_SCALE = 1 << 28 };

typedef struct {
    const sg_function *function;
    size_t first_label; /* instructions before it run at most once a thread, in order */
    bool *labelled;     /* a label stands before instruction i */
} text;

static bool mentions(const sg_operand *operand, const sg_register *reg) {
    bool found = operand->reg == reg;
    for (size_t i = 0; i < operand->item_count; i++)
        found |= mentions(&operand->items[i], reg);
    return found;
}

/* Whether `reg`, read by instruction `from`, has the same value at `to`, which follows it. */
static bool stands(const text *t, const sg_register *reg, size_t from, size_t to) {
    if (reg->definitions == 1 && (reg->invariant || reg->uniform))
        return true;
    if (reg->definitions == 1 && reg->defined_at < from && reg->defined_at < t->first_label)
        return true;
    if (from >= to || to - from > FARTHEST)
        return false;
    for (size_t i = from; i < to; i++) {
        const sg_instruction *instruction = &t->function->instructions[i];
        if (t->labelled[i + 1] || (instruction->operand_count && mentions(&instruction->operands[0], reg)))
            return false;
    }
    return true;
}

/* The only computation of `reg`, before position `at`; NULL where there is none to look through. */
static const sg_instruction *computation(const text *t, sg_register *reg, size_t at) {
    if (reg->definitions != 1 || reg->defined_at >= at)
        return NULL;
    const sg_instruction *found = &t->function->instructions[reg->defined_at];
    reg->folded = sg_is_pure(found);
    return reg->folded ? found : NULL;
}

static bool is(const sg_instruction *instruction, const char *opcode, sg_word first, sg_word second) {
    bool matches = !strcmp(instruction->opcode, opcode) && instruction->word_count == 1u + (second != W_none);
    return matches && instruction->words[0] == first && (second == W_none || instruction->words[1] == second);
}

static bool is_wide(const sg_instruction *instruction, const char *opcode) { /* 64-bit arithmetic, any sign */
    return is(instruction, opcode, W_s64, W_none) || is(instruction, opcode, W_u64, W_none) ||
           is(instruction, opcode, W_b64, W_none);
}

/* `reg` and a constant: a factor that a scale can be. */
static bool by_constant(const sg_instruction *instruction, uint64_t *factor) {
    const sg_operand *o = instruction->operands;
    *factor = o[2].integer;
    return instruction->operand_count >= 3 && o[1].kind == OPERAND_REGISTER && o[2].kind == OPERAND_INTEGER;
}

typedef struct {
    sg_register *base, *index;
    sg_word type;
    uint64_t scale, offset;
} parts;

static bool take(parts *p, const text *t, sg_register *index, sg_word type, uint64_t scale, size_t from, size_t to) {
    if (scale == 0 || scale > MOST_SCALE || !stands(t, index, from, to))
        return false;
    p->index = index;
    p->type = type;
    p->scale = scale;
    return true;
}

static bool multiply_wide(parts *p, const text *t, const sg_instruction *by, const char *opcode, size_t from, size_t to) {
    uint64_t factor;
    bool is_signed = is(by, opcode, W_wide, W_s32), is_unsigned = is(by, opcode, W_wide, W_u32);
    return (is_signed || is_unsigned) && by_constant(by, &factor) &&
           take(p, t, by->operands[1].reg, is_signed ? W_s32 : W_u32, factor, from, to);
}

/* `reg`, 64 bits wide, times `scale`: perhaps 32 bits extended. */
static bool extended(parts *p, const text *t, sg_register *reg, uint64_t scale, size_t from, size_t to) {
    const sg_instruction *by = computation(t, reg, from);
    if (by && by->operands[1].kind == OPERAND_REGISTER) {
        bool is_signed = is(by, "cvt", W_s64, W_s32), is_unsigned = is(by, "cvt", W_u64, W_u32);
        if ((is_signed || is_unsigned) &&
            take(p, t, by->operands[1].reg, is_signed ? W_s32 : W_u32, scale, reg->defined_at, to))
            return true;
    }
    return take(p, t, reg, W_b64, scale, from, to);
}

/* What is added to the base by the instruction at `from`. */
static bool find_index(parts *p, const text *t, sg_register *added, size_t from, size_t to) {
    const sg_instruction *by = computation(t, added, from);
    uint64_t factor;
    size_t at = added->defined_at;
    if (by && multiply_wide(p, t, by, "mul", at, to))
        return true;
    if (by && is(by, "shl", W_b64, W_none) && by_constant(by, &factor) && factor < 28 &&
        extended(p, t, by->operands[1].reg, (uint64_t)1 << factor, at, to))
        return true;
    if (by && (is(by, "mul", W_lo, W_s64) || is(by, "mul", W_lo, W_u64)) && by_constant(by, &factor) &&
        extended(p, t, by->operands[1].reg, factor, at, to))
        return true;
    return extended(p, t, added, 1, from, to);
}

static bool is_base(const sg_operand *operand) {
    return operand->kind == OPERAND_REGISTER && operand->reg->definitions == 1 && operand->reg->uniform;
}

static bool find_parts(parts *p, const text *t, sg_register *address, size_t to) {
    size_t from = to;
    const sg_instruction *by;
    for (; (by = computation(t, address, from)) != NULL; address = by->operands[1].reg) {
        const sg_operand *o = by->operands;
        uint64_t constant;
        from = address->defined_at;
        if (is(by, "mad", W_wide, W_s32) || is(by, "mad", W_wide, W_u32)) {
            p->base = o[3].reg;
            return is_base(&o[3]) && multiply_wide(p, t, by, "mad", from, to);
        }
        if (!is_wide(by, "add"))
            return false;
        if (by_constant(by, &constant)) {
            p->offset += constant;
            continue;
        }
        int base = is_base(&o[1]) ? 1 : 2;
        p->base = o[base].reg;
        return is_base(&o[base]) && o[3 - base].kind == OPERAND_REGISTER && find_index(p, t, o[3 - base].reg, from, to);
    }
    return false;
}

static bool is_global_access(const sg_instruction *instruction) {
    static const char *const opcodes[] = {"ld", "ldu", "st", "atom", "red"};
    for (size_t i = 0; i < instruction->word_count; i++) {
        sg_word word = instruction->words[i];
        if ((sg_words[word].kind == KIND_SPACE && word != W_global) || word == W_b128)
            return false; /* .b128 needs column 5 for itself */
    }
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (!strcmp(instruction->opcode, opcodes[i]))
            return true;
    return false;
}

static void fold(const text *t, sg_operand *operand, size_t at) {
    parts p = {.offset = operand->integer};
    if (operand->kind != OPERAND_ADDRESS || !operand->reg || sg_bits(operand->reg->type) != 64 ||
        !find_parts(&p, t, operand->reg, at))
        return;
    operand->reg = p.base;
    operand->index = p.index;
    operand->index_type = p.type;
    operand->scale = (uint32_t)p.scale;
    operand->integer = p.offset;
}

/* ---- what nobody reads any more ---- */

static bool is_folded(const sg_operand *operand) { return operand->kind == OPERAND_REGISTER && operand->reg->folded; }

static void count_uses(const sg_operand *operand, uint32_t by) {
    if (operand->reg)
        operand->reg->uses += by;
    if (operand->index)
        operand->index->uses += by;
    for (size_t i = 0; i < operand->item_count; i++)
        count_uses(&operand->items[i], by);
}

/* Every mention but the one that writes it. */
static void count_all_uses(const sg_function *function) {
    for (size_t i = 0; i < function->instruction_count; i++) {
        const sg_instruction *instruction = &function->instructions[i];
        for (size_t k = 0; k < instruction->operand_count; k++)
            if (k > 0 || !is_folded(&instruction->operands[k]))
                count_uses(&instruction->operands[k], 1);
    }
}

static void drop_unread(sg_function *function) {
    for (size_t i = function->instruction_count; i-- > 0;) {
        sg_instruction *instruction = &function->instructions[i];
        if (!instruction->operand_count || !is_folded(&instruction->operands[0]) || instruction->operands[0].reg->uses)
            continue;
        instruction->dropped = true;
        for (size_t k = 1; k < instruction->operand_count; k++)
            count_uses(&instruction->operands[k], (uint32_t)-1);
    }
}

void sg_fold_addresses(sg_lowering *l) {
    sg_function *function = l->function;
    if (!function->entry)
        return; /* a function's parameters are not the same for all lanes */
    text t = {function, function->instruction_count, sg_allocate(l->compiler, function->instruction_count + 1)};
    for (size_t i = 0; i < function->label_count; i++) {
        size_t position = function->labels[i].position;
        t.labelled[position] = true;
        t.first_label = position < t.first_label ? position : t.first_label;
    }
    for (size_t i = 0; i < function->instruction_count; i++)
        for (size_t k = 0; is_global_access(&function->instructions[i]) && k < function->instructions[i].operand_count; k++)
            fold(&t, &function->instructions[i].operands[k], i);
    count_all_uses(function);
    drop_unread(function);
}
