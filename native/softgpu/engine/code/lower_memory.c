/* Loads, stores, atomics. */
#include "lower.h"

/* The register that holds one component: `_` counts as one of the access's own width. */
static const sg_operand *component(sg_lowering *l, const sg_operand *operand, unsigned index, unsigned count) {
    if (operand->kind != OPERAND_VECTOR)
        return count == 1 ? operand : (sg_reject(l, "%u components expected", count), NULL);
    if (operand->item_count != count)
        sg_reject(l, "%zu components, expected %u", operand->item_count, count);
    return &operand->items[index];
}

static bool into_wide(const sg_operand *operand, sg_word type) {
    return operand->kind == OPERAND_REGISTER ? sg_width(operand->reg->type) == 8 : sg_width(type) == 8;
}

static sg_handler_id load_handler(sg_word type, bool wide) {
    bool is_signed = sg_words[type].kind == KIND_SIGNED;
    switch (sg_bits(type)) {
    case 8: return wide ? (is_signed ? H_ld_s8_64 : H_ld_u8_64) : is_signed ? H_ld_s8 : H_ld_u8;
    case 16: return wide ? (is_signed ? H_ld_s16_64 : H_ld_u16_64) : is_signed ? H_ld_s16 : H_ld_u16;
    case 32: return wide ? (is_signed ? H_ld_s32_64 : H_ld_u32_64) : H_ld_32;
    default: return H_ld_64;
    }
}

static sg_column load_destination(sg_lowering *l, const sg_operand *operand, sg_word type, bool wide) {
    if (operand->kind == OPERAND_SINK)
        return sg_scratch(l, wide ? 8 : 4);
    if (operand->kind != OPERAND_REGISTER || sg_words[operand->reg->type].kind == KIND_PREDICATE)
        sg_reject(l, "the destination is no register");
    if (sg_bits(operand->reg->type) < sg_bits(type) || (sg_width(operand->reg->type) == 8) != wide)
        sg_reject(l, "register %.60s is .%s, the access .%s", operand->reg->name, sg_words[operand->reg->type].text,
                  sg_words[type].text);
    return sg_register_column(l, operand->reg);
}

void sg_lower_ld(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_word type = l->attributes.type[0];
    unsigned count = l->attributes.vector;
    const sg_operand *to = &instruction->operands[0];
    bool wide = sg_width(type) == 8;
    for (unsigned i = 0; i < count; i++)
        if (component(l, to, i, count)->kind == OPERAND_REGISTER)
            wide = into_wide(component(l, to, i, count), type);
    sg_insn access = {.count = (uint8_t)count};
    sg_address(l, &instruction->operands[1], l->attributes.space, &access);
    for (unsigned i = 0; i < count; i++)
        access.operand[i] = load_destination(l, component(l, to, i, count), type, wide);
    access.handler = (uint16_t)load_handler(type, wide);
    *sg_emit(l, H_nop) = access;
    /* A signed byte in a 16-bit register is extended to 16 bits, not to the column's 32. */
    for (unsigned i = 0; i < count && type == W_s8; i++) {
        const sg_operand *part = component(l, to, i, count);
        if (part->kind == OPERAND_REGISTER && sg_bits(part->reg->type) == 16)
            sg_emit_to(l, H_zext16_32, access.operand[i], access.operand[i]);
    }
}

void sg_lower_st(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_word type = l->attributes.type[0];
    unsigned count = l->attributes.vector;
    sg_insn access = {.count = (uint8_t)count};
    if (l->attributes.space == W_constant)
        sg_reject(l, "constants are read-only");
    sg_address(l, &instruction->operands[0], l->attributes.space, &access);
    for (unsigned i = 0; i < count; i++)
        access.operand[i] = sg_low_source(l, component(l, &instruction->operands[1], i, count), type);
    unsigned bits = sg_bits(type);
    access.handler = bits == 8 ? H_st_8 : bits == 16 ? H_st_16 : bits == 32 ? H_st_32 : H_st_64;
    *sg_emit(l, H_nop) = access;
}

static sg_handler_id atomic_handler(sg_word type) {
    switch (type) {
    case W_f32: return H_atom_f32;
    case W_f64: return H_atom_f64;
    case W_f16x2: case W_bf16x2: return H_atom_f16x2;
    default: return sg_bits(type) == 64 ? H_atom_64 : sg_bits(type) == 16 ? H_atom_16 : H_atom_32;
    }
}

/* Not every operator has every type: the table lists words apart. */
static bool defined(sg_word operation, sg_word type) {
    sg_kind kind = sg_words[type].kind;
    switch (operation) {
    case W_add: return kind != KIND_BITS;
    case W_min: case W_max: return kind == KIND_SIGNED || kind == KIND_UNSIGNED;
    case W_inc: case W_dec: return type == W_u32;
    case W_and: case W_or: case W_xor: case W_cas: case W_exch: return kind != KIND_FLOAT;
    default: return false;
    }
}

void sg_lower_atom(sg_lowering *l, const sg_instruction *instruction) {
    bool wanted = instruction->opcode[0] == 'a'; /* red gives no result */
    bool swaps = l->attributes.operation == W_cas;
    size_t count = 2u + wanted + swaps;
    sg_want_operands(l, count, count);
    sg_word type = l->attributes.type[0];
    if (!defined(l->attributes.operation, type)) {
        sg_emit_unsupported(l, "%s", instruction->form);
        return;
    }
    const sg_operand *operands = &instruction->operands[wanted];
    sg_insn access = {.count = 1};
    sg_address(l, &operands[0], l->attributes.space, &access);
    access.operand[1] = sg_source(l, &operands[1], type);
    access.operand[2] = swaps ? sg_source(l, &operands[2], type) : access.operand[1];
    bool result = wanted && instruction->operands[0].kind != OPERAND_SINK;
    if (result)
        access.operand[0] = sg_destination(l, &instruction->operands[0], type);
    access.variant = (uint8_t)l->attributes.operation;
    access.flags = (uint8_t)((sg_words[type].kind == KIND_SIGNED) | result << 1 | (type == W_bf16x2) << 2);
    access.handler = (uint16_t)atomic_handler(type);
    *sg_emit(l, H_nop) = access;
}
