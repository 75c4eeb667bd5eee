/* Matrix instructions of one warp: mma, wmma, ldmatrix and their like. wgmma is in lower_wgmma.c. */
#include "lower.h"

#include <string.h>

/* ---- which shapes there are ---- */

typedef struct {
    const char *opcode;
    sg_word type; /* of a */
    uint16_t shape[3];
} shape_fact;

static const shape_fact shapes[] = {
    {"mma", W_f16, {16, 8, 8}},     {"mma", W_f16, {16, 8, 16}},    {"mma", W_bf16, {16, 8, 8}},
    {"mma", W_bf16, {16, 8, 16}},   {"mma", W_tf32, {16, 8, 4}},    {"mma", W_tf32, {16, 8, 8}},
    {"mma", W_e4m3, {16, 8, 16}},   {"mma", W_e4m3, {16, 8, 32}},   {"mma", W_e5m2, {16, 8, 16}},
    {"mma", W_e5m2, {16, 8, 32}},   {"mma", W_s8, {8, 8, 16}},      {"mma", W_s8, {16, 8, 16}},
    {"mma", W_s8, {16, 8, 32}},     {"mma", W_s4, {8, 8, 32}},      {"mma", W_s4, {16, 8, 32}},
    {"mma", W_s4, {16, 8, 64}},     {"mma", W_b1, {8, 8, 128}},     {"mma", W_b1, {16, 8, 128}},
    {"mma", W_b1, {16, 8, 256}},    {"mma", W_f64, {8, 8, 4}},      {"mma", W_f64, {16, 8, 4}},
    {"mma", W_f64, {16, 8, 8}},     {"mma", W_f64, {16, 8, 16}},    {"wmma", W_f16, {16, 16, 16}},
    {"wmma", W_f16, {32, 8, 16}},   {"wmma", W_f16, {8, 32, 16}},   {"wmma", W_bf16, {16, 16, 16}},
    {"wmma", W_bf16, {32, 8, 16}},  {"wmma", W_bf16, {8, 32, 16}},  {"wmma", W_s8, {16, 16, 16}},
    {"wmma", W_s8, {32, 8, 16}},    {"wmma", W_s8, {8, 32, 16}},    {"wmma", W_tf32, {16, 16, 8}},
    {"wmma", W_f64, {8, 8, 4}},     {"wmma", W_s4, {8, 8, 32}},     {"wmma", W_b1, {8, 8, 128}}};

static sg_word signless(sg_word type) { return type == W_u8 ? W_s8 : type == W_u4 ? W_s4 : type; }

static bool shape_exists(const char *opcode, sg_word type, const uint16_t shape[3]) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].opcode, opcode) && shapes[i].type == signless(type) &&
            !memcmp(shapes[i].shape, shape, sizeof shapes[i].shape))
            return true;
    return false;
}

/* The fragment of an accumulator is loaded without a word of what will be multiplied. */
static bool accumulator_exists(sg_word type, const uint16_t shape[3]) {
    static const sg_word of_integers[] = {W_s8, W_s4, W_b1}, of_floats[] = {W_f16, W_bf16, W_tf32};
    if (type == W_f64)
        return shape_exists("wmma", W_f64, shape);
    if (type == W_f16)
        return shape_exists("wmma", W_f16, shape);
    for (int i = 0; i < 3; i++)
        if (shape_exists("wmma", type == W_s32 ? of_integers[i] : of_floats[i], shape))
            return true;
    return false;
}

/* ---- the parts of a product ---- */

sg_product *sg_add_product(sg_lowering *l, int32_t *index) {
    sg_module *module = l->module;
    if (module->product_count % 64 == 0) {
        sg_product *grown = sg_allocate(l->compiler, (module->product_count + 64) * sizeof *grown);
        if (module->product_count)
            memcpy(grown, module->products, module->product_count * sizeof *grown);
        module->products = grown;
    }
    *index = (int32_t)module->product_count;
    sg_product *product = &module->products[module->product_count++];
    *product = (sg_product){0};
    memcpy(&product->m, l->instruction->shape, sizeof l->instruction->shape);
    return product;
}

static unsigned element_bits(sg_word type) { return sg_words[type].bits; }
static bool is_accumulator(char role) { return role == 'c' || role == 'd'; }

/* Role a, b, c or d of a product; registers are still to be found. */
static sg_tiles tiles_of(const sg_lowering *l, const sg_product *product, char role, sg_word type) {
    sg_tiles tiles = {.type = type, .across = role == 'b'};
    tiles.rows = role == 'b' ? product->n : product->m;
    tiles.columns = is_accumulator(role) ? product->n : product->k;
    tiles.paired = is_accumulator(role) && type != W_f16;
    unsigned width = tiles.paired ? 8 : type == W_f64 ? 4 : 128 / element_bits(type);
    tiles.count = (uint16_t)(tiles.rows / 8 * (tiles.columns / width) * (tiles.paired ? 2 : 1));
    if (!strcmp(l->instruction->opcode, "wmma") && type == W_f16 && !is_accumulator(role))
        tiles.count = 8; /* whatever the shape */
    return tiles;
}

static sg_word register_type(sg_word type) {
    return type == W_f64 || type == W_f32 || type == W_s32 ? type : W_b32;
}

static void find_registers(sg_lowering *l, sg_tiles *tiles, const sg_operand *operand, bool written) {
    bool list = operand->kind == OPERAND_VECTOR;
    size_t count = list ? operand->item_count : 1;
    if (count != tiles->count)
        sg_reject(l, "%zu registers where .%s takes %u", count, sg_words[tiles->type].text, tiles->count);
    tiles->registers = sg_allocate(l->compiler, count * sizeof *tiles->registers);
    for (size_t i = 0; i < count; i++) {
        const sg_operand *item = list ? &operand->items[i] : operand;
        sg_word type = register_type(tiles->type);
        tiles->registers[i] = written ? sg_destination(l, item, type) : sg_source(l, item, type);
    }
}

sg_tiles sg_matrix_tiles(sg_lowering *l, const sg_product *product, char role, sg_word type, const sg_operand *operand) {
    sg_tiles tiles = tiles_of(l, product, role, type);
    if (operand)
        find_registers(l, &tiles, operand, role == 'd');
    return tiles;
}

/* ---- mma.sync and wmma.mma ---- */

static void lower_product(sg_lowering *l, sg_word d, sg_word a, sg_word b, sg_word c) {
    const sg_instruction *instruction = l->instruction;
    sg_want_operands(l, 4, 4);
    if (!shape_exists(instruction->opcode, a, instruction->shape)) {
        sg_emit_unsupported(l, "%s", instruction->form);
        return;
    }
    int32_t index;
    sg_product *product = sg_add_product(l, &index);
    const sg_operand *operands = instruction->operands;
    product->a = sg_matrix_tiles(l, product, 'a', a, &operands[1]);
    product->b = sg_matrix_tiles(l, product, 'b', b, &operands[2]);
    product->c = sg_matrix_tiles(l, product, 'c', c, &operands[3]);
    product->d = sg_matrix_tiles(l, product, 'd', d, &operands[0]);
    product->saturate = sg_has_word(instruction, W_satfinite);
    product->exclusive = sg_has_word(instruction, W_xor);
    sg_emit(l, H_mma)->target = index;
}

void sg_lower_mma(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    const sg_word *type = l->attributes.type;
    lower_product(l, type[0], type[1], type[2], type[3]);
}

/* wmma names only the accumulators where it multiplies f16. */
void sg_lower_wmma_half(sg_lowering *l, const sg_instruction *instruction) {
    (void)instruction;
    lower_product(l, l->attributes.type[0], W_f16, W_f16, l->attributes.type[1]);
}

/* ---- wmma.load and .store: operand 4 the address, 5 the stride; flags: 1 along the tiles' rows lie elements a
 * stride apart, 2 there is no stride, so that lines follow one another ---- */

static void lower_move(sg_lowering *l, char role, const sg_operand *address, const sg_operand *registers,
                       const sg_operand *stride) {
    const sg_instruction *instruction = l->instruction;
    sg_word type = l->attributes.type[0];
    bool exists = is_accumulator(role) ? accumulator_exists(type, instruction->shape)
                                       : shape_exists("wmma", type, instruction->shape);
    if (!exists) {
        sg_emit_unsupported(l, "%s", instruction->form);
        return;
    }
    int32_t index;
    sg_product *product = sg_add_product(l, &index);
    sg_insn access = {.count = 1, .target = index};
    sg_address(l, address, l->attributes.space, &access);
    access.operand[5] = stride ? sg_source(l, stride, W_b32) : 0;
    bool loads = l->form->handler == H_wmma_load;
    product->d = tiles_of(l, product, role, type);
    find_registers(l, &product->d, registers, loads);
    bool row_major = sg_has_word(instruction, W_row);
    access.flags = (uint8_t)((row_major == (role == 'b')) | !stride << 1);
    access.handler = (uint16_t)l->form->handler;
    *sg_emit(l, H_nop) = access;
}

void sg_lower_wmma_load(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 3);
    const sg_operand *operands = instruction->operands;
    char role = sg_has_word(instruction, W_a) ? 'a' : sg_has_word(instruction, W_b) ? 'b' : 'c';
    lower_move(l, role, &operands[1], &operands[0], instruction->operand_count == 3 ? &operands[2] : NULL);
}

void sg_lower_wmma_store(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 3);
    const sg_operand *operands = instruction->operands;
    lower_move(l, 'd', &operands[0], &operands[1], instruction->operand_count == 3 ? &operands[2] : NULL);
}

/* ---- ldmatrix, stmatrix, movmatrix: operands 0 to 3 the matrices, 4 the address; flags: 1 transposed ---- */

static void lower_eights(sg_lowering *l, const sg_operand *address, const sg_operand *registers, bool written) {
    unsigned count = sg_has_word(l->instruction, W_x4) ? 4 : sg_has_word(l->instruction, W_x2) ? 2 : 1;
    sg_insn access = {.count = (uint8_t)count, .flags = sg_has_word(l->instruction, W_trans)};
    sg_tiles tiles = {.type = W_b16, .count = (uint16_t)count};
    sg_address(l, address, l->attributes.space, &access);
    find_registers(l, &tiles, registers, written);
    memcpy(access.operand, tiles.registers, count * sizeof *access.operand);
    access.handler = (uint16_t)l->form->handler;
    *sg_emit(l, H_nop) = access;
}

void sg_lower_ldmatrix(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    lower_eights(l, &instruction->operands[1], &instruction->operands[0], true);
}

void sg_lower_stmatrix(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    lower_eights(l, &instruction->operands[0], &instruction->operands[1], false);
}

void sg_lower_movmatrix(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_column source = sg_source(l, &instruction->operands[1], W_b32);
    sg_emit_to(l, H_movmatrix, sg_destination(l, &instruction->operands[0], W_b32), source);
}
