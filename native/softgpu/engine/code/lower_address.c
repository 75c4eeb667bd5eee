/* Addresses as values: between spaces, and in a cluster. */
#include "lower.h"

static uint64_t window_of(sg_word space) {
    switch (space) {
    case W_shared: case W_shared_cta: case W_shared_cluster: return SG_SHARED_WINDOW;
    case W_local: return SG_LOCAL_WINDOW;
    default: return 0;
    }
}

/* A kernel's parameters have a window; a function's lie in local memory. */
static uint64_t parameter_window(const sg_lowering *l) { return l->function->entry ? SG_PARAM_WINDOW : SG_LOCAL_WINDOW; }

/* Windows lie below 4 GiB, so that an address of 32 bits has a place too. */
void sg_lower_cvta(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_word type = l->attributes.type[0], space = l->attributes.space;
    bool wide = sg_bits(type) == 64;
    uint64_t offset = space == W_param ? parameter_window(l) : window_of(space);
    offset = sg_has_word(instruction, W_to) ? 0 - offset : offset;
    sg_column source = sg_source(l, &instruction->operands[1], type);
    sg_column destination = sg_destination(l, &instruction->operands[0], type);
    if (!wide) {
        sg_emit_to(l, H_add_32, destination, source)->operand[2] = sg_constant_column(l, 4, (uint32_t)offset, NULL);
        return;
    }
    sg_emit_to(l, offset ? H_offset_address : H_mov_64, destination, source)->immediate = (int64_t)offset;
}

void sg_lower_isspacep(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_column source = sg_source(l, &instruction->operands[1], W_b64);
    sg_insn *insn = sg_emit_to(l, H_isspacep, sg_destination(l, &instruction->operands[0], W_pred), source);
    switch (l->attributes.space) {
    case W_shared: case W_shared_cta: case W_shared_cluster: insn->space = SPACE_SHARED; break;
    case W_local: insn->space = SPACE_LOCAL; break;
    case W_param_entry: insn->space = SPACE_PARAM; break;
    case W_param_func: insn->space = SPACE_LOCAL; break;
    case W_param: insn->space = l->function->entry ? SPACE_PARAM : SPACE_LOCAL; break;
    default: insn->space = SPACE_GLOBAL;
    }
}

/* The address in the block of that rank. There is only rank 0; any other leads nowhere. */
void sg_lower_mapa(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    sg_column columns[8] = {0};
    sg_plain_operands(l, columns, false);
    bool wide = sg_bits(l->attributes.type[0]) == 64;
    sg_column own = sg_scratch(l, 1);
    sg_emit_to(l, H_eq_32, own, columns[2])->operand[2] = sg_constant_column(l, 4, 0, NULL);
    sg_insn *insn = sg_emit_to(l, wide ? H_selp_64 : H_selp_32, columns[0], columns[1]);
    insn->operand[2] = sg_constant_column(l, wide ? 8 : 4, wide ? ~(uint64_t)0 : 0xffffffff, NULL);
    insn->operand[3] = own;
}

void sg_lower_getctarank(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_source(l, &instruction->operands[1], l->attributes.type[0]);
    sg_emit_to(l, H_mov_32, sg_destination(l, &instruction->operands[0], W_u32), sg_constant_column(l, 4, 0, NULL));
}

/* A policy steers caches only: any value does. */
void sg_lower_createpolicy(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 1, 4);
    sg_emit_to(l, H_mov_64, sg_destination(l, &instruction->operands[0], W_b64), sg_constant_column(l, 8, 0, NULL));
}
