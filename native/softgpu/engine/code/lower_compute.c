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
sg_column sg_flushed(sg_lowering *l, sg_column source) {
    sg_column column = sg_scratch(l, 4);
    sg_emit_to(l, H_flush_f32, column, source);
    return column;
}

/* Sources and destination by the form's operand string into `columns`. */
size_t sg_plain_operands(sg_lowering *l, sg_column *columns, bool flush) {
    const char *shape = l->form->operands;
    size_t count = strlen(shape) / 2;
    sg_want_operands(l, count, count);
    for (size_t i = 0; i < count; i++) {
        sg_word type = operand_type(l, shape[2 * i + 1]);
        if (shape[2 * i] == 's') {
            columns[i] = sg_source(l, &l->instruction->operands[i], type);
            if (flush && type == W_f32)
                columns[i] = sg_flushed(l, columns[i]);
        }
    }
    if (count && shape[0] == 'd')
        columns[0] = sg_destination(l, &l->instruction->operands[0], operand_type(l, shape[1]));
    return count;
}

sg_insn *sg_emit_plain(sg_lowering *l, sg_handler_id handler, const sg_column *columns, size_t count) {
    sg_insn *insn = sg_emit(l, handler);
    memcpy(insn->operand, columns, count * sizeof *columns);
    insn->round = (uint8_t)l->attributes.round;
    return insn;
}

void sg_lower_plain(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_column columns[8] = {0};
    bool flush = l->attributes.ftz;
    size_t count = sg_plain_operands(l, columns, flush);
    sg_emit_plain(l, l->form->handler, columns, count);
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
    sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false));
}

void sg_lower_nothing(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_emit(l, H_nop);
}

void sg_lower_mad24(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    sg_plain_operands(l, columns, false);
    bool high = sg_has_word(instruction, W_hi), is_signed = l->attributes.type[0] == W_s32;
    sg_column product = sg_scratch(l, 4);
    sg_insn *insn = sg_emit(l, high ? (is_signed ? H_mul24_hi_s32 : H_mul24_hi_u32)
                                    : (is_signed ? H_mul24_lo_s32 : H_mul24_lo_u32));
    insn->operand[0] = product, insn->operand[1] = columns[1], insn->operand[2] = columns[2];
    insn = sg_emit(l, H_add_32);
    insn->operand[0] = columns[0], insn->operand[1] = product, insn->operand[2] = columns[3];
}

/* min and max of s32 or s16x2 with .relu: a negative result is zero. */
void sg_lower_integer_relu(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_column columns[8] = {0};
    sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false));
    if (!l->attributes.relu)
        return;
    bool pair = l->attributes.type[0] == W_s16x2;
    sg_insn *insn = sg_emit_to(l, pair ? H_max_s16x2 : H_max_s32, columns[0], columns[0]);
    insn->operand[2] = sg_constant_column(l, 4, 0, NULL);
}

/* min and max of f32: of two or three, of magnitudes (.abs), with the product's sign (.xorsign). */
void sg_lower_extreme(sg_lowering *l, const sg_instruction *instruction) {
    bool magnitudes = sg_has_word(instruction, W_abs), signs = sg_has_word(instruction, W_xorsign);
    size_t count = instruction->operand_count;
    sg_want_operands(l, 3, signs ? 3 : 4);
    sg_column source[4] = {0}, taken[4] = {0};
    for (size_t i = 1; i < count; i++) {
        source[i] = sg_source(l, &instruction->operands[i], W_f32);
        taken[i] = l->attributes.ftz ? sg_flushed(l, source[i]) : source[i];
        if (magnitudes) {
            sg_column magnitude = sg_scratch(l, 4);
            sg_emit_to(l, H_abs_f32, magnitude, taken[i]);
            taken[i] = magnitude;
        }
    }
    sg_column destination = sg_destination(l, &instruction->operands[0], W_f32);
    sg_column result = count == 4 || signs ? sg_scratch(l, 4) : destination;
    sg_emit_to(l, l->form->handler, result, taken[1])->operand[2] = taken[2];
    if (count == 4)
        sg_emit_to(l, l->form->handler, destination, result)->operand[2] = taken[3];
    if (signs) {
        sg_insn *insn = sg_emit_to(l, H_xorsign_f32, destination, result);
        insn->operand[2] = source[1], insn->operand[3] = source[2];
    }
    if (l->attributes.ftz)
        sg_emit_to(l, H_flush_f32, destination, destination);
}

/* ---- carry chains ---- */

static uint8_t carry_flags(const sg_instruction *instruction) {
    size_t length = strlen(instruction->opcode);
    bool takes = instruction->opcode[length - 1] == 'c'; /* addc, subc, madc */
    return (uint8_t)(takes | sg_has_word(instruction, W_cc) << 1);
}

void sg_lower_carry(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false))->flags = carry_flags(instruction);
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
    sg_plain_operands(l, columns, false);
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
    sg_insn *insn = sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false));
    insn->flags = (uint8_t)((l->attributes.type[0] == W_s32) | (l->attributes.type[1] == W_s32) << 1 |
                            sg_has_word(instruction, W_hi) << 2);
}

/* vabsdiff4.u32.s32.u32.add: the operator, the types of the lanes, how many there are. */
void sg_lower_video(sg_lowering *l, const sg_instruction *instruction) {
    static const char *const operators[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"};
    sg_column columns[8] = {0};
    sg_insn *insn = sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false));
    size_t length = strlen(instruction->opcode) - 1;
    bool sets = l->attributes.type_count == 2;
    for (uint8_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strlen(operators[i]) == length && !memcmp(operators[i], instruction->opcode, length))
            insn->variant = i;
    for (unsigned i = 0; i < 3; i++) /* bits 0 to 2: d, a, b are signed; vset has no type of d */
        insn->flags |= (uint8_t)((!(sets && i == 0) && l->attributes.type[i - sets] == W_s32) << i);
    insn->flags |= (uint8_t)(l->attributes.sat << 3 | (l->attributes.operation == W_add) << 4);
    insn->count = (uint8_t)(instruction->opcode[length] - '0');
    insn->round = (uint8_t)l->attributes.compare;
}

void sg_lower_prmt(sg_lowering *l, const sg_instruction *instruction) {
    static const sg_word modes[] = {W_f4e, W_b4e, W_rc8, W_ecl, W_ecr, W_rc16};
    sg_column columns[8] = {0};
    sg_insn *insn = sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false));
    for (uint8_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (sg_has_word(instruction, modes[i]))
            insn->variant = i + 1;
}

/* lop3.or.b32 d|p, a, b, c, table, q: p is (d != 0) or q. */
static void lop3_predicate(sg_lowering *l, const sg_instruction *instruction, sg_column result) {
    sg_column q = sg_source(l, &instruction->operands[5], W_pred), met = sg_scratch(l, 1);
    sg_emit_to(l, H_ne_32, met, result)->operand[2] = sg_constant_column(l, 4, 0, NULL);
    sg_insn *insn = sg_emit_to(l, sg_has_word(instruction, W_or) ? H_or_pred : H_and_pred,
                               sg_destination(l, &instruction->operands[0].items[1], W_pred), met);
    insn->operand[2] = q;
}

void sg_lower_lop3(sg_lowering *l, const sg_instruction *instruction) {
    bool predicate = l->attributes.operation != W_none;
    sg_want_operands(l, predicate ? 6 : 5, predicate ? 6 : 5);
    const sg_operand *table = &instruction->operands[4], *to = &instruction->operands[0];
    if (table->kind != OPERAND_INTEGER || table->integer > 255)
        sg_reject(l, "the table is a constant from 0 to 255");
    if (predicate != (to->kind == OPERAND_PAIR))
        sg_reject(l, "a predicate d|p goes with .and and .or, and only with them");
    sg_column columns[4];
    for (int i = 1; i < 4; i++)
        columns[i] = sg_source(l, &instruction->operands[i], W_b32);
    columns[0] = sg_destination(l, predicate ? &to->items[0] : to, W_b32);
    sg_emit_plain(l, H_lop3, columns, 4)->immediate = (int64_t)table->integer;
    if (predicate)
        lop3_predicate(l, instruction, columns[0]);
}

void sg_lower_szext(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    sg_insn *insn = sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false));
    insn->flags = (uint8_t)((l->attributes.type[0] == W_s32) | sg_has_word(instruction, W_wrap) << 1);
}

void sg_lower_selp(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_lower_plain(l, instruction);
}

/* .ftz is of the operand that decides; what is selected stays as it is. */
void sg_lower_slct(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 4, 4);
    sg_column columns[4];
    for (int i = 1; i < 4; i++)
        columns[i] = sg_source(l, &instruction->operands[i], l->attributes.type[i == 3]);
    if (l->attributes.ftz)
        columns[3] = sg_flushed(l, columns[3]);
    columns[0] = sg_destination(l, &instruction->operands[0], l->attributes.type[0]);
    sg_emit_plain(l, l->form->handler, columns, 4);
}

void sg_lower_testp(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0};
    sg_emit_plain(l, l->form->handler, columns, sg_plain_operands(l, columns, false))->variant = (uint8_t)instruction->words[0];
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

/* A 128-bit register is two columns of 64 bits, the low half first. */
void sg_lower_mov_128(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    const sg_operand *to = &instruction->operands[0], *from = &instruction->operands[1];
    sg_column source[2], destination[2];
    for (unsigned i = 0; i < 2; i++) {
        source[i] = sg_half_of_128(l, from, i, true);
        destination[i] = sg_half_of_128(l, to, i, false);
    }
    sg_column low = sg_scratch(l, 8); /* {b, a} = {a, b} */
    sg_emit_to(l, H_mov_64, low, source[0]);
    if (destination[1])
        sg_emit_to(l, H_mov_64, destination[1], source[1]);
    if (destination[0])
        sg_emit_to(l, H_mov_64, destination[0], low);
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
