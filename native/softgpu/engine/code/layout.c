/* Where everything lies: parameters, local variables, shared memory; and who calls whom. */
#include "lower.h"

#include <string.h>

static uint64_t align_up(uint64_t offset, uint64_t alignment) {
    return alignment ? (offset + alignment - 1) / alignment * alignment : offset;
}

/* What a thread may use of local memory, as on cards. */
static const uint64_t MOST_LOCAL = 512 * 1024;
/* A kernel's parameters: 32,764 bytes since PTX 8.1. */
static const uint64_t MOST_PARAMETERS = 32764;
static const uint64_t MOST_SHARED = 16 * 1024 * 1024 - 4096;

static uint64_t place(sg_variable_ir *variable, uint64_t offset) {
    variable->address = align_up(offset, variable->alignment);
    variable->placed = true;
    return variable->address + variable->size;
}

/* The same for every function of the same types, so that a call through a pointer, which
 * knows only the prototype, finds them: parameters in order, then results. */
void sg_place_formals(sg_function *function) {
    uint64_t offset = 0;
    for (size_t i = 0; i < function->param_count; i++)
        offset = place(function->params[i], offset);
    for (size_t i = 0; i < function->return_count; i++)
        offset = place(function->returns[i], offset);
}

static uint64_t formals_end(const sg_function *function) {
    uint64_t end = 0;
    for (size_t i = 0; i < function->param_count; i++)
        end = function->params[i]->address + function->params[i]->size;
    for (size_t i = 0; i < function->return_count; i++)
        end = function->returns[i]->address + function->returns[i]->size;
    return end;
}

static void place_locals(sg_compiler *compiler, sg_module *module, sg_function *function) {
    uint64_t offset = function->entry ? 0 : formals_end(function);
    for (size_t i = 0; i < function->label_count; i++)
        if (function->labels[i].prototype)
            sg_place_formals(function->labels[i].prototype);
    for (size_t i = 0; i < function->local_count; i++)
        if (function->locals[i]->space != W_shared)
            offset = place(function->locals[i], offset);
    if (offset > MOST_LOCAL)
        sg_fail(compiler, SG_BAD_PTX, function->line, "%.100s needs %llu bytes of local memory; a thread has 512 KiB",
                function->name, (unsigned long long)offset);
    module->codes[function->index].local_bytes = (uint32_t)align_up(offset, 16);
}

/* ---- who uses what ---- */

typedef struct {
    sg_compiler *compiler;
    sg_module *module;
    size_t functions, shared_count;
    sg_variable_ir **shared;
    bool *calls; /* [caller][callee] */
    bool *uses;  /* [function][shared] */
    bool *pointers; /* [function]: calls through a pointer */
    /* of the kernel at hand */
    bool *reached;
    bool *open;
    bool recursive;
} usage;

static size_t shared_index(usage *u, const sg_variable_ir *variable) {
    for (size_t i = 0; i < u->shared_count; i++)
        if (u->shared[i] == variable)
            return i;
    return u->shared_count;
}

static void note_operand(usage *u, sg_function *function, sg_operand *operand) {
    if (operand->name && !operand->variable)
        operand->variable = sg_find_variable(u->module->ir, operand->name);
    if (operand->variable && operand->variable->space == W_shared) {
        size_t index = shared_index(u, operand->variable);
        if (index < u->shared_count)
            u->uses[function->index * u->shared_count + index] = true;
    } else if (operand->name && !operand->variable) {
        const sg_function *callee = sg_find_function(u->module->ir, operand->name);
        if (callee)
            u->calls[function->index * u->functions + callee->index] = true;
    }
    for (size_t i = 0; i < operand->item_count; i++)
        note_operand(u, function, &operand->items[i]);
}

static void note_function(usage *u, sg_function *function) {
    for (size_t i = 0; i < function->instruction_count; i++) {
        sg_instruction *instruction = &function->instructions[i];
        bool calls = !strcmp(instruction->opcode, "call");
        for (size_t k = 0; k < instruction->operand_count; k++) {
            note_operand(u, function, &instruction->operands[k]);
            u->pointers[function->index] |= calls && instruction->operands[k].kind == OPERAND_REGISTER;
        }
    }
}

/* A pointer may lead to any function whose address is somewhere in the module's data. */
static void note_fixups(usage *u) {
    const sg_ir *ir = u->module->ir;
    for (size_t i = 0; i < ir->variable_count; i++)
        for (const sg_fixup *fixup = ir->variables[i]->fixups; fixup; fixup = fixup->next)
            for (size_t f = 0; fixup->function && f < u->functions; f++)
                if (u->pointers[f])
                    u->calls[f * u->functions + fixup->function->index] = true;
}

static void collect_shared(usage *u) {
    const sg_ir *ir = u->module->ir;
    size_t capacity = 0;
    for (size_t i = 0; i < ir->variable_count; i++)
        if (ir->variables[i]->space == W_shared) {
            u->shared = sg_grow(u->compiler, u->shared, u->shared_count, &capacity, sizeof *u->shared);
            u->shared[u->shared_count++] = ir->variables[i];
        }
    for (size_t f = 0; f < ir->function_count; f++)
        for (size_t i = 0; i < ir->functions[f]->local_count; i++)
            if (ir->functions[f]->locals[i]->space == W_shared) {
                u->shared = sg_grow(u->compiler, u->shared, u->shared_count, &capacity, sizeof *u->shared);
                u->shared[u->shared_count++] = ir->functions[f]->locals[i];
            }
}

/* Deepest local memory from this function on; sets `recursive` when a call can come back. */
static uint64_t descend(usage *u, size_t function, unsigned depth) {
    if (u->open[function] || depth > 200) {
        u->recursive = true;
        return 0;
    }
    if (u->reached[function] && u->recursive)
        return 0; /* the depth does not count any more, what is reached does */
    u->reached[function] = true;
    u->open[function] = true;
    u->recursive |= u->pointers[function];
    uint64_t deepest = 0;
    for (size_t callee = 0; callee < u->functions; callee++) {
        if (!u->calls[function * u->functions + callee])
            continue;
        uint64_t below = descend(u, callee, depth + 1);
        deepest = below > deepest ? below : deepest;
    }
    u->open[function] = false;
    return u->module->codes[function].local_bytes + deepest;
}

/* ---- kernels ---- */

static void describe_kernel(usage *u, sg_kernel *kernel, const sg_function *function, bool *reaches) {
    kernel->module = u->module;
    kernel->code = &u->module->codes[function->index];
    kernel->parameter_bytes = formals_end(function);
    if (kernel->parameter_bytes > MOST_PARAMETERS)
        sg_fail(u->compiler, SG_BAD_PTX, function->line, "%.100s has %llu bytes of parameters; a kernel has at most %llu",
                function->name, (unsigned long long)kernel->parameter_bytes, (unsigned long long)MOST_PARAMETERS);
    memset(u->reached, 0, u->functions * sizeof *u->reached);
    memset(u->open, 0, u->functions * sizeof *u->open);
    u->recursive = false;
    uint64_t local = descend(u, function->index, 0);
    kernel->recursive = u->recursive;
    kernel->local_bytes = (uint32_t)(local > MOST_LOCAL ? MOST_LOCAL : local);
    for (size_t f = 0; f < u->functions; f++)
        for (size_t s = 0; u->reached[f] && s < u->shared_count; s++)
            reaches[s] |= u->uses[f * u->shared_count + s];
}

/* One offset for each variable, in every kernel the same, since functions that several
 * kernels call have it in their code: behind all that share a kernel with it. */
static void place_shared(usage *u, const bool *reaches) {
    sg_module *module = u->module;
    for (size_t s = 0; s < u->shared_count; s++) {
        sg_variable_ir *variable = u->shared[s];
        uint64_t offset = 0;
        for (size_t k = 0; k < module->kernel_count; k++)
            if (reaches[k * u->shared_count + s] && module->kernels[k].static_shared > offset)
                offset = module->kernels[k].static_shared;
        uint64_t end = variable->size ? place(variable, offset) : 0;
        if (variable->size > MOST_SHARED || end > MOST_SHARED)
            sg_fail(u->compiler, SG_BAD_PTX, variable->line, "%.100s does not fit into shared memory", variable->name);
        for (size_t k = 0; k < module->kernel_count; k++) {
            sg_kernel *kernel = &module->kernels[k];
            if (!reaches[k * u->shared_count + s])
                continue;
            if (variable->size)
                kernel->static_shared = (uint32_t)end;
            else if (variable->alignment > kernel->dynamic_alignment)
                kernel->dynamic_alignment = variable->alignment;
        }
    }
}

static void lay_out_kernels(usage *u) {
    sg_module *module = u->module;
    for (size_t f = 0; f < u->functions; f++)
        module->kernel_count += module->ir->functions[f]->entry && module->ir->functions[f]->defined;
    module->kernels = sg_allocate(u->compiler, module->kernel_count * sizeof *module->kernels + 1);
    bool *reaches = sg_allocate(u->compiler, module->kernel_count * u->shared_count + 1);
    size_t k = 0;
    for (size_t f = 0; f < u->functions; f++) {
        const sg_function *function = module->ir->functions[f];
        if (function->entry && function->defined) {
            describe_kernel(u, &module->kernels[k], function, reaches + k * u->shared_count);
            k++;
        }
    }
    place_shared(u, reaches);
}

void sg_lay_out(sg_compiler *compiler, sg_module *module) {
    sg_ir *ir = module->ir;
    usage u = {.compiler = compiler, .module = module, .functions = ir->function_count};
    collect_shared(&u);
    if (u.functions > 20000 || u.shared_count > 20000)
        sg_fail(compiler, SG_UNSUPPORTED, 0, "more than 20000 functions or shared variables are not supported");
    u.calls = sg_allocate(compiler, u.functions * u.functions + 1);
    u.uses = sg_allocate(compiler, u.functions * u.shared_count + 1);
    u.pointers = sg_allocate(compiler, u.functions + 1);
    u.reached = sg_allocate(compiler, u.functions + 1);
    u.open = sg_allocate(compiler, u.functions + 1);
    for (size_t f = 0; f < u.functions; f++) {
        sg_place_formals(ir->functions[f]);
        if (ir->functions[f]->defined)
            place_locals(compiler, module, ir->functions[f]);
    }
    for (size_t f = 0; f < u.functions; f++)
        note_function(&u, ir->functions[f]);
    note_fixups(&u);
    lay_out_kernels(&u);
}
