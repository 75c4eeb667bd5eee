/* Operands to columns. */
#include "lower.h"

#include <string.h>

unsigned sg_width(sg_word type) {
    if (sg_words[type].kind == KIND_PREDICATE)
        return 1;
    return sg_bits(type) > 64 ? 16 : sg_bits(type) > 32 ? 8 : 4;
}

static uint32_t column_bytes(unsigned width) {
    return width == 1 ? COLUMN_PREDICATE : width == 4 ? COLUMN_32 : COLUMN_64;
}

sg_column sg_scratch(sg_lowering *l, unsigned width) {
    sg_column *pool = width == 1 ? l->scratch_predicate : width == 4 ? l->scratch_32 : l->scratch_64;
    unsigned *used = width == 1 ? &l->used_predicate : width == 4 ? &l->used_32 : &l->used_64;
    unsigned *made = width == 1 ? &l->made_predicate : width == 4 ? &l->made_32 : &l->made_64;
    if (*used == SCRATCH_COLUMNS)
        sg_reject(l, "more operands than an instruction may have");
    if (*used == *made) {
        pool[(*made)++] = l->frame_bytes;
        l->frame_bytes += column_bytes(width);
    }
    return pool[(*used)++];
}

sg_column sg_register_column(sg_lowering *l, const sg_register *reg) {
    if (!reg->slot)
        sg_reject(l, "register %.60s is out of scope", reg->name);
    return reg->slot;
}

sg_column sg_constant_column(sg_lowering *l, unsigned width, uint64_t value, const sg_variable_ir *variable) {
    for (size_t i = 0; i < l->constant_count; i++)
        if (l->constants[i].value == value && l->constants[i].width == width && l->constants[i].variable == variable)
            return l->constants[i].column;
    l->constants = sg_grow(l->compiler, l->constants, l->constant_count, &l->constant_capacity, sizeof *l->constants);
    sg_constant *added = &l->constants[l->constant_count++];
    *added = (sg_constant){width, value, variable, (sg_column)l->constant_bytes | 1};
    l->constant_bytes += column_bytes(width);
    return added->column;
}

/* ---- constants ---- */

static uint64_t cut(uint64_t value, unsigned bits) { return bits >= 64 ? value : value & (((uint64_t)1 << bits) - 1); }

static sg_column float_constant(sg_lowering *l, const sg_operand *operand, sg_word type) {
    double wide;
    float single;
    uint32_t bits = (uint32_t)operand->integer;
    memcpy(&wide, &operand->integer, sizeof wide);
    memcpy(&single, &bits, sizeof single);
    bool from_single = operand->kind == OPERAND_SINGLE;
    if (sg_bits(type) == 64) {
        wide = from_single ? (double)single : wide;
        uint64_t value;
        memcpy(&value, &wide, sizeof value);
        return sg_constant_column(l, 8, value, NULL);
    }
    if (sg_bits(type) != 32)
        sg_reject(l, "a floating-point constant as .%s", sg_words[type].text);
    single = from_single ? single : (float)wide;
    memcpy(&bits, &single, sizeof bits);
    return sg_constant_column(l, 4, from_single ? operand->integer : bits, NULL);
}

static sg_column constant(sg_lowering *l, const sg_operand *operand, sg_word type) {
    if (sg_words[type].kind == KIND_PREDICATE) {
        if (operand->kind != OPERAND_INTEGER)
            sg_reject(l, "a predicate is 0 or 1");
        return sg_constant_column(l, 1, operand->integer ? ~(uint64_t)0 : 0, NULL);
    }
    if (operand->kind != OPERAND_INTEGER)
        return float_constant(l, operand, type);
    if (sg_words[type].kind == KIND_FLOAT && (type == W_f32 || type == W_f64))
        sg_reject(l, "an integer constant as .%s", sg_words[type].text);
    return sg_constant_column(l, sg_width(type), cut(operand->integer, sg_bits(type)), NULL);
}

/* ---- names: addresses as values ---- */

static sg_column from_frame(sg_lowering *l, sg_handler_id handler, uint64_t offset, unsigned width) {
    sg_column column = sg_scratch(l, width);
    sg_insn *insn = sg_emit(l, handler);
    insn->operand[0] = column;
    insn->immediate = (int64_t)offset;
    insn->flags = width == 8;
    return column;
}

static bool is_kernel_parameter(const sg_variable_ir *variable) {
    if (variable->space != W_param || !variable->owner || !variable->owner->entry)
        return false;
    for (size_t i = 0; i < variable->owner->param_count; i++)
        if (variable->owner->params[i] == variable)
            return true;
    return false;
}

static sg_column variable_address(sg_lowering *l, const sg_operand *operand, unsigned width) {
    const sg_variable_ir *variable = operand->variable;
    switch (variable->space) {
    case W_global: case W_constant:
        if (variable->linkage == LINK_EXTERN)
            sg_reject(l, "variable %.100s is declared extern and defined nowhere", variable->name);
        return sg_constant_column(l, width, operand->integer, variable);
    case W_shared:
        if (!variable->size)
            return from_frame(l, H_dynamic_shared, operand->integer, width);
        return sg_constant_column(l, width, variable->address + operand->integer, NULL);
    default:
        if (is_kernel_parameter(variable))
            return sg_constant_column(l, width, variable->address + operand->integer, NULL);
        return from_frame(l, H_local_address, variable->address + operand->integer, width);
    }
}

static sg_column name_value(sg_lowering *l, const sg_operand *operand, sg_word type) {
    unsigned width = sg_width(type);
    if (sg_bits(type) < 32)
        sg_reject(l, "an address as .%s", sg_words[type].text);
    if (operand->variable)
        return variable_address(l, operand, width);
    const sg_function *function = sg_find_function(l->module->ir, operand->name);
    if (!function)
        sg_reject(l, "%.100s is not defined", operand->name);
    return sg_constant_column(l, width, SG_CODE_WINDOW + 16 * function->index, NULL);
}

/* ---- registers ---- */

static void check_kind(sg_lowering *l, const sg_register *reg, sg_word type) {
    sg_kind have = sg_words[reg->type].kind, want = sg_words[type].kind;
    bool wrong = (have == KIND_PREDICATE) != (want == KIND_PREDICATE);
    wrong |= have == KIND_FLOAT && (want == KIND_SIGNED || want == KIND_UNSIGNED);
    wrong |= want == KIND_FLOAT && (have == KIND_SIGNED || have == KIND_UNSIGNED);
    if (wrong)
        sg_reject(l, "register %.60s is .%s, not .%s", reg->name, sg_words[reg->type].text, sg_words[type].text);
}

static sg_column special_value(sg_lowering *l, const sg_operand *operand, sg_word type) {
    unsigned bits = sg_special_bits(operand->special);
    sg_column column = sg_scratch(l, bits == 64 ? 8 : 4);
    sg_insn *insn = sg_emit(l, H_special);
    insn->operand[0] = column;
    insn->immediate = operand->special;
    if (sg_width(type) == (bits == 64 ? 8u : 4u)) {
        if (sg_bits(type) < 32)
            sg_emit_to(l, H_zext16_32, column, column);
        return column;
    }
    sg_column other = sg_scratch(l, sg_width(type));
    sg_emit_to(l, bits == 64 ? H_trunc_32 : H_zext32_64, other, column);
    return other;
}

static sg_column negated(sg_lowering *l, sg_column column) {
    sg_column result = sg_scratch(l, 1);
    sg_emit_to(l, H_not_pred, result, column);
    return result;
}

sg_column sg_source(sg_lowering *l, const sg_operand *operand, sg_word type) {
    switch (operand->kind) {
    case OPERAND_REGISTER:
        check_kind(l, operand->reg, type);
        if (sg_bits(operand->reg->type) != sg_bits(type))
            sg_reject(l, "register %.60s is .%s, the instruction takes .%s", operand->reg->name,
                      sg_words[operand->reg->type].text, sg_words[type].text);
        if (operand->negated)
            return negated(l, sg_register_column(l, operand->reg));
        return sg_register_column(l, operand->reg);
    case OPERAND_SPECIAL: return special_value(l, operand, type);
    case OPERAND_NAME: return name_value(l, operand, type);
    case OPERAND_INTEGER: case OPERAND_SINGLE: case OPERAND_DOUBLE: return constant(l, operand, type);
    case OPERAND_VECTOR: /* `{ %r1 }`: one element is that element */
        if (operand->item_count == 1)
            return sg_source(l, &operand->items[0], type);
        break;
    default: break;
    }
    sg_reject(l, "an operand that cannot be read here");
}

sg_column sg_low_source(sg_lowering *l, const sg_operand *operand, sg_word type) {
    if (operand->kind == OPERAND_VECTOR && operand->item_count == 1)
        operand = &operand->items[0];
    if (operand->kind != OPERAND_REGISTER || sg_bits(operand->reg->type) == sg_bits(type))
        return sg_source(l, operand, type);
    check_kind(l, operand->reg, type);
    if (sg_bits(operand->reg->type) < sg_bits(type))
        sg_reject(l, "register %.60s is narrower than .%s", operand->reg->name, sg_words[type].text);
    sg_column column = sg_register_column(l, operand->reg);
    if (sg_width(operand->reg->type) == sg_width(type))
        return column;
    sg_column low = sg_scratch(l, 4);
    sg_emit_to(l, H_trunc_32, low, column);
    return low;
}

sg_column sg_destination(sg_lowering *l, const sg_operand *operand, sg_word type) {
    if (operand->kind == OPERAND_VECTOR && operand->item_count == 1)
        operand = &operand->items[0];
    if (operand->kind == OPERAND_SINK)
        return sg_scratch(l, sg_width(type));
    if (operand->kind != OPERAND_REGISTER)
        sg_reject(l, "the destination is no register");
    check_kind(l, operand->reg, type);
    if (sg_bits(operand->reg->type) != sg_bits(type))
        sg_reject(l, "register %.60s is .%s, the result is .%s", operand->reg->name, sg_words[operand->reg->type].text,
                  sg_words[type].text);
    return sg_register_column(l, operand->reg);
}

void sg_store_integer(sg_lowering *l, sg_column source, sg_word type, const sg_operand *destination) {
    if (destination->kind == OPERAND_VECTOR && destination->item_count == 1)
        destination = &destination->items[0];
    if (destination->kind == OPERAND_SINK)
        return;
    if (destination->kind != OPERAND_REGISTER)
        sg_reject(l, "the destination is no register");
    const sg_register *reg = destination->reg;
    check_kind(l, reg, type);
    if (sg_bits(reg->type) < sg_bits(type))
        sg_reject(l, "register %.60s is narrower than .%s", reg->name, sg_words[type].text);
    sg_column column = sg_register_column(l, reg);
    bool is_signed = sg_words[type].kind == KIND_SIGNED;
    if (sg_width(reg->type) == 8)
        sg_emit_to(l, sg_width(type) == 8 ? H_mov_64 : is_signed ? H_sext32_64 : H_zext32_64, column, source);
    else
        sg_emit_to(l, sg_bits(reg->type) == 16 ? H_zext16_32 : sg_bits(reg->type) == 8 ? H_zext8_32 : H_mov_32, column,
                   source);
}

sg_column sg_half_of_128(sg_lowering *l, const sg_operand *operand, unsigned index, bool source) {
    if (operand->kind == OPERAND_SINK && !source)
        return 0;
    if (operand->kind == OPERAND_REGISTER && operand->reg->type == W_b128)
        return sg_register_column(l, operand->reg) + index * COLUMN_64;
    if (operand->kind != OPERAND_VECTOR || operand->item_count != 2)
        sg_reject(l, "a .b128 register or two halves expected");
    if (operand->items[index].kind == OPERAND_SINK && !source)
        return 0;
    return source ? sg_source(l, &operand->items[index], W_b64) : sg_destination(l, &operand->items[index], W_b64);
}

/* ---- addresses ---- */

static uint8_t space_of(sg_lowering *l, sg_word space, const sg_operand *operand) {
    switch (space) {
    case W_none: return SPACE_GENERIC;
    case W_global: case W_constant: return SPACE_GLOBAL;
    case W_shared: case W_shared_cta: case W_shared_cluster: return SPACE_SHARED;
    case W_local: return SPACE_LOCAL;
    default: break;
    }
    if (operand->variable)
        return is_kernel_parameter(operand->variable) ? SPACE_PARAM : SPACE_LOCAL;
    return l->function->entry ? SPACE_PARAM : SPACE_LOCAL;
}

static void check_space(sg_lowering *l, const sg_variable_ir *variable, sg_word space) {
    sg_word plain = space == W_shared_cta || space == W_shared_cluster ? W_shared : space == W_param_entry || space == W_param_func ? W_param : space;
    if (space != W_none && variable->space != plain)
        sg_reject(l, "%.100s lies in .%s, not in .%s", variable->name, sg_words[variable->space].text,
                  sg_words[plain].text);
}

static void named_address(sg_lowering *l, const sg_operand *operand, sg_word space, sg_insn *access) {
    const sg_variable_ir *variable = operand->variable;
    check_space(l, variable, space);
    bool in_frame = variable->space == W_local || (variable->space == W_param && !is_kernel_parameter(variable));
    if (space == W_none && variable->space != W_global && variable->space != W_constant)
        access->space = variable->space == W_shared ? SPACE_SHARED : in_frame ? SPACE_LOCAL : SPACE_PARAM;
    if (in_frame || (variable->space == W_shared && variable->size) || is_kernel_parameter(variable)) {
        access->mode = in_frame ? ADDRESS_FRAME : ADDRESS_ABSOLUTE;
        access->immediate = (int64_t)(variable->address + operand->integer);
        return;
    }
    access->mode = ADDRESS_WIDE;
    access->operand[4] = variable_address(l, &(sg_operand){.variable = operand->variable}, 8);
    access->immediate = (int64_t)operand->integer;
}

void sg_address(sg_lowering *l, const sg_operand *operand, sg_word space, sg_insn *access) {
    if (operand->kind != OPERAND_ADDRESS)
        sg_reject(l, "an address in brackets expected");
    access->space = space_of(l, space, operand);
    if (operand->reg) {
        unsigned bits = sg_bits(operand->reg->type);
        if (bits != 32 && bits != 64)
            sg_reject(l, "register %.60s is .%s and cannot hold an address", operand->reg->name,
                      sg_words[operand->reg->type].text);
        access->mode = bits == 64 ? ADDRESS_WIDE : ADDRESS_NARROW;
        access->operand[4] = sg_register_column(l, operand->reg);
        access->immediate = (int64_t)operand->integer;
        if (operand->index) {
            access->mode = operand->index_type == W_s32 ? ADDRESS_INDEX_S32
                           : operand->index_type == W_u32 ? ADDRESS_INDEX_U32 : ADDRESS_INDEX_64;
            access->operand[5] = sg_register_column(l, operand->index);
            access->target = (int32_t)operand->scale;
        }
    } else if (operand->variable) {
        named_address(l, operand, space, access);
    } else if (operand->name) {
        sg_reject(l, "variable %.100s is not declared", operand->name);
    } else {
        access->mode = ADDRESS_ABSOLUTE;
        access->immediate = (int64_t)operand->integer;
    }
}

sg_column sg_address_value(sg_lowering *l, const sg_operand *operand, sg_word space, uint8_t *found_space) {
    sg_insn access = {0};
    sg_address(l, operand, space, &access);
    *found_space = access.space;
    sg_column value = access.operand[4], wide;
    switch (access.mode) {
    case ADDRESS_ABSOLUTE: return sg_constant_column(l, 8, (uint64_t)access.immediate, NULL);
    case ADDRESS_FRAME: return from_frame(l, H_local_address, (uint64_t)access.immediate, 8);
    case ADDRESS_NARROW:
        wide = sg_scratch(l, 8);
        sg_emit_to(l, H_zext32_64, wide, value);
        value = wide;
        break;
    default: break;
    }
    if (!access.immediate)
        return value;
    wide = sg_scratch(l, 8);
    sg_emit_to(l, H_offset_address, wide, value)->immediate = access.immediate;
    return wide;
}
