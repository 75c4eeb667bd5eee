/* Textures and surfaces: the object's handle in column 4, coordinates in 5 to 7, the layer in 7, components in
 * 0 to 3. */
#include "lower.h"

enum { LAYERED = 4 }; /* beside the number of dimensions: machine/texture.c */

static const sg_operand *item_of(sg_lowering *l, const sg_operand *operand, size_t index, size_t count) {
    if (operand->kind != OPERAND_VECTOR && count == 1)
        return operand;
    if (operand->kind != OPERAND_VECTOR || operand->item_count != count)
        sg_reject(l, "%zu components expected", count);
    return &operand->items[index];
}

static unsigned shape_of(const sg_instruction *instruction) {
    if (sg_has_word(instruction, W_a1d) || sg_has_word(instruction, W_a2d))
        return LAYERED | (sg_has_word(instruction, W_a2d) ? 2 : 1);
    return sg_has_word(instruction, W_3d) ? 3 : sg_has_word(instruction, W_2d) ? 2 : 1;
}

/* [handle, {x, y, z}], or a layer before them: three take four, the last of which is not looked at. */
static void object_address(sg_lowering *l, const sg_operand *operand, unsigned shape, sg_word type, sg_insn *access) {
    unsigned dimensions = shape & 3, layered = (shape & LAYERED) != 0;
    size_t wanted = dimensions + layered == 3 ? 4 : dimensions + layered;
    uint8_t space;
    if (operand->kind != OPERAND_ADDRESS || operand->item_count != wanted)
        sg_reject(l, "%zu coordinates expected", wanted);
    for (unsigned d = 0; d < dimensions; d++)
        access->operand[5 + d] = sg_source(l, &operand->items[d + layered], type);
    if (layered)
        access->operand[7] = sg_source(l, &operand->items[0], W_u32);
    access->operand[4] = sg_address_value(l, operand, W_none, &space);
}

void sg_lower_texture(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_word result = l->attributes.type[0], coordinate = l->attributes.type[1];
    sg_insn access = {.count = 4, .flags = (uint8_t)shape_of(instruction), .variant = coordinate == W_f32};
    object_address(l, &instruction->operands[1], access.flags, coordinate, &access);
    for (unsigned k = 0; k < 4; k++)
        access.operand[k] = sg_destination(l, item_of(l, &instruction->operands[0], k, 4), result);
    access.handler = H_texture;
    *sg_emit(l, H_nop) = access;
}

void sg_lower_texture_size(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    uint8_t space;
    sg_insn access = {.count = 1, .flags = instruction->opcode[0] == 's'};
    access.variant = sg_has_word(instruction, W_array_size) ? 3
                     : sg_has_word(instruction, W_depth)    ? 2
                     : sg_has_word(instruction, W_height)   ? 1 : 0;
    access.operand[4] = sg_address_value(l, &instruction->operands[1], W_none, &space);
    access.operand[0] = sg_destination(l, &instruction->operands[0], W_b32);
    access.handler = H_texture_size;
    *sg_emit(l, H_nop) = access;
}

static uint8_t outside(const sg_instruction *instruction) {
    return sg_has_word(instruction, W_zero) ? 2 : sg_has_word(instruction, W_clamp) ? 1 : 0;
}

static sg_insn surface_access(sg_lowering *l, const sg_instruction *instruction, const sg_operand *address) {
    unsigned shape = shape_of(instruction), bytes = sg_bits(l->attributes.type[0]) / 8;
    sg_insn access = {.count = (uint8_t)l->attributes.vector, .variant = outside(instruction),
                      .flags = (uint8_t)(shape | bytes << 4)};
    object_address(l, address, shape, W_s32, &access);
    return access;
}

/* A register may be wider than what is loaded, which is zero-extended. */
static sg_column loaded_into(sg_lowering *l, const sg_operand *operand, sg_word type) {
    if (operand->kind == OPERAND_SINK)
        return sg_scratch(l, sg_width(type));
    if (operand->kind != OPERAND_REGISTER || sg_words[operand->reg->type].kind == KIND_PREDICATE)
        sg_reject(l, "the destination is no register");
    if (sg_bits(operand->reg->type) < sg_bits(type) || sg_width(operand->reg->type) != sg_width(type))
        sg_reject(l, "register %.60s is .%s, the access .%s", operand->reg->name, sg_words[operand->reg->type].text,
                  sg_words[type].text);
    return sg_register_column(l, operand->reg);
}

void sg_lower_surface_load(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_insn access = surface_access(l, instruction, &instruction->operands[1]);
    for (unsigned k = 0; k < access.count; k++)
        access.operand[k] =
            loaded_into(l, item_of(l, &instruction->operands[0], k, access.count), l->attributes.type[0]);
    access.handler = H_surface_load;
    *sg_emit(l, H_nop) = access;
}

void sg_lower_surface_store(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_insn access = surface_access(l, instruction, &instruction->operands[0]);
    for (unsigned k = 0; k < access.count; k++)
        access.operand[k] =
            sg_low_source(l, item_of(l, &instruction->operands[1], k, access.count), l->attributes.type[0]);
    access.handler = H_surface_store;
    *sg_emit(l, H_nop) = access;
}
