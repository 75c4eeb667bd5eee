/* A module: made from text, bound to addresses, described. */
#include "code/lower.h"

#include <stdlib.h>
#include <string.h>

/* ---- variables ---- */

static void collect_variables(sg_compiler *compiler, sg_module *module) {
    sg_ir *ir = module->ir;
    module->variables = sg_allocate(compiler, ir->variable_count * sizeof *module->variables + 1);
    for (size_t i = 0; i < ir->variable_count; i++) {
        sg_variable_ir *variable = ir->variables[i];
        bool resides = variable->space == W_global || variable->space == W_constant;
        if (!resides || variable->linkage == LINK_EXTERN)
            continue;
        variable->index = module->variable_count;
        module->variables[module->variable_count++] = variable;
    }
}

static void resolve_fixups(sg_compiler *compiler, sg_module *module) {
    for (size_t i = 0; i < module->variable_count; i++)
        for (sg_fixup *fixup = module->variables[i]->fixups; fixup; fixup = fixup->next) {
            fixup->variable = sg_find_variable(module->ir, fixup->name);
            fixup->function = sg_find_function(module->ir, fixup->name);
            bool variable = fixup->variable && fixup->variable->linkage != LINK_EXTERN &&
                            (fixup->variable->space == W_global || fixup->variable->space == W_constant);
            if (!variable && !fixup->function)
                sg_fail(compiler, SG_BAD_PTX, fixup->line, "%.100s in an initial value is not defined", fixup->name);
        }
}

sg_status sg_module_create(const char *ptx, size_t length, char *log, size_t log_size, sg_module **result) {
    sg_compiler compiler;
    sg_compiler_open(&compiler, log, log_size);
    *result = NULL;
    if (setjmp(compiler.escape)) {
        sg_compiler_release(compiler.chunks);
        return compiler.status;
    }
    sg_module *module = sg_allocate(&compiler, sizeof *module);
    module->ir = sg_parse(&compiler, ptx, length);
    module->codes = sg_allocate(&compiler, module->ir->function_count * sizeof *module->codes + 1);
    for (size_t i = 0; i < module->ir->function_count; i++)
        module->codes[i].function = module->ir->functions[i];
    collect_variables(&compiler, module);
    resolve_fixups(&compiler, module);
    sg_lower(&compiler, module);
    module->chunks = compiler.chunks;
    *result = module;
    return SG_OK;
}

void sg_module_destroy(sg_module *module) {
    if (module)
        sg_compiler_release(module->chunks); /* the module itself lies in there */
}

size_t sg_module_instruction_count(const sg_module *module) { return module->insn_count; }

size_t sg_module_variable_count(const sg_module *module) { return module->variable_count; }

sg_variable sg_module_variable(const sg_module *module, size_t index) {
    const sg_variable_ir *variable = module->variables[index];
    return (sg_variable){.name = variable->name,
                         .size = variable->size,
                         .alignment = variable->alignment,
                         .constant = variable->space == W_constant,
                         .initial = variable->initial};
}

void sg_module_bind(sg_module *module, size_t index, uint64_t address) {
    sg_variable_ir *variable = module->variables[index];
    variable->address = address;
    for (size_t f = 0; f < module->ir->function_count; f++) {
        const sg_code *code = &module->codes[f];
        for (size_t b = 0; b < code->binding_count; b++) {
            const sg_binding *binding = &code->bindings[b];
            uint64_t value = address + (uint64_t)binding->addend;
            for (unsigned lane = 0; binding->variable == variable && lane < LANES; lane++)
                memcpy(code->constants + binding->column + lane * binding->width, &value, binding->width);
        }
    }
}

void sg_module_image(const sg_module *module, size_t index, unsigned char *out) {
    const sg_variable_ir *variable = module->variables[index];
    if (variable->initial)
        memcpy(out, variable->initial, variable->size);
    else
        memset(out, 0, variable->size);
    for (const sg_fixup *fixup = variable->fixups; fixup; fixup = fixup->next) {
        uint64_t address = fixup->function ? SG_CODE_WINDOW + 16 * fixup->function->index : fixup->variable->address;
        address += (uint64_t)fixup->addend;
        address >>= fixup->shift;
        memcpy(out + fixup->offset, &address, fixup->size); /* the low bytes: hosts are little-endian */
    }
}

/* ---- kernels ---- */

size_t sg_module_kernel_count(const sg_module *module) { return module->kernel_count; }
const sg_kernel *sg_module_kernel(const sg_module *module, size_t index) { return &module->kernels[index]; }

const sg_kernel *sg_module_kernel_named(const sg_module *module, const char *name) {
    for (size_t i = 0; i < module->kernel_count; i++)
        if (!strcmp(module->kernels[i].code->function->name, name))
            return &module->kernels[i];
    return NULL;
}

/* A limit costs a card spills and us nothing: what is over it is what the card would spill. */
static uint32_t registers_of(const sg_kernel *kernel) {
    uint32_t registers = kernel->code->pressure + 4; /* what a card keeps for addresses and the like */
    uint32_t limits[] = {255, kernel->code->function->register_limit, kernel->module->ir->register_limit};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        registers = limits[i] && limits[i] < registers ? limits[i] : registers;
    return registers;
}

static uint32_t constant_bytes(const sg_module *module) {
    size_t bytes = 0;
    for (size_t i = 0; i < module->variable_count; i++) {
        sg_variable variable = sg_module_variable(module, i);
        bytes += variable.constant ? variable.size : 0;
    }
    return (uint32_t)bytes;
}

sg_kernel_info sg_kernel_describe(const sg_kernel *kernel) {
    const sg_function *function = kernel->code->function;
    sg_kernel_info info = {
        .name = function->name,
        .parameter_count = function->param_count,
        .parameter_bytes = kernel->parameter_bytes,
        .static_shared_bytes = kernel->static_shared,
        .local_bytes = kernel->local_bytes,
        .registers = registers_of(kernel),
        .constant_bytes = constant_bytes(kernel->module),
        .maximum_threads = function->max_threads && function->max_threads < 1024 ? function->max_threads : 1024,
        .ptx_version = kernel->module->ir->ptx_version,
        .target = kernel->module->ir->target,
    };
    memcpy(info.required_threads, function->required_threads, sizeof info.required_threads);
    return info;
}

bool sg_kernel_parameter(const sg_kernel *kernel, size_t index, size_t *offset, size_t *size) {
    const sg_function *function = kernel->code->function;
    if (index >= function->param_count)
        return false;
    *offset = function->params[index]->address;
    *size = function->params[index]->size;
    return true;
}
