/* Comparisons: setp and set. */
#include "lower.h"

#include <string.h>

/* `swapped`: gt and ge are lt and le of the operands exchanged. */
typedef struct {
    sg_handler_id handler;
    bool swapped;
} comparison;

static comparison compare_integers(sg_lowering *l, const char *word, sg_word type) {
    bool wide = sg_bits(type) == 64, is_signed = sg_words[type].kind == KIND_SIGNED;
    bool bits = sg_words[type].kind == KIND_BITS;
    sg_handler_id less = wide ? (is_signed ? H_lt_s64 : H_lt_u64) : (is_signed ? H_lt_s32 : H_lt_u32);
    sg_handler_id most = wide ? (is_signed ? H_le_s64 : H_le_u64) : (is_signed ? H_le_s32 : H_le_u32);
    if (!strcmp(word, "eq"))
        return (comparison){wide ? H_eq_64 : H_eq_32, false};
    if (!strcmp(word, "ne"))
        return (comparison){wide ? H_ne_64 : H_ne_32, false};
    if (!bits && (!strcmp(word, "lt") || (!strcmp(word, "lo") && !is_signed)))
        return (comparison){less, false};
    if (!bits && (!strcmp(word, "le") || (!strcmp(word, "ls") && !is_signed)))
        return (comparison){most, false};
    if (!bits && (!strcmp(word, "gt") || (!strcmp(word, "hi") && !is_signed)))
        return (comparison){less, true};
    if (!bits && (!strcmp(word, "ge") || (!strcmp(word, "hs") && !is_signed)))
        return (comparison){most, true};
    sg_reject(l, "comparison .%s of .%s", word, sg_words[type].text);
}

static comparison compare_reals(sg_lowering *l, const char *word, bool wide) {
    static const struct {
        const char *word;
        sg_handler_id single, wide;
        bool swapped;
    } table[] = {
        {"eq", H_eq_f32, H_eq_f64, false},    {"ne", H_ne_f32, H_ne_f64, false},   {"lt", H_lt_f32, H_lt_f64, false},
        {"le", H_le_f32, H_le_f64, false},    {"gt", H_lt_f32, H_lt_f64, true},    {"ge", H_le_f32, H_le_f64, true},
        {"equ", H_equ_f32, H_equ_f64, false}, {"neu", H_neu_f32, H_neu_f64, false}, {"ltu", H_ltu_f32, H_ltu_f64, false},
        {"leu", H_leu_f32, H_leu_f64, false}, {"gtu", H_ltu_f32, H_ltu_f64, true}, {"geu", H_leu_f32, H_leu_f64, true},
        {"num", H_num_f32, H_num_f64, false}, {"nan", H_nan_f32, H_nan_f64, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].word, word))
            return (comparison){wide ? table[i].wide : table[i].single, table[i].swapped};
    sg_reject(l, "comparison .%s of floating-point numbers", word);
}

/* Values as the comparison handlers take them: 32 or 64 bits. `high`: of a pair, the upper half. */
static sg_column compared(sg_lowering *l, sg_column source, sg_word type, bool high) {
    sg_handler_id widen = type == W_s16 ? H_sext16_32 : sg_is_f16(type) ? H_cvt_f32_f16 : sg_is_bf16(type) ? H_cvt_f32_bf16
                                                                                                       : H_nop;
    if (high) {
        sg_column half = sg_scratch(l, 4);
        sg_insn *insn = sg_emit_to(l, H_unpack_32, half, source);
        insn->immediate = insn->variant = 16;
        source = half;
    }
    if (l->attributes.ftz && sg_is_f16(type))
        source = sg_flushed_half(l, source, W_f16);
    if (widen != H_nop) {
        sg_column column = sg_scratch(l, 4);
        sg_emit_to(l, widen, column, source);
        return column;
    }
    return l->attributes.ftz && type == W_f32 ? sg_flushed(l, source) : source;
}

typedef struct {
    sg_column a, b;
} operands;

static operands read_operands(sg_lowering *l, const sg_instruction *instruction, sg_word type) {
    return (operands){sg_source(l, &instruction->operands[1], type), sg_source(l, &instruction->operands[2], type)};
}

/* The comparison into the predicate column `result`. */
static void emit_comparison(sg_lowering *l, const sg_instruction *instruction, operands read, sg_word type, bool high,
                            sg_column result) {
    const char *word = sg_words[instruction->words[0]].text;
    comparison chosen = sg_words[type].kind == KIND_FLOAT ? compare_reals(l, word, sg_bits(type) == 64)
                                                          : compare_integers(l, word, type);
    sg_column a = compared(l, read.a, type, high), b = compared(l, read.b, type, high);
    sg_insn *insn = sg_emit(l, chosen.handler);
    insn->operand[0] = result;
    insn->operand[1] = chosen.swapped ? b : a;
    insn->operand[2] = chosen.swapped ? a : b;
}

/* `result` combined with operand 3, where the form has one; `complement` gets the opposite. */
static void emit_combination(sg_lowering *l, sg_column result, sg_column other, sg_column first, sg_column complement) {
    sg_insn *insn = sg_emit(l, H_combine_predicate);
    insn->operand[0] = first;
    insn->operand[1] = complement;
    insn->operand[2] = result;
    insn->operand[3] = other;
    insn->variant = (uint8_t)l->attributes.operation;
    insn->flags = complement ? 2 : 0;
}

static sg_column combined_with(sg_lowering *l, const sg_instruction *instruction) {
    bool combined = l->attributes.operation != W_none;
    sg_want_operands(l, combined ? 4 : 3, combined ? 4 : 3);
    return combined ? sg_source(l, &instruction->operands[3], W_pred) : 0;
}

void sg_lower_setp(sg_lowering *l, const sg_instruction *instruction) {
    sg_column other = combined_with(l, instruction);
    const sg_operand *to = &instruction->operands[0], *second = NULL;
    if (to->kind == OPERAND_PAIR) {
        second = &to->items[1];
        to = &to->items[0];
    }
    sg_word type = l->attributes.type[0];
    operands read = read_operands(l, instruction, type);
    if (!other && !second) {
        emit_comparison(l, instruction, read, type, false, sg_destination(l, to, W_pred));
        return;
    }
    sg_column result = sg_scratch(l, 1);
    emit_comparison(l, instruction, read, type, false, result);
    sg_column first = sg_destination(l, to, W_pred), complement = second ? sg_destination(l, second, W_pred) : 0;
    emit_combination(l, result, other, first, complement);
}

/* setp.lt.f16x2 p|q: p from the low halves, q from the high ones. */
void sg_lower_setp_pair(sg_lowering *l, const sg_instruction *instruction) {
    sg_column other = combined_with(l, instruction);
    const sg_operand *to = &instruction->operands[0];
    if (to->kind != OPERAND_PAIR)
        sg_reject(l, "two predicates p|q expected");
    sg_word type = l->attributes.type[0];
    operands read = read_operands(l, instruction, type);
    sg_column result[2] = {sg_scratch(l, 1), sg_scratch(l, 1)};
    for (int high = 0; high < 2; high++) {
        emit_comparison(l, instruction, read, type, high, result[high]);
        emit_combination(l, result[high], other, result[high], 0);
    }
    for (int high = 0; high < 2; high++) /* only now: p may be the predicate that q is combined with */
        sg_emit_to(l, H_mov_pred, sg_destination(l, &to->items[high], W_pred), result[high]);
}

/* What set writes where the comparison holds. */
static uint32_t truth(sg_word type, unsigned bits) {
    switch (type) {
    case W_f32: return 0x3f800000;
    case W_f16: case W_f16x2: return 0x3c00;
    case W_bf16: case W_bf16x2: return 0x3f80;
    default: return bits == 16 ? 0xffff : 0xffffffff;
    }
}

void sg_lower_set(sg_lowering *l, const sg_instruction *instruction) {
    sg_column other = combined_with(l, instruction), result = sg_scratch(l, 1);
    sg_word to = l->attributes.type[0], from = l->attributes.type[1];
    emit_comparison(l, instruction, read_operands(l, instruction, from), from, false, result);
    if (other)
        emit_combination(l, result, other, result, 0);
    sg_insn *insn = sg_emit_to(l, H_predicate_to_word, sg_destination(l, &instruction->operands[0], to), result);
    insn->immediate = truth(to, sg_bits(to));
}

void sg_lower_set_pair(sg_lowering *l, const sg_instruction *instruction) {
    sg_column other = combined_with(l, instruction), half[2];
    sg_word to = l->attributes.type[0], from = l->attributes.type[1];
    operands read = read_operands(l, instruction, from);
    for (int high = 0; high < 2; high++) {
        sg_column result = sg_scratch(l, 1);
        emit_comparison(l, instruction, read, from, high, result);
        if (other)
            emit_combination(l, result, other, result, 0);
        half[high] = sg_scratch(l, 4);
        sg_emit_to(l, H_predicate_to_word, half[high], result)->immediate = truth(to, 16);
    }
    sg_insn *insn = sg_emit_to(l, H_pack_32, sg_destination(l, &instruction->operands[0], to), half[0]);
    insn->operand[2] = half[1];
    insn->immediate = 16;
}
