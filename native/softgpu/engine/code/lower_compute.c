/* Lowering of what computes in registers. */
#include "lower.h"

#include <string.h>

static sg_word operand_type(const sg_lowering *l, char letter) {
    const sg_attributes *attributes = &l->attributes;
    switch (letter) {
    case '0': return attributes->type[0];
    case '1': return attributes->type[1];
    case 'u': return W_b32;
    case 'q': return W_b64;
    case 'p': return W_pred;
    default: break;
    }
    bool is_signed = sg_words[attributes->type[0]].kind == KIND_SIGNED; /* w */
    if (sg_bits(attributes->type[0]) == 16)
        return is_signed ? W_s32 : W_u32;
    return is_signed ? W_s64 : W_u64;
}

/* .ftz: an f32 source that is subnormal counts as zero of its sign. */
static sg_column flushed(sg_lowering *l, sg_column source) {
    sg_column column = sg_scratch(l, 4);
    sg_emit_to(l, H_flush_f32, column, source);
    return column;
}

/* Sources and destination by the form's operand string into `columns`. */
static size_t plain_operands(sg_lowering *l, sg_column *columns, bool flush) {
    const char *shape = l->form->operands;
    size_t count = strlen(shape) / 2;
    sg_want_operands(l, count, count);
    for (size_t i = 0; i < count; i++) {
        sg_word type = operand_type(l, shape[2 * i + 1]);
        if (shape[2 * i] == 's') {
            columns[i] = sg_source(l, &l->instruction->operands[i], type);
            if (flush && type == W_f32)
                columns[i] = flushed(l, columns[i]);
        }
    }
    if (count && shape[0] == 'd')
        columns[0] = sg_destination(l, &l->instruction->operands[0], operand_type(l, shape[1]));
    return count;
}

static sg_insn *emit_plain(sg_lowering *l, sg_handler_id handler, const sg_column *columns, size_t count) {
    sg_insn *insn = sg_emit(l, handler);
    memcpy(insn->operand, columns, count * sizeof *columns);
    insn->round = (uint8_t)l->attributes.round;
    return insn;
}

void sg_lower_plain(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_column columns[8] = {0};
    bool flush = l->attributes.ftz;
    size_t count = plain_operands(l, columns, flush);
    emit_plain(l, l->form->handler, columns, count);
    sg_word type = l->attributes.type[0];
    if (l->attributes.sat && type == W_f32)
        sg_emit_to(l, H_saturate_f32, columns[0], columns[0]);
    if (flush && type == W_f32)
        sg_emit_to(l, H_flush_f32, columns[0], columns[0]);
}

/* The handler flushes by itself: rcp.approx.ftz.f64. */
void sg_lower_unflushed(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_column columns[8] = {0};
    emit_plain(l, l->form->handler, columns, plain_operands(l, columns, false));
}

void sg_lower_nothing(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_emit(l, H_nop);
}

/* f16 and bf16. Subnormals are kept with .ftz too where a result could differ: refused. */
void sg_lower_half(sg_lowering *l, const sg_instruction *instruction) {
    if (l->attributes.ftz && l->form->handler != H_ex2_bf16) {
        sg_emit_unsupported(l, "%s", instruction->form);
        return;
    }
    sg_column columns[8] = {0};
    size_t count = plain_operands(l, columns, false);
    for (size_t i = count; i < 4; i++)
        columns[i] = columns[1]; /* handlers of this family read three sources */
    sg_insn *insn = emit_plain(l, l->form->handler, columns, 4);
    insn->flags = l->attributes.nan;
    if (!l->attributes.sat && !l->attributes.relu)
        return;
    sg_word type = l->attributes.type[0];
    insn = sg_emit_to(l, l->attributes.sat ? H_half_saturate : H_half_relu, columns[0], columns[0]);
    insn->variant = (uint8_t)type;
    insn->flags = sg_bits(type) == 32;
}

void sg_lower_mad24(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    plain_operands(l, columns, false);
    bool high = sg_has_word(instruction, W_hi), is_signed = l->attributes.type[0] == W_s32;
    sg_column product = sg_scratch(l, 4);
    sg_insn *insn = sg_emit(l, high ? (is_signed ? H_mul24_hi_s32 : H_mul24_hi_u32)
                                    : (is_signed ? H_mul24_lo_s32 : H_mul24_lo_u32));
    insn->operand[0] = product, insn->operand[1] = columns[1], insn->operand[2] = columns[2];
    insn = sg_emit(l, H_add_32);
    insn->operand[0] = columns[0], insn->operand[1] = product, insn->operand[2] = columns[3];
}

/* ---- carry chains ---- */

static uint8_t carry_flags(const sg_instruction *instruction) {
    size_t length = strlen(instruction->opcode);
    bool takes = instruction->opcode[length - 1] == 'c'; /* addc, subc, madc */
    return (uint8_t)(takes | sg_has_word(instruction, W_cc) << 1);
}

void sg_lower_carry(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    emit_plain(l, l->form->handler, columns, plain_operands(l, columns, false))->flags = carry_flags(instruction);
}

static sg_handler_id product_handler(bool high, sg_word type) {
    switch (type) {
    case W_u32: return high ? H_mul_hi_u32 : H_mul_lo_32;
    case W_s32: return high ? H_mul_hi_s32 : H_mul_lo_32;
    case W_u64: return high ? H_mul_hi_u64 : H_mul_lo_64;
    default: return high ? H_mul_hi_s64 : H_mul_lo_64;
    }
}

void sg_lower_carry_mad(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    plain_operands(l, columns, false);
    unsigned width = sg_width(l->attributes.type[0]);
    sg_column product = sg_scratch(l, width);
    sg_insn *insn = sg_emit(l, product_handler(sg_has_word(instruction, W_hi), l->attributes.type[0]));
    insn->operand[0] = product, insn->operand[1] = columns[1], insn->operand[2] = columns[2];
    insn = sg_emit(l, width == 8 ? H_carry_add_64 : H_carry_add_32);
    insn->operand[0] = columns[0], insn->operand[1] = product, insn->operand[2] = columns[3];
    insn->flags = carry_flags(instruction);
}

/* ---- with a variant ---- */

void sg_lower_dot(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    sg_insn *insn = emit_plain(l, l->form->handler, columns, plain_operands(l, columns, false));
    insn->flags = (uint8_t)((l->attributes.type[0] == W_s32) | (l->attributes.type[1] == W_s32) << 1 |
                            sg_has_word(instruction, W_hi) << 2);
}

void sg_lower_prmt(sg_lowering *l, const sg_instruction *instruction) {
    static const sg_word modes[] = {W_f4e, W_b4e, W_rc8, W_ecl, W_ecr, W_rc16};
    sg_column columns[8] = {0};
    sg_insn *insn = emit_plain(l, l->form->handler, columns, plain_operands(l, columns, false));
    for (uint8_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (sg_has_word(instruction, modes[i]))
            insn->variant = i + 1;
}

void sg_lower_lop3(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 5, 5);
    const sg_operand *table = &instruction->operands[4];
    if (table->kind != OPERAND_INTEGER || table->integer > 255)
        sg_reject(l, "the table is a constant from 0 to 255");
    sg_column columns[4];
    for (int i = 1; i < 4; i++)
        columns[i] = sg_source(l, &instruction->operands[i], W_b32);
    columns[0] = sg_destination(l, &instruction->operands[0], W_b32);
    emit_plain(l, H_lop3, columns, 4)->immediate = (int64_t)table->integer;
}

void sg_lower_selp(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_lower_plain(l, instruction);
}

void sg_lower_testp(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    emit_plain(l, l->form->handler, columns, plain_operands(l, columns, false))->variant = (uint8_t)instruction->words[0];
}

/* ---- mov ---- */

static void pack(sg_lowering *l, const sg_instruction *instruction, sg_word type) {
    const sg_operand *from = &instruction->operands[1];
    unsigned part = sg_bits(type) / (unsigned)from->item_count;
    sg_word part_type = part == 8 ? W_b8 : part == 16 ? W_b16 : W_b32;
    if (part * from->item_count != sg_bits(type) || part < 8 || part > 32)
        sg_reject(l, "%zu parts of .%s", from->item_count, sg_words[type].text);
    sg_column half[2] = {0, 0};
    for (size_t i = 0; i < from->item_count; i++) {
        unsigned at = part * (unsigned)i % 32, word = part * (unsigned)i / 32;
        sg_column source = sg_source(l, &from->items[i], part_type);
        if (at == 0 && part == 32) {
            half[word] = source;
            continue;
        }
        sg_column joined = at == 0 ? sg_scratch(l, 4) : half[word];
        sg_insn *insn = sg_emit_to(l, at == 0 ? H_mov_32 : H_pack_32, joined, at == 0 ? source : half[word]);
        insn->operand[2] = source;
        insn->immediate = at;
        half[word] = joined;
    }
    sg_column destination = sg_destination(l, &instruction->operands[0], type);
    sg_insn *insn = sg_emit_to(l, sg_bits(type) == 64 ? H_pack_64 : H_mov_32, destination, half[0]);
    insn->operand[2] = half[1];
}

static void unpack(sg_lowering *l, const sg_instruction *instruction, sg_word type) {
    const sg_operand *to = &instruction->operands[0];
    unsigned part = sg_bits(type) / (unsigned)to->item_count;
    sg_word part_type = part == 8 ? W_b8 : part == 16 ? W_b16 : W_b32;
    if (part * to->item_count != sg_bits(type) || part < 8 || part > 32)
        sg_reject(l, "%zu parts of .%s", to->item_count, sg_words[type].text);
    bool wide = sg_bits(type) == 64;
    sg_column source = sg_source(l, &instruction->operands[1], type), copy = sg_scratch(l, wide ? 8 : 4);
    sg_emit_to(l, wide ? H_mov_64 : H_mov_32, copy, source); /* a part may be the source itself */
    for (size_t i = 0; i < to->item_count; i++) {
        if (to->items[i].kind == OPERAND_SINK)
            continue;
        sg_column destination = sg_destination(l, &to->items[i], part_type);
        sg_insn *insn = sg_emit_to(l, wide ? H_unpack_64 : H_unpack_32, destination, copy);
        insn->immediate = (int64_t)(part * i);
        insn->variant = (uint8_t)part;
    }
}

void sg_lower_mov(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_word type = l->attributes.type[0];
    const sg_operand *to = &instruction->operands[0], *from = &instruction->operands[1];
    if (from->kind == OPERAND_VECTOR && from->item_count > 1 && sg_words[type].kind != KIND_PREDICATE) {
        pack(l, instruction, type);
        return;
    }
    if (to->kind == OPERAND_VECTOR && to->item_count > 1 && sg_words[type].kind != KIND_PREDICATE) {
        unpack(l, instruction, type);
        return;
    }
    unsigned width = sg_width(type);
    bool fits = from->kind == OPERAND_SPECIAL && sg_bits(type) == sg_special_bits(from->special);
    if (fits) { /* straight into the register */
        sg_insn *insn = sg_emit_to(l, H_special, sg_destination(l, to, type), 0);
        insn->immediate = from->special;
        return;
    }
    sg_column source = sg_source(l, from, type);
    sg_emit_to(l, width == 1 ? H_mov_pred : width == 8 ? H_mov_64 : H_mov_32, sg_destination(l, to, type), source);
}

/* ---- comparisons ---- */

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

/* Values as the comparison handlers take them: 32 or 64 bits. */
static sg_column compared(sg_lowering *l, const sg_operand *operand, sg_word type) {
    sg_column source = sg_source(l, operand, type);
    sg_handler_id widen = type == W_s16 ? H_sext16_32 : type == W_f16 ? H_cvt_f32_f16 : type == W_bf16 ? H_cvt_f32_bf16
                                                                                                         : H_nop;
    if (widen != H_nop) {
        sg_column column = sg_scratch(l, 4);
        sg_emit_to(l, widen, column, source);
        return column;
    }
    return l->attributes.ftz && type == W_f32 ? flushed(l, source) : source;
}

/* The comparison of operands 1 and 2 into the predicate column `result`. */
static void emit_comparison(sg_lowering *l, const sg_instruction *instruction, sg_word type, sg_column result) {
    const char *word = sg_words[instruction->words[0]].text;
    comparison chosen = sg_words[type].kind == KIND_FLOAT ? compare_reals(l, word, sg_bits(type) == 64)
                                                          : compare_integers(l, word, type);
    sg_column a = compared(l, &instruction->operands[1], type), b = compared(l, &instruction->operands[2], type);
    sg_insn *insn = sg_emit(l, chosen.handler);
    insn->operand[0] = result;
    insn->operand[1] = chosen.swapped ? b : a;
    insn->operand[2] = chosen.swapped ? a : b;
}

void sg_lower_setp(sg_lowering *l, const sg_instruction *instruction) {
    bool combined = l->attributes.operation != W_none;
    sg_want_operands(l, combined ? 4 : 3, combined ? 4 : 3);
    const sg_operand *to = &instruction->operands[0], *second = NULL;
    if (to->kind == OPERAND_PAIR) {
        second = &to->items[1];
        to = &to->items[0];
    }
    sg_word type = l->attributes.type[0];
    if (!combined && !second) {
        emit_comparison(l, instruction, type, sg_destination(l, to, W_pred));
        return;
    }
    sg_column result = sg_scratch(l, 1);
    emit_comparison(l, instruction, type, result);
    sg_column other = combined ? sg_source(l, &instruction->operands[3], W_pred) : 0;
    sg_column first = sg_destination(l, to, W_pred), complement = second ? sg_destination(l, second, W_pred) : 0;
    sg_insn *insn = sg_emit(l, H_combine_predicate);
    insn->operand[0] = first;
    insn->operand[1] = complement;
    insn->operand[2] = result;
    insn->operand[3] = other;
    insn->variant = (uint8_t)l->attributes.operation;
    insn->flags = second ? 2 : 0;
}

void sg_lower_set(sg_lowering *l, const sg_instruction *instruction) {
    bool combined = l->attributes.operation != W_none;
    sg_want_operands(l, combined ? 4 : 3, combined ? 4 : 3);
    sg_column result = sg_scratch(l, 1);
    emit_comparison(l, instruction, l->attributes.type[1], result);
    if (combined) {
        sg_column other = sg_source(l, &instruction->operands[3], W_pred);
        sg_insn *insn = sg_emit(l, H_combine_predicate);
        insn->operand[0] = result;
        insn->operand[2] = result;
        insn->operand[3] = other;
        insn->variant = (uint8_t)l->attributes.operation;
    }
    sg_word type = l->attributes.type[0];
    sg_emit_to(l, type == W_f32 ? H_predicate_to_float : H_predicate_to_ones,
               sg_destination(l, &instruction->operands[0], type), result);
}
