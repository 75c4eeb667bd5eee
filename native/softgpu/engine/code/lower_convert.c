/* cvt and its kin: to 32 or 64 bits, across, and to the width of the register. */
#include "lower.h"

typedef struct {
    sg_column column;
    sg_word type; /* u32, s32, u64, s64, f32 or f64 once widened */
} value;

static bool is_integer(sg_word type) {
    return sg_words[type].kind == KIND_UNSIGNED || sg_words[type].kind == KIND_SIGNED;
}
static bool is_signed(sg_word type) { return sg_words[type].kind == KIND_SIGNED; }
static bool is_half(sg_word type) { return type == W_f16 || type == W_bf16; }
static bool is_integral_mode(sg_word round) { return round >= W_rni && round <= W_rpi; }

static value apply(sg_lowering *l, sg_handler_id handler, value from, sg_word type) {
    value result = {sg_scratch(l, sg_width(type)), type};
    sg_insn *insn = sg_emit_to(l, handler, result.column, from.column);
    insn->round = (uint8_t)l->attributes.round;
    insn->variant = (uint8_t)type;
    return result;
}

static value read_integer(sg_lowering *l, const sg_operand *operand, sg_word type) {
    value from = {sg_low_source(l, operand, type), type};
    switch (type) {
    case W_u8: return apply(l, H_zext8_32, from, W_u32);
    case W_s8: return apply(l, H_sext8_32, from, W_s32);
    case W_u16: return apply(l, H_zext16_32, from, W_u32);
    case W_s16: return apply(l, H_sext16_32, from, W_s32);
    default: return from;
    }
}

static value widen_integer(sg_lowering *l, value from) {
    if (sg_bits(from.type) == 64)
        return from;
    return apply(l, is_signed(from.type) ? H_sext32_64 : H_zext32_64, from, is_signed(from.type) ? W_s64 : W_u64);
}

/* `from` (32 or 64 bits) cut to `type` and extended again, into the destination. */
static void write_integer(sg_lowering *l, value from, sg_word type, const sg_operand *to) {
    if (sg_bits(type) == 64)
        from = widen_integer(l, from);
    else if (sg_bits(from.type) == 64)
        from = apply(l, H_trunc_32, from, W_u32);
    switch (type) {
    case W_u8: from = apply(l, H_zext8_32, from, W_u32); break;
    case W_s8: from = apply(l, H_sext8_32, from, W_s32); break;
    case W_u16: from = apply(l, H_zext16_32, from, W_u32); break;
    case W_s16: from = apply(l, H_sext16_32, from, W_s32); break;
    default: break;
    }
    sg_store_integer(l, from.column, type, to);
}

static value saturate(sg_lowering *l, value from, sg_word type) {
    bool from_signed = is_signed(from.type);
    from = widen_integer(l, from);
    value result = {sg_scratch(l, 8), from.type};
    sg_emit_to(l, from_signed ? H_clamp_signed : H_clamp_unsigned, result.column, from.column)->variant = (uint8_t)type;
    return result;
}

/* ---- floating point ---- */

static value read_real(sg_lowering *l, const sg_operand *operand, sg_word type) {
    value from = {sg_low_source(l, operand, type), type};
    if (l->attributes.ftz && type == W_f32)
        return apply(l, H_flush_f32, from, W_f32);
    return from;
}

static value half_to_single(sg_lowering *l, value from) {
    return apply(l, from.type == W_f16 ? H_cvt_f32_f16 : H_cvt_f32_bf16, from, W_f32);
}

/* With the rounding mode of the instruction; integral modes do not apply to the width. */
static value narrow_to_half(sg_lowering *l, value from, sg_word type) {
    bool wide = from.type == W_f64;
    sg_handler_id handler = type == W_f16 ? (wide ? H_cvt_f16_f64 : H_cvt_f16_f32) : (wide ? H_cvt_bf16_f64 : H_cvt_bf16_f32);
    return apply(l, handler, from, type);
}

static value integer_to_real(sg_lowering *l, value from, sg_word type) {
    bool directed = l->attributes.round != W_rn && l->attributes.round != W_none;
    static const sg_handler_id nearest[2][4] = {{H_cvt_f32_u32, H_cvt_f32_s32, H_cvt_f32_u64, H_cvt_f32_s64},
                                                {H_cvt_f64_u32, H_cvt_f64_s32, H_cvt_f64_u64, H_cvt_f64_s64}};
    static const sg_handler_id rounded[2][4] = {{H_cvt_f32_r_u32, H_cvt_f32_r_s32, H_cvt_f32_r_u64, H_cvt_f32_r_s64},
                                                {H_cvt_f64_r_u32, H_cvt_f64_r_s32, H_cvt_f64_r_u64, H_cvt_f64_r_s64}};
    int column = (sg_bits(from.type) == 64) * 2 + is_signed(from.type);
    return apply(l, (directed ? rounded : nearest)[type == W_f64][column], from, type);
}

/* .satfinite: the largest magnitude for what exceeds it. Afterwards, since rounding decides. */
static value within_finite(sg_lowering *l, value from, sg_word type) { return apply(l, H_half_finite, from, type); }

static void write_real(sg_lowering *l, value from, sg_word type, const sg_operand *to) {
    sg_column destination = sg_destination(l, to, type);
    if (sg_has_word(l->instruction, W_satfinite))
        from = within_finite(l, from, type);
    if (l->attributes.sat && is_half(type)) {
        sg_emit_to(l, H_half_saturate, destination, from.column)->variant = (uint8_t)type;
        return;
    }
    if (l->attributes.sat)
        sg_emit_to(l, type == W_f64 ? H_saturate_f64 : H_saturate_f32, destination, from.column);
    else
        sg_emit_to(l, type == W_f64 ? H_mov_64 : H_mov_32, destination, from.column);
    if (l->attributes.relu)
        sg_emit_to(l, H_half_relu, destination, destination)->variant = (uint8_t)type;
    if (l->attributes.ftz && type == W_f32)
        sg_emit_to(l, H_flush_f32, destination, destination);
}

static void real_to_integer(sg_lowering *l, const sg_instruction *instruction, sg_word to, sg_word from_type) {
    value from = read_real(l, &instruction->operands[1], from_type);
    if (is_half(from_type))
        from = half_to_single(l, from);
    bool wide = sg_bits(to) == 64, from_double = from.type == W_f64;
    sg_handler_id handler = wide ? (from_double ? H_cvt_64_f64 : H_cvt_64_f32) : (from_double ? H_cvt_32_f64 : H_cvt_32_f32);
    if (to == W_s32 && l->attributes.round == W_rzi)
        handler = from_double ? H_cvt_s32_f64_rz : H_cvt_s32_f32_rz;
    value result = apply(l, handler, from, to);
    result.type = wide ? (is_signed(to) ? W_s64 : W_u64) : (is_signed(to) ? W_s32 : W_u32);
    write_integer(l, result, to, &instruction->operands[0]);
}

static void integer_to_any_real(sg_lowering *l, const sg_instruction *instruction, sg_word to, sg_word from_type) {
    value from = read_integer(l, &instruction->operands[1], from_type);
    if (!is_half(to)) {
        write_real(l, integer_to_real(l, from, to), to, &instruction->operands[0]);
        return;
    }
    if (sg_bits(from.type) == 64) { /* in f64 it would be rounded twice */
        sg_handler_id odd = is_signed(from.type) ? H_cvt_f64_odd_s64 : H_cvt_f64_odd_u64;
        write_real(l, narrow_to_half(l, apply(l, odd, from, W_f64), to), to, &instruction->operands[0]);
        return;
    }
    sg_word mode = l->attributes.round;
    l->attributes.round = W_rn; /* exact in f64 */
    value wide = integer_to_real(l, from, W_f64);
    l->attributes.round = mode;
    write_real(l, narrow_to_half(l, wide, to), to, &instruction->operands[0]);
}

static void real_to_real(sg_lowering *l, const sg_instruction *instruction, sg_word to, sg_word from_type) {
    sg_word round = l->attributes.round;
    value from = read_real(l, &instruction->operands[1], from_type);
    if (is_half(from_type) && to != from_type)
        from = to == W_f64 ? apply(l, from_type == W_f16 ? H_cvt_f64_f16 : H_cvt_f64_bf16, from, W_f64)
                           : half_to_single(l, from);
    if (is_integral_mode(round)) {
        if (is_half(from.type))
            from = half_to_single(l, from);
        from = apply(l, from.type == W_f64 ? H_integral_f64 : H_integral_f32, from, from.type);
        l->attributes.round = W_rn; /* an integral value that is now narrowed, if at all, exactly */
    }
    if (is_half(to) && from.type != to)
        from = narrow_to_half(l, from, to);
    else if (to == W_f32 && from.type == W_f64)
        from = apply(l, l->attributes.round == W_rn || round == W_none ? H_cvt_f32_f64 : H_cvt_f32_f64_r, from, W_f32);
    else if (to == W_f64 && from.type == W_f32)
        from = apply(l, H_cvt_f64_f32, from, W_f64);
    write_real(l, from, to, &instruction->operands[0]);
}

static bool is_scratch(const sg_lowering *l, sg_column column) {
    bool found = false;
    for (unsigned i = 0; i < l->made_32; i++)
        found |= l->scratch_32[i] == column;
    for (unsigned i = 0; i < l->made_64; i++)
        found |= l->scratch_64[i] == column;
    return found;
}

/* Where a move comes last, the step that made its source writes where the move would. */
static void drop_last_move(sg_lowering *l, size_t begin) {
    size_t count = l->module->insn_count;
    sg_insn *move = &l->module->insns[count - 1];
    if (count < begin + 2 || (move->handler != H_mov_32 && move->handler != H_mov_64) ||
        move[-1].operand[0] != move->operand[1] || !is_scratch(l, move->operand[1]))
        return;
    move[-1].operand[0] = move->operand[0];
    l->module->insn_count--;
}

void sg_lower_cvt(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    size_t begin = l->module->insn_count;
    sg_word to = l->attributes.type[0], from = l->attributes.type[1];
    if (is_integer(to) && is_integer(from)) {
        value read = read_integer(l, &instruction->operands[1], from);
        if (l->attributes.sat)
            read = saturate(l, read, to);
        write_integer(l, read, to, &instruction->operands[0]);
    } else if (is_integer(to)) {
        real_to_integer(l, instruction, to, from);
    } else if (is_integer(from)) {
        integer_to_any_real(l, instruction, to, from);
    } else {
        real_to_real(l, instruction, to, from);
    }
    drop_last_move(l, begin);
}

/* cvt.rn.f16x2.f32 d, a, b: a into the high half. */
void sg_lower_cvt_pair(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 3, 3);
    sg_word pair = l->attributes.type[0], half = pair == W_f16x2 ? W_f16 : W_bf16;
    value part[2];
    for (int i = 0; i < 2; i++) {
        part[i] = narrow_to_half(l, read_real(l, &instruction->operands[2 - i], W_f32), half);
        if (sg_has_word(instruction, W_satfinite))
            part[i] = within_finite(l, part[i], half);
    }
    sg_column destination = sg_destination(l, &instruction->operands[0], W_b32);
    sg_insn *insn = sg_emit_to(l, H_pack_32, destination, part[0].column);
    insn->operand[2] = part[1].column;
    insn->immediate = 16;
    if (l->attributes.relu) {
        insn = sg_emit_to(l, H_half_relu, destination, destination);
        insn->variant = (uint8_t)pair;
        insn->flags = 1;
    }
}

void sg_lower_cvt_tf32(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_column source = sg_source(l, &instruction->operands[1], W_f32);
    sg_insn *insn = sg_emit_to(l, H_cvt_tf32, sg_destination(l, &instruction->operands[0], W_b32), source);
    insn->round = (uint8_t)l->attributes.round;
    insn->flags = (uint8_t)(l->attributes.relu | sg_has_word(instruction, W_satfinite) << 1);
}

/* ---- e4m3 and e5m2, always two of them in 16 bits ---- */

/* flags: 1 relu, 2 the source is f16x2. Two f32 sources: the first into the high byte. */
void sg_lower_cvt_to_eighths(sg_lowering *l, const sg_instruction *instruction) {
    bool halves = l->attributes.type[1] == W_f16x2;
    sg_want_operands(l, halves ? 2 : 3, halves ? 2 : 3);
    sg_word from = halves ? W_f16x2 : W_f32;
    sg_column high = sg_source(l, &instruction->operands[1], from);
    sg_column low = halves ? high : sg_source(l, &instruction->operands[2], from);
    sg_insn *insn = sg_emit_to(l, l->attributes.type[0] == W_e4m3x2 ? H_cvt_e4m3 : H_cvt_e5m2,
                               sg_destination(l, &instruction->operands[0], W_b16), high);
    insn->operand[2] = low;
    insn->flags = (uint8_t)(l->attributes.relu | halves << 1);
}

void sg_lower_cvt_from_eighths(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_column source = sg_source(l, &instruction->operands[1], W_b16);
    sg_column destination = sg_destination(l, &instruction->operands[0], W_b32);
    sg_emit_to(l, l->attributes.type[1] == W_e4m3x2 ? H_cvt_f16x2_e4m3x2 : H_cvt_f16x2_e5m2x2, destination, source);
    if (!l->attributes.relu)
        return;
    sg_insn *insn = sg_emit_to(l, H_half_relu, destination, destination);
    insn->variant = W_f16x2;
    insn->flags = 1;
}

/* cvt.pack.sat.u8.s32.b32 d, a, b, c: a above b, and c above both. */
void sg_lower_cvt_pack(sg_lowering *l, const sg_instruction *instruction) {
    bool more = l->attributes.type_count == 3;
    sg_want_operands(l, more ? 4 : 3, more ? 4 : 3);
    sg_column columns[4] = {0};
    for (int i = 1; i < (more ? 4 : 3); i++)
        columns[i] = sg_source(l, &instruction->operands[i], i == 3 ? W_b32 : W_s32);
    columns[0] = sg_destination(l, &instruction->operands[0], W_b32);
    columns[3] = more ? columns[3] : sg_constant_column(l, 4, 0, NULL);
    sg_insn *insn = sg_emit(l, H_cvt_pack);
    for (int i = 0; i < 4; i++)
        insn->operand[i] = columns[i];
    insn->variant = (uint8_t)l->attributes.type[0];
}
