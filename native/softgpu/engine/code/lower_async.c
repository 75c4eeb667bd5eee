/* cp.async, and the barriers in shared memory that programs wait for it with. */
#include "lower.h"

/* [to], [from], size, and of what is read: its size, or a predicate that nothing is. */
void sg_lower_cp_async(sg_lowering *l, const sg_instruction *instruction) {
    bool hinted = sg_has_word(instruction, W_l2_cache_hint);
    sg_want_operands(l, 3u + hinted, 4u + hinted);
    const sg_operand *operands = instruction->operands, *size = &operands[2];
    bool whole = sg_has_word(instruction, W_cg); /* .cg takes 16 bytes only */
    if (size->kind != OPERAND_INTEGER || (size->integer != 16 && (whole || (size->integer != 4 && size->integer != 8))))
        sg_reject(l, "the size is %s", whole ? "16" : "4, 8 or 16");
    const sg_operand *cut = instruction->operand_count == 4u + hinted ? &operands[3] : NULL;
    bool ignore = cut && cut->kind == OPERAND_REGISTER && sg_words[cut->reg->type].kind == KIND_PREDICATE;
    uint8_t from_space;
    sg_column from = sg_address_value(l, &operands[1], W_global, &from_space);
    sg_column limit = !cut ? 0 : sg_source(l, cut, ignore ? W_pred : W_b32);
    sg_insn access = {.count = (uint8_t)size->integer, .handler = H_cp_async};
    sg_address(l, &operands[0], W_shared, &access);
    access.operand[1] = from;
    access.operand[2] = limit;
    access.flags = !cut ? 0 : ignore ? 2 : 1;
    *sg_emit(l, H_nop) = access;
}

/* The space, where it is not named, is found out from a generic address. */
static sg_insn at_barrier(sg_lowering *l, const sg_operand *operand, sg_handler_id handler) {
    sg_insn access = {.count = 1, .handler = (uint16_t)handler};
    sg_address(l, operand, l->attributes.space, &access);
    return access;
}

void sg_lower_mbarrier_init(sg_lowering *l, const sg_instruction *instruction) {
    bool inval = sg_has_word(instruction, W_inval);
    sg_want_operands(l, inval ? 1 : 2, inval ? 1 : 2);
    sg_insn access = at_barrier(l, &instruction->operands[0], H_mbarrier_init);
    if (!inval)
        access.operand[1] = sg_source(l, &instruction->operands[1], W_b32);
    access.flags = inval;
    *sg_emit(l, H_nop) = access;
}

/* flags: 1 a state is wanted, 2 .arrive_drop, 4 a transaction count (operand 2). */
static void emit_arrival(sg_lowering *l, const sg_operand *to, const sg_operand *at, sg_column count, sg_column bytes,
                         uint8_t flags) {
    sg_insn access = at_barrier(l, at, H_mbarrier_arrive);
    bool wanted = to && to->kind != OPERAND_SINK;
    access.operand[0] = wanted ? sg_destination(l, to, W_b64) : 0;
    access.operand[1] = count;
    access.operand[2] = bytes;
    access.flags = (uint8_t)(flags | wanted);
    *sg_emit(l, H_nop) = access;
}

void sg_lower_mbarrier_arrive(sg_lowering *l, const sg_instruction *instruction) {
    bool expects = sg_has_word(instruction, W_expect_tx), counted = sg_has_word(instruction, W_no_complete);
    const sg_operand *operands = instruction->operands;
    sg_want_operands(l, 1, 3);
    bool stateless = operands[0].kind == OPERAND_ADDRESS; /* mbarrier.arrive_drop may come without */
    const sg_operand *at = &operands[!stateless];
    size_t more = instruction->operand_count - 1u - !stateless;
    if (at->kind != OPERAND_ADDRESS || more > 1 || (more == 0 && (expects || counted)))
        sg_reject(l, "a state or _, an address%s expected", expects ? " and a transaction count" : " and perhaps a count");
    sg_column one = sg_constant_column(l, 4, 1, NULL);
    sg_column given = more ? sg_source(l, at + 1, W_b32) : one;
    uint8_t flags = (uint8_t)(sg_has_word(instruction, W_arrive_drop) << 1 | expects << 2);
    emit_arrival(l, stateless ? NULL : &operands[0], at, expects ? one : given, given, flags);
}

/* cp.async.mbarrier.arrive: the copies are done already. Without .noinc the arrival is one
 * more that is expected, so that nothing changes. */
void sg_lower_cp_arrive(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 1, 1);
    sg_column count = sg_constant_column(l, 4, sg_has_word(instruction, W_noinc) ? 1 : 0, NULL);
    emit_arrival(l, NULL, &instruction->operands[0], count, 0, 0);
}

/* flags: 1 complete_tx, else expect_tx. */
void sg_lower_mbarrier_transaction(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_insn access = at_barrier(l, &instruction->operands[0], H_mbarrier_transaction);
    access.operand[1] = sg_source(l, &instruction->operands[1], W_b32);
    access.flags = sg_has_word(instruction, W_complete_tx);
    *sg_emit(l, H_nop) = access;
}

/* flags: 1 operand 1 is a parity of 32 bits, else a state; 2 try_wait. */
void sg_lower_mbarrier_wait(sg_lowering *l, const sg_instruction *instruction) {
    bool parity = sg_has_word(instruction, W_parity), tries = sg_has_word(instruction, W_try_wait);
    sg_want_operands(l, 3, tries ? 4 : 3);
    const sg_operand *operands = instruction->operands;
    sg_insn access = at_barrier(l, &operands[1], H_mbarrier_wait);
    access.operand[1] = sg_source(l, &operands[2], parity ? W_b32 : W_b64);
    if (instruction->operand_count == 4)
        sg_source(l, &operands[3], W_b32); /* how long to wait at most: a hint */
    access.operand[0] = sg_destination(l, &operands[0], W_pred);
    access.flags = (uint8_t)(parity | tries << 1);
    *sg_emit(l, H_nop) = access;
}

void sg_lower_mbarrier_pending(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_column state = sg_source(l, &instruction->operands[1], W_b64);
    sg_emit_to(l, H_mbarrier_pending, sg_destination(l, &instruction->operands[0], W_b32), state);
}
