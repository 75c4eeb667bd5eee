/* wgmma.mma_async: four warps multiply 64 rows by what lies in shared memory. */
#include "lower.h"

#include <string.h>

static bool shape_exists(sg_word type, const uint16_t shape[3]) {
    unsigned n = shape[1], depth = 256 / sg_words[type].bits; /* always 32 bytes */
    bool integers = type == W_s8 || type == W_u8 || type == W_b1;
    if (shape[0] != 64 || shape[2] != depth || n == 0 || n > 256 || n % 8)
        return false;
    return !integers || n <= 24 || n % 16 == 0;
}

/* An immediate operand that must be one of two values: whether it is the second. */
static bool choice(sg_lowering *l, const sg_operand *operand, int64_t first, int64_t second) {
    int64_t value = (int64_t)operand->integer;
    if (operand->kind != OPERAND_INTEGER || (value != first && value != second))
        sg_reject(l, "a constant of %lld or %lld expected", (long long)first, (long long)second);
    return value == second;
}

/* scale-a, scale-b, and for 16-bit types where k does not run fastest trans-a (in memory) and trans-b. */
static void read_modifiers(sg_lowering *l, sg_product *product, const sg_operand *operands) {
    product->negate = choice(l, operands, 1, -1) != choice(l, operands + 1, 1, -1);
    if (sg_words[product->a.type].bits != 16)
        return;
    operands += 2;
    if (product->a_in_memory)
        product->a_transposed = choice(l, operands++, 0, 1);
    product->b_transposed = choice(l, operands, 0, 1);
}

static size_t operands_wanted(sg_word type, bool a_in_memory) {
    if (type == W_s8 || type == W_u8 || type == W_b1)
        return 4;
    return sg_words[type].bits == 16 ? 7u + a_in_memory : 6;
}

void sg_lower_wgmma(sg_lowering *l, const sg_instruction *instruction) {
    const sg_word *type = l->attributes.type;
    const sg_operand *operands = instruction->operands;
    if (!shape_exists(type[1], instruction->shape)) {
        sg_emit_unsupported(l, "%s", instruction->form);
        return;
    }
    sg_want_operands(l, 4, 8);
    bool a_in_memory = operands[1].kind != OPERAND_VECTOR;
    size_t wanted = operands_wanted(type[1], a_in_memory);
    sg_want_operands(l, wanted, wanted);
    int32_t index;
    sg_product *product = sg_add_product(l, &index);
    product->a_in_memory = a_in_memory;
    product->saturate = sg_has_word(instruction, W_satfinite);
    product->m = 16; /* of each warp */
    product->a = sg_matrix_tiles(l, product, 'a', type[1], a_in_memory ? NULL : &operands[1]);
    product->b = sg_matrix_tiles(l, product, 'b', type[2], NULL);
    product->d = sg_matrix_tiles(l, product, 'd', type[0], &operands[0]);
    product->c = product->d;
    if (wanted > 4)
        read_modifiers(l, product, &operands[4]);
    sg_column descriptor = a_in_memory ? sg_source(l, &operands[1], W_b64) : 0;
    sg_column other = sg_source(l, &operands[2], W_b64), scale = sg_source(l, &operands[3], W_pred);
    sg_insn *insn = sg_emit_to(l, H_wgmma, descriptor, other);
    insn->operand[2] = scale;
    insn->target = index;
}
