/* What holds of a function's registers wherever they are read: the facts that lowering may use to
 * move an instruction or to look through it. */
#ifndef SG_CODE_INVARIANTS_H
#define SG_CODE_INVARIANTS_H

#include "lower.h"

/* Fills in what is known of every register, and moves what a kernel computes the same in every block
 * to its front; returns how many instructions are there. */
size_t sg_move_invariants(sg_lowering *lowering);

/* A computation of registers, constants and special registers that neither faults nor changes
 * anything but its destination, a register. */
bool sg_is_pure(const sg_instruction *instruction);

/* code/addressing.c: global accesses through `base + scale * index` name both registers, so that
 * the address is never computed lane by lane; computations that only did that are dropped. */
void sg_fold_addresses(sg_lowering *lowering);

#endif
