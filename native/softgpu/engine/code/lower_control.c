/* Branches, calls, barriers, and what lanes do together. */
#include "lower.h"

#include "../machine/machine.h"

#include <string.h>

static void jump_to(sg_lowering *l, size_t insn, const char *name) {
    const sg_label *label = name ? sg_find_label(l->function, name) : NULL;
    if (!label || label->prototype || label->target_count)
        sg_reject(l, "label %.100s is not defined", name ? name : "");
    l->jumps = sg_grow(l->compiler, l->jumps, l->jump_count, &l->jump_capacity, sizeof *l->jumps);
    l->jumps[l->jump_count++] = (sg_jump){insn, label};
}

void sg_lower_bra(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 1, 1);
    size_t at = l->module->insn_count;
    sg_insn *insn = sg_emit(l, instruction->guard ? H_bra : H_bra_always);
    if (instruction->guard) {
        insn->operand[0] = sg_register_column(l, instruction->guard);
        insn->flags = instruction->guard_negated;
    }
    jump_to(l, at, instruction->operands[0].name);
}

void sg_lower_brx(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_column index = sg_source(l, &instruction->operands[0], W_b32);
    const char *name = instruction->operands[1].name;
    const sg_label *table = name ? sg_find_label(l->function, name) : NULL;
    if (!table || !table->target_count)
        sg_reject(l, "%.100s is no list of branch targets", name ? name : "");
    sg_insn *insn = sg_emit(l, H_brx);
    insn->operand[0] = index;
    insn->immediate = (int64_t)table->target_count;
    for (size_t i = 0; i < table->target_count; i++) {
        size_t at = l->module->insn_count;
        sg_emit(l, H_bra_always);
        jump_to(l, at, table->targets[i]);
    }
}

/* ---- calls ---- */

static sg_call *add_call(sg_lowering *l, size_t *index) {
    sg_module *module = l->module;
    if (module->call_count % 64 == 0) {
        sg_call *grown = sg_allocate(l->compiler, (module->call_count + 64) * sizeof *grown);
        if (module->call_count)
            memcpy(grown, module->calls, module->call_count * sizeof *grown);
        module->calls = grown;
    }
    *index = module->call_count;
    return &module->calls[module->call_count++];
}

/* Which bytes of the caller's local memory go to or come from which of the callee's. */
static bool match_list(sg_lowering *l, const sg_operand *list, sg_variable_ir *const *formals, size_t count, bool back,
                       sg_copy **copies, size_t *copied) {
    size_t given = list ? list->item_count : 0;
    /* Linkers look at names only: who expects a result of what gives none (C's void, declared with a status
     * by numba) reads what lay there. In one text that is an error. */
    if (back && count == 0 && given == 1 && l->module->ir->linked)
        given = 0;
    if (given != count)
        sg_reject(l, "%zu %s, the function has %zu", given, back ? "results" : "arguments", count);
    *copies = sg_allocate(l->compiler, count * sizeof **copies + 1);
    *copied = count;
    for (size_t i = 0; i < count; i++) {
        const sg_variable_ir *actual = list->items[i].variable;
        if (formals[i]->space != W_param || !actual || actual->space != W_param || actual->owner != l->function ||
            l->function->entry != (actual->owner && actual->owner->entry))
            return false; /* passed in registers or as constants */
        if (actual->size != formals[i]->size)
            sg_reject(l, "%.60s is of %llu bytes, the function's parameter of %llu", actual->name,
                      (unsigned long long)actual->size, (unsigned long long)formals[i]->size);
        size_t mine = actual->address, theirs = formals[i]->address;
        (*copies)[i] = (sg_copy){back ? theirs : mine, back ? mine : theirs, actual->size};
    }
    return true;
}

static bool is_parameter(const sg_function *function, const sg_variable_ir *variable) {
    for (size_t i = 0; i < function->param_count; i++)
        if (function->params[i] == variable)
            return true;
    return false;
}

/* A kernel's own parameters do not lie in its frame. */
static bool passes_kernel_parameter(const sg_lowering *l, const sg_operand *list) {
    for (size_t i = 0; list && l->function->entry && i < list->item_count; i++)
        if (list->items[i].variable && is_parameter(l->function, list->items[i].variable))
            return true;
    return false;
}

typedef struct {
    const sg_operand *results, *target, *arguments, *prototype;
} call_parts;

static call_parts take_apart(sg_lowering *l, const sg_instruction *instruction) {
    call_parts parts = {0};
    size_t at = 0, count = instruction->operand_count;
    const sg_operand *operands = instruction->operands;
    if (at < count && operands[at].kind == OPERAND_LIST)
        parts.results = &operands[at++];
    if (at < count)
        parts.target = &operands[at++];
    if (at < count && operands[at].kind == OPERAND_LIST)
        parts.arguments = &operands[at++];
    if (at < count)
        parts.prototype = &operands[at++];
    if (!parts.target || at != count)
        sg_reject(l, "a call has results, a function, arguments and perhaps a prototype");
    return parts;
}

static void lower_to(sg_lowering *l, const sg_instruction *instruction, const call_parts *parts,
                     const sg_function *callee, const char *name, sg_handler_id handler, uint8_t builtin) {
    sg_column pointer = handler == H_call_indirect ? sg_source(l, parts->target, W_b64) : 0;
    size_t index;
    sg_call *call = add_call(l, &index);
    *call = (sg_call){.callee = (uint32_t)callee->index};
    if (passes_kernel_parameter(l, parts->arguments) ||
        !match_list(l, parts->arguments, callee->params, callee->param_count, false, &call->arguments,
                    &call->argument_count) ||
        !match_list(l, parts->results, callee->returns, callee->return_count, true, &call->returns,
                    &call->return_count)) {
        sg_emit_unsupported(l, "%s of %.100s with parameters in registers", instruction->form, name);
        return;
    }
    sg_insn *insn = sg_emit(l, handler);
    insn->immediate = (int64_t)index;
    insn->operand[0] = pointer;
    insn->variant = builtin;
}

void sg_lower_call(sg_lowering *l, const sg_instruction *instruction) {
    call_parts parts = take_apart(l, instruction);
    if (parts.target->kind == OPERAND_REGISTER) {
        const char *name = parts.prototype ? parts.prototype->name : NULL;
        const sg_label *label = name ? sg_find_label(l->function, name) : NULL;
        if (!label || !label->prototype)
            sg_emit_unsupported(l, "%s through a register without a .callprototype", instruction->form);
        else
            lower_to(l, instruction, &parts, label->prototype, "a pointer", H_call_indirect, 0);
        return;
    }
    const char *name = parts.target->kind == OPERAND_NAME ? parts.target->name : NULL;
    const sg_function *callee = name ? sg_find_function(l->module->ir, name) : NULL;
    if (!callee)
        sg_reject(l, "function %.100s is not declared", name ? name : "");
    int builtin = callee->defined ? -1 : sg_builtin_named(name);
    if (callee->entry)
        sg_reject(l, "%.100s is a kernel", name);
    if (callee->defined)
        lower_to(l, instruction, &parts, callee, name, H_call, 0);
    else if (builtin >= 0)
        lower_to(l, instruction, &parts, callee, name, H_call_builtin, (uint8_t)builtin);
    else
        sg_emit_unsupported(l, "%s of %.100s, which is defined nowhere,", instruction->form, name);
}

/* ---- barriers ---- */

void sg_lower_barrier(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 1, 2);
    sg_column number = sg_source(l, &instruction->operands[0], W_b32);
    bool counted = instruction->operand_count == 2;
    sg_column count = counted ? sg_source(l, &instruction->operands[1], W_b32) : 0;
    if (!counted && l->form->handler == H_barrier_arrive)
        sg_reject(l, "an arrival needs the number of threads");
    sg_insn *insn = sg_emit(l, l->form->handler);
    insn->operand[0] = number;
    insn->operand[1] = count;
    insn->flags = counted ? 2 : 0;
}

void sg_lower_barrier_reduce(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 3, 4);
    bool counted = instruction->operand_count == 4;
    const sg_operand *operands = instruction->operands;
    sg_column number = sg_source(l, &operands[1], W_b32);
    sg_column count = counted ? sg_source(l, &operands[2], W_b32) : 0;
    sg_column vote = sg_source(l, &operands[counted ? 3 : 2], W_pred);
    sg_word type = l->attributes.operation == W_popc ? W_u32 : W_pred;
    sg_column result = sg_destination(l, &operands[0], type);
    sg_insn *insn = sg_emit(l, H_barrier_reduce);
    insn->operand[0] = number;
    insn->operand[1] = count;
    insn->operand[2] = vote;
    insn->operand[3] = result;
    insn->variant = (uint8_t)l->attributes.operation;
    insn->flags = counted ? 2 : 0;
}

void sg_lower_barrier_warp(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 1, 1);
    sg_column members = sg_source(l, &instruction->operands[0], W_b32);
    sg_emit(l, H_barrier_warp)->operand[0] = members;
}

/* ---- across lanes ---- */

static sg_column all_lanes(sg_lowering *l) { return sg_constant_column(l, 4, 0xffffffffu, NULL); }

/* d or d|p: the first destination, and the second where it is given. */
static sg_column first_of_pair(sg_lowering *l, const sg_operand *operand, sg_word type, sg_column *predicate) {
    bool pair = operand->kind == OPERAND_PAIR;
    *predicate = pair && operand->items[1].kind != OPERAND_SINK ? sg_destination(l, &operand->items[1], W_pred) : 0;
    return sg_destination(l, pair ? &operand->items[0] : operand, type);
}

void sg_lower_shfl(sg_lowering *l, const sg_instruction *instruction) {
    bool sync = sg_has_word(instruction, W_sync);
    sg_want_operands(l, sync ? 5 : 4, sync ? 5 : 4);
    sg_column columns[6];
    for (int i = 1; i < 4; i++)
        columns[i] = sg_source(l, &instruction->operands[i], W_b32);
    columns[4] = sync ? sg_source(l, &instruction->operands[4], W_b32) : all_lanes(l);
    columns[0] = first_of_pair(l, &instruction->operands[0], W_b32, &columns[5]);
    sg_insn *insn = sg_emit(l, l->form->handler);
    memcpy(insn->operand, columns, sizeof columns);
    insn->flags = columns[5] != 0;
}

void sg_lower_vote(sg_lowering *l, const sg_instruction *instruction) {
    bool sync = sg_has_word(instruction, W_sync);
    sg_want_operands(l, sync ? 3 : 2, sync ? 3 : 2);
    sg_column vote = sg_source(l, &instruction->operands[1], W_pred);
    sg_column members = sync ? sg_source(l, &instruction->operands[2], W_b32) : all_lanes(l);
    sg_column result = sg_destination(l, &instruction->operands[0], l->attributes.type[0]);
    sg_insn *insn = sg_emit_to(l, l->form->handler, result, vote);
    insn->operand[2] = members;
}

void sg_lower_match(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 3, 3);
    sg_column value = sg_source(l, &instruction->operands[1], l->attributes.type[0]);
    sg_column members = sg_source(l, &instruction->operands[2], W_b32), predicate;
    sg_column result = first_of_pair(l, &instruction->operands[0], W_b32, &predicate);
    sg_insn *insn = sg_emit_to(l, l->form->handler, result, value);
    insn->operand[2] = members;
    insn->operand[3] = predicate;
    insn->flags = predicate != 0;
}

void sg_lower_redux(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 3, 3);
    sg_word type = l->attributes.type[0];
    sg_column value = sg_source(l, &instruction->operands[1], type);
    sg_column members = sg_source(l, &instruction->operands[2], W_b32);
    sg_insn *insn = sg_emit_to(l, H_redux, sg_destination(l, &instruction->operands[0], type), value);
    insn->operand[2] = members;
    insn->variant = (uint8_t)l->attributes.operation;
    insn->flags = type == W_s32;
}

void sg_lower_elect(sg_lowering *l, const sg_instruction *instruction) {
    sg_want_operands(l, 2, 2);
    sg_column members = sg_source(l, &instruction->operands[1], W_b32), predicate;
    sg_column leader = first_of_pair(l, &instruction->operands[0], W_b32, &predicate);
    if (!predicate)
        predicate = sg_scratch(l, 1);
    sg_insn *insn = sg_emit_to(l, H_elect, leader, predicate);
    insn->operand[2] = members;
}
