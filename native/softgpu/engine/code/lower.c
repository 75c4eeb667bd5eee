/* Lowering: from instructions with words and operands to what the machine runs. */
#include "invariants.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INSNS = 16 * 1024 * 1024 };

/* The arrays of insns and of their sources grow together; they move to the arena's end only as
 * often as they double. */
static size_t insn_capacity(const sg_module *module) {
    size_t capacity = 64;
    while (capacity < module->insn_count)
        capacity *= 2;
    return capacity;
}

static void grow_insns(sg_lowering *l) {
    sg_module *module = l->module;
    if (module->insn_count >= MOST_INSNS)
        sg_reject(l, "more than %d instructions", MOST_INSNS);
    if (module->insns && module->insn_count < insn_capacity(module))
        return;
    size_t capacity = module->insns ? insn_capacity(module) * 2 : 64;
    sg_insn *insns = sg_allocate(l->compiler, capacity * sizeof *insns);
    const sg_instruction **sources = sg_allocate(l->compiler, capacity * sizeof *sources);
    if (module->insn_count) {
        memcpy(insns, module->insns, module->insn_count * sizeof *insns);
        memcpy(sources, module->sources, module->insn_count * sizeof *sources);
    }
    module->insns = insns;
    module->sources = sources;
}

sg_insn *sg_emit(sg_lowering *l, sg_handler_id handler) {
    grow_insns(l);
    sg_insn *insn = &l->module->insns[l->module->insn_count];
    l->module->sources[l->module->insn_count++] = l->instruction;
    *insn = (sg_insn){.handler = (uint16_t)handler, .count = 1};
    return insn;
}

sg_insn *sg_emit_to(sg_lowering *l, sg_handler_id handler, sg_column destination, sg_column source) {
    sg_insn *insn = sg_emit(l, handler);
    insn->operand[0] = destination;
    insn->operand[1] = source;
    return insn;
}

void sg_reject(sg_lowering *l, const char *format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const sg_instruction *instruction = l->instruction;
    sg_fail(l->compiler, SG_BAD_PTX, instruction ? instruction->line : l->function->line, "%s: %s",
            instruction ? instruction->form : l->function->name, text);
}

void sg_emit_unsupported(sg_lowering *l, const char *format, ...) {
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    length = length < 0 ? 0 : length >= (int)sizeof text ? (int)sizeof text - 1 : length;
    sg_module *module = l->module;
    char *kept = sg_allocate(l->compiler, (size_t)length + 1);
    memcpy(kept, text, (size_t)length);
    sg_note(l->compiler, l->instruction->line, "%s is not supported: a launch that reaches it fails", kept);
    const char **messages = sg_allocate(l->compiler, (module->message_count + 1) * sizeof *messages);
    if (module->message_count)
        memcpy(messages, module->messages, module->message_count * sizeof *messages);
    messages[module->message_count] = kept;
    module->messages = messages;
    sg_emit(l, H_unsupported)->immediate = (int64_t)module->message_count++;
}

void sg_want_operands(sg_lowering *l, size_t least, size_t most) {
    size_t count = l->instruction->operand_count;
    if (count < least || count > most)
        sg_reject(l, "%zu operands, expected %zu%s", count, least, least == most ? "" : " or more");
}

/* ---- guards ---- */

/* Under a guard these change who runs, so lanes go around them by a branch; a computation
 * only gets a narrower mask. */
static bool changes_flow(sg_handler_id handler) {
    switch (handler) {
    case H_brx: case H_call: case H_ret: case H_exit: case H_trap: case H_barrier: case H_barrier_arrive:
    case H_barrier_reduce: case H_barrier_warp: case H_shfl_up: case H_shfl_down: case H_shfl_bfly: case H_shfl_idx:
    case H_vote_all: case H_vote_any: case H_vote_uni: case H_vote_ballot: case H_match_any_32: case H_match_any_64:
    case H_match_all_32: case H_match_all_64: case H_redux: case H_elect: case H_cluster_arrive: case H_cluster_wait:
    case H_mma: case H_wgmma: case H_wmma_load: case H_wmma_store: case H_ldmatrix: case H_stmatrix: case H_movmatrix:
        return true;
    default: return false;
    }
}

static void lower_matched(sg_lowering *l) {
    if (l->form)
        l->form->lower(l, l->instruction);
    else
        sg_emit_unsupported(l, "%s", l->instruction->form);
}

static void lower_around(sg_lowering *l) {
    size_t branch = l->module->insn_count;
    sg_insn *insn = sg_emit(l, H_bra);
    insn->operand[0] = sg_register_column(l, l->instruction->guard);
    insn->flags = !l->instruction->guard_negated;
    lower_matched(l);
    sg_emit(l, H_join);
    l->module->insns[branch].target = (int32_t)(l->module->insn_count - 1 - branch);
}

static void lower_guarded(sg_lowering *l) {
    size_t guard = l->module->insn_count;
    sg_insn *insn = sg_emit(l, H_guard);
    insn->operand[0] = sg_register_column(l, l->instruction->guard);
    insn->flags = l->instruction->guard_negated;
    lower_matched(l);
    sg_emit(l, H_unguard);
    l->module->insns[guard].target = (int32_t)(l->module->insn_count - guard);
}

static void lower_instruction(sg_lowering *l, const sg_instruction *instruction) {
    size_t before = l->module->insn_count;
    l->instruction = instruction;
    l->used_32 = l->used_64 = l->used_predicate = 0;
    l->form = sg_match_form(instruction, &l->attributes);
    if (!l->form && !sg_opcode_exists(instruction->opcode))
        sg_reject(l, "there is no such instruction");
    if (!instruction->guard || (l->form && l->form->handler == H_bra))
        lower_matched(l); /* a branch reads its guard itself */
    else if (!l->form || changes_flow(l->form->handler))
        lower_around(l);
    else
        lower_guarded(l);
    if (instruction->dropped) /* it is verified all the same */
        l->module->insn_count = before;
}

/* ---- functions ---- */

static void mark_target(sg_lowering *l, const char *name) {
    sg_label *label = name ? sg_find_label(l->function, name) : NULL;
    if (!label)
        return; /* reported when the branch is lowered */
    label->targeted = true;
    for (size_t i = 0; i < label->target_count; i++) {
        sg_label *target = sg_find_label(l->function, label->targets[i]);
        if (target)
            target->targeted = true;
    }
}

static void mark_targets(sg_lowering *l) {
    for (size_t i = 0; i < l->function->instruction_count; i++) {
        const sg_instruction *instruction = &l->function->instructions[i];
        bool branches = !strcmp(instruction->opcode, "bra") || !strcmp(instruction->opcode, "brx");
        for (size_t k = 0; branches && k < instruction->operand_count; k++)
            mark_target(l, instruction->operands[k].name);
    }
}

static void lower_body(sg_lowering *l, size_t prologue) {
    sg_function *function = l->function;
    size_t label = 0;
    for (size_t i = 0; i <= function->instruction_count; i++) {
        bool met = false;
        if (i == prologue)
            l->code->body = (uint32_t)l->module->insn_count;
        for (; label < function->label_count && function->labels[label].position == i; label++) {
            function->labels[label].code = l->module->insn_count;
            met |= function->labels[label].targeted;
        }
        if (met)
            sg_emit(l, H_join);
        if (i < function->instruction_count)
            lower_instruction(l, &function->instructions[i]);
    }
    l->instruction = NULL;
    sg_emit(l, H_ret); /* a body may end without one */
}

static void resolve_jumps(sg_lowering *l) {
    for (size_t i = 0; i < l->jump_count; i++) {
        sg_jump *jump = &l->jumps[i];
        l->module->insns[jump->insn].target = (int32_t)((int64_t)jump->label->code - (int64_t)jump->insn);
    }
}

static void splat_constants(sg_lowering *l) {
    sg_code *code = l->code;
    /* The arena aligns to 16: the columns of vector code need 64. */
    unsigned char *memory = sg_allocate(l->compiler, l->constant_bytes + 64);
    code->constants = memory + (64 - (uintptr_t)memory % 64) % 64;
    code->constant_bytes = l->constant_bytes;
    size_t bound = 0;
    for (size_t i = 0; i < l->constant_count; i++)
        bound += l->constants[i].variable != NULL;
    code->bindings = sg_allocate(l->compiler, bound * sizeof *code->bindings + 1);
    for (size_t i = 0; i < l->constant_count; i++) {
        const sg_constant *constant = &l->constants[i];
        unsigned char *column = code->constants + (constant->column & ~1u);
        unsigned size = constant->width == 8 ? 8 : 4;
        for (unsigned lane = 0; lane < (constant->width == 1 ? 1 : LANES); lane++)
            memcpy(column + lane * size, &constant->value, size);
        if (constant->variable)
            code->bindings[code->binding_count++] = (sg_binding){constant->column & ~1u, size, constant->variable,
                                                                 (int64_t)constant->value};
    }
}

static void lower_function(sg_compiler *compiler, sg_module *module, sg_function *function) {
    sg_lowering *l = sg_allocate(compiler, sizeof *l);
    l->compiler = compiler;
    l->module = module;
    l->function = function;
    l->code = &module->codes[function->index];
    l->code->first = (uint32_t)module->insn_count;
    l->frame_bytes = 64; /* so that no column is at 0, which means "not placed" */
    mark_targets(l);
    size_t prologue = sg_move_invariants(l);
    sg_fold_addresses(l);
    sg_allocate_columns(l);
    lower_body(l, prologue);
    resolve_jumps(l);
    splat_constants(l);
    l->code->frame_bytes = l->frame_bytes;
}

void sg_lower(sg_compiler *compiler, sg_module *module) {
    sg_lay_out(compiler, module);
    for (size_t i = 0; i < module->ir->function_count; i++)
        if (module->ir->functions[i]->defined)
            lower_function(compiler, module, module->ir->functions[i]);
    sg_handler *const *handlers = sg_handlers();
    for (size_t i = module->insn_count; i-- > 0;) {
        sg_insn *insn = &module->insns[i];
        insn->run = handlers[insn->handler];
        if (sg_is_straight(insn->handler)) /* never the last: that is a ret */
            insn->straight = insn[1].straight + 1;
    }
}
