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

/* What the access is most likely, by how its address is made: `handler` is the one for any. */
static uint16_t likeliest(const sg_insn *access, sg_handler_id handler, sg_word type) {
    if (access->count == 1 && access->space == SPACE_SHARED && access->mode == ADDRESS_NARROW)
        return (uint16_t)(handler + H_ld_32_shared - H_ld_32);
    if (access->count == 1 && access->mode >= ADDRESS_INDEX_S32 && (unsigned)access->target == sg_bytes(type) &&
        (access->space == SPACE_GLOBAL || access->space == SPACE_GENERIC))
        return (uint16_t)(handler + H_ld_32_row - H_ld_32);
    return (uint16_t)handler;
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

/* The operand of L2::cache_hint, a policy, comes last and is without effect. */
static void want_operands(sg_lowering *l, const sg_instruction *instruction, size_t count) {
    bool hinted = sg_has_word(instruction, W_l2_cache_hint);
    sg_want_operands(l, count + hinted, count + hinted);
    if (hinted)
        sg_source(l, &instruction->operands[count], W_b64);
}

/* .b128: as a vector of two 64-bit components. */
static void access_128(sg_lowering *l, const sg_operand *value, const sg_operand *address, bool load) {
    sg_insn access = {.count = 2, .handler = load ? H_ld_64 : H_st_64};
    sg_address(l, address, l->attributes.space, &access);
    for (unsigned i = 0; i < 2; i++) {
        sg_column half = sg_half_of_128(l, value, i, !load);
        access.operand[i] = half ? half : sg_scratch(l, 8);
    }
    *sg_emit(l, H_nop) = access;
}

void sg_lower_ld(sg_lowering *l, const sg_instruction *instruction) {
    want_operands(l, instruction, 2);
    sg_word type = l->attributes.type[0];
    unsigned count = l->attributes.vector;
    const sg_operand *to = &instruction->operands[0];
    if (type == W_b128) {
        if (count != 1)
            sg_reject(l, "a vector of .b128");
        access_128(l, to, &instruction->operands[1], true);
        return;
    }
    bool wide = sg_width(type) == 8;
    for (unsigned i = 0; i < count; i++)
        if (component(l, to, i, count)->kind == OPERAND_REGISTER)
            wide = into_wide(component(l, to, i, count), type);
    sg_insn access = {.count = (uint8_t)count};
    sg_address(l, &instruction->operands[1], l->attributes.space, &access);
    for (unsigned i = 0; i < count; i++)
        access.operand[i] = load_destination(l, component(l, to, i, count), type, wide);
    access.handler = likeliest(&access, load_handler(type, wide), type);
    *sg_emit(l, H_nop) = access;
    /* What is signed is extended to the 16 bits of such a register, not to the column's 32. */
    for (unsigned i = 0; i < count && (type == W_s8 || type == W_s16); i++) {
        const sg_operand *part = component(l, to, i, count);
        if (part->kind == OPERAND_REGISTER && sg_bits(part->reg->type) == 16)
            sg_emit_to(l, H_zext16_32, access.operand[i], access.operand[i]);
    }
}

void sg_lower_st(sg_lowering *l, const sg_instruction *instruction) {
    want_operands(l, instruction, 2);
    sg_word type = l->attributes.type[0];
    unsigned count = l->attributes.vector;
    sg_insn access = {.count = (uint8_t)count};
    if (l->attributes.space == W_constant)
        sg_reject(l, "constants are read-only");
    if (type == W_b128) {
        if (count != 1)
            sg_reject(l, "a vector of .b128");
        access_128(l, &instruction->operands[1], &instruction->operands[0], false);
        return;
    }
    sg_address(l, &instruction->operands[0], l->attributes.space, &access);
    for (unsigned i = 0; i < count; i++)
        access.operand[i] = sg_low_source(l, component(l, &instruction->operands[1], i, count), type);
    unsigned bits = sg_bits(type);
    sg_handler_id handler = bits == 8 ? H_st_8 : bits == 16 ? H_st_16 : bits == 32 ? H_st_32 : H_st_64;
    access.handler = likeliest(&access, handler, type);
    *sg_emit(l, H_nop) = access;
}

/* ---- atomics ---- */

static sg_handler_id atomic_handler(sg_word type) {
    switch (type) {
    case W_f32: return H_atom_f32;
    case W_f64: return H_atom_f64;
    case W_f16: case W_bf16: return H_atom_half;
    case W_f16x2: case W_bf16x2: return H_atom_f16x2;
    case W_b128: return H_atom_128;
    default: return sg_bits(type) == 64 ? H_atom_64 : sg_bits(type) == 16 ? H_atom_16 : H_atom_32;
    }
}

/* Operands of one component: `index` of a vector's. */
static void atomic_operands(sg_lowering *l, const sg_operand *from, bool swaps, bool wide, unsigned index, unsigned count,
                            sg_insn *access) {
    sg_word type = l->attributes.type[0];
    for (unsigned i = 1; i <= 1u + swaps; i++)
        access->operand[i] = wide ? sg_half_of_128(l, &from[i], 0, true)
                                  : sg_source(l, component(l, &from[i], index, count), type);
    for (unsigned i = 1; wide && i <= 1u + swaps; i++)
        access->operand[4 + i] = sg_half_of_128(l, &from[i], 1, true);
    if (!swaps)
        access->operand[2] = access->operand[1], access->operand[6] = access->operand[5];
}

/* Nothing else mentions the register: compilers have atom where they could have red. Uses are counted in
 * kernels only. */
static bool is_unread(const sg_operand *result) { return result->kind == OPERAND_REGISTER && result->reg->uses == 1; }

static bool counts(const sg_insn *access) {
    return access->variant == W_add && access->count == 1 && !(access->flags & 2) &&
           (access->space == SPACE_GLOBAL || access->space == SPACE_GENERIC);
}

/* Components of a vector are atomic one by one: an instruction each. The first checks the whole. */
void sg_lower_atom(sg_lowering *l, const sg_instruction *instruction) {
    bool wanted = instruction->opcode[0] == 'a'; /* red gives no result */
    bool swaps = l->attributes.operation == W_cas;
    want_operands(l, instruction, 2u + wanted + swaps);
    sg_word type = l->attributes.type[0];
    const sg_operand *operands = &instruction->operands[wanted], *to = &instruction->operands[0];
    unsigned count = l->attributes.vector;
    bool wide = type == W_b128, is_half = sg_is_bf16(type) || sg_is_f16(type);
    sg_insn access = {.count = (uint8_t)count, .variant = (uint8_t)l->attributes.operation};
    sg_address(l, &operands[0], l->attributes.space, &access);
    access.handler = (uint16_t)atomic_handler(type);
    sg_column results[8], parts[8];
    unsigned moved = 0;
    for (unsigned i = 0; i < count; i++) {
        atomic_operands(l, operands, swaps, wide, i, count, &access);
        const sg_operand *part = wanted && to->kind != OPERAND_SINK ? component(l, to, i, count) : NULL;
        bool result = part && part->kind != OPERAND_SINK;
        if (result)
            access.operand[0] = wide ? sg_half_of_128(l, part, 0, false) : sg_destination(l, part, type);
        if (result && wide)
            access.operand[7] = sg_half_of_128(l, part, 1, false);
        if (result && count > 1) { /* a result may be the address, or a source of a later component */
            results[moved] = access.operand[0];
            access.operand[0] = parts[moved++] = sg_scratch(l, 4);
        }
        result &= count > 1 || !part || !is_unread(part);
        access.flags = (uint8_t)((sg_words[type].kind == KIND_SIGNED) | result << 1 | (is_half && sg_is_bf16(type)) << 2);
        if (count == 1 && counts(&access) && (access.handler == H_atom_32 || access.handler == H_atom_64))
            access.handler = access.handler == H_atom_32 ? H_count_32 : H_count_64;
        *sg_emit(l, H_nop) = access;
        access.count = 1;
        access.immediate += sg_bytes(type);
    }
    while (moved--)
        sg_emit_to(l, H_mov_32, results[moved], parts[moved]);
}
