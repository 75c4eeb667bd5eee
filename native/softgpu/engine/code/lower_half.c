/* f16 and bf16. */
#include "lower.h"

bool sg_is_f16(sg_word type) { return type == W_f16 || type == W_f16x2; }
bool sg_is_bf16(sg_word type) { return type == W_bf16 || type == W_bf16x2; }

static bool is_pair(sg_word type) { return type == W_f16x2 || type == W_bf16x2; }

sg_column sg_flushed_half(sg_lowering *l, sg_column source, sg_word type) {
    sg_column column = sg_scratch(l, 4);
    sg_emit_to(l, H_flush_f16, column, source)->flags = is_pair(type);
    return column;
}

static sg_handler_id magnitude_handler(sg_word type) {
    switch (type) {
    case W_f16: return H_abs_f16;
    case W_bf16: return H_abs_bf16;
    case W_f16x2: return H_abs_f16x2;
    default: return H_abs_bf16x2;
    }
}

/* The result, of `.relu` or `.sat` clamped, `.ftz` flushed, in place. */
static void finish(sg_lowering *l, sg_column column, sg_word type) {
    if (l->attributes.sat || l->attributes.relu) {
        sg_insn *insn = sg_emit_to(l, l->attributes.sat ? H_half_saturate : H_half_relu, column, column);
        insn->variant = (uint8_t)type;
        insn->flags = is_pair(type);
    }
    if (l->attributes.ftz && sg_is_f16(type))
        sg_emit_to(l, H_flush_f16, column, column)->flags = is_pair(type);
}

void sg_lower_half(sg_lowering *l, const sg_instruction *instruction) {
    sg_column columns[8] = {0}, source[8];
    size_t count = sg_plain_operands(l, columns, false);
    sg_word type = l->attributes.type[0];
    bool magnitudes = sg_has_word(instruction, W_xorsign);
    for (size_t i = 1; i < count; i++) {
        source[i] = columns[i];
        if (l->attributes.ftz && sg_is_f16(type))
            columns[i] = sg_flushed_half(l, columns[i], type);
        if (magnitudes) {
            sg_column magnitude = sg_scratch(l, 4);
            sg_emit_to(l, magnitude_handler(type), magnitude, columns[i]);
            columns[i] = magnitude;
        }
    }
    for (size_t i = count; i < 4; i++)
        columns[i] = columns[1]; /* handlers of this family read three sources */
    sg_column destination = columns[0];
    if (magnitudes)
        columns[0] = sg_scratch(l, 4);
    sg_emit_plain(l, l->form->handler, columns, 4)->flags = l->attributes.nan;
    if (magnitudes) {
        sg_insn *insn = sg_emit_to(l, H_half_xorsign, destination, columns[0]);
        insn->operand[2] = source[1], insn->operand[3] = source[2];
        insn->variant = (uint8_t)type;
        insn->flags = is_pair(type);
    }
    finish(l, destination, type);
}
