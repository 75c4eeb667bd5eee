/* Declarations: variables with their initialisers, parameters, registers. */
#include "parser.h"

#include <string.h>

static const uint64_t LARGEST_VARIABLE = (uint64_t)1 << 40;
static const uint64_t LARGEST_INITIALISED = (uint64_t)1 << 30;

typedef struct {
    sg_word space;
    sg_word type;
    uint32_t alignment;
    unsigned vector;
} declared;

typedef struct {
    const char *prefix;
    uint64_t count;
    declared kind;
} register_range;

static bool is_power_of_two(uint64_t value) { return value && !(value & (value - 1)); }

static uint32_t parse_alignment(sg_parser *parser) {
    int line = parser->token.line;
    uint64_t alignment = sg_expect_integer(parser);
    if (!is_power_of_two(alignment) || alignment > 1024)
        sg_fail(parser->compiler, SG_BAD_PTX, line, "an alignment is a power of two up to 1024");
    return (uint32_t)alignment;
}

/* `.attribute(.managed)`, `.attribute(.unified(1, 2))` */
static void skip_attribute(sg_parser *parser) {
    sg_expect_mark(parser, '(');
    for (int depth = 1; depth > 0; sg_advance(parser)) {
        if (parser->token.kind == TOKEN_END)
            sg_unexpected(parser, "')'");
        depth += sg_at_mark(parser, '(') - sg_at_mark(parser, ')');
    }
}

/* `.global .align 4 .v2 .f32`, in any order. What follows the `.ptr` of `.param .u64 .ptr .global .align 1`
 * tells of the memory pointed to, not of the parameter. */
static declared parse_declared(sg_parser *parser) {
    declared found = {.space = W_none, .type = W_none, .vector = 1};
    bool pointed_to = false;
    while (parser->token.kind == TOKEN_DOTTED) {
        sg_token word = parser->token;
        sg_advance(parser);
        sg_word known = sg_word_named(word.text, word.length);
        if (sg_token_is(&word, "align") && pointed_to)
            parse_alignment(parser);
        else if (sg_token_is(&word, "align"))
            found.alignment = parse_alignment(parser);
        else if (sg_token_is(&word, "attribute"))
            skip_attribute(parser);
        else if (sg_token_is(&word, "ptr"))
            pointed_to = true;
        else if (sg_words[known].kind == KIND_SPACE && found.space == W_none)
            found.space = known;
        else if (sg_words[known].kind == KIND_SPACE && pointed_to)
            continue;
        else if (sg_words[known].kind == KIND_VECTOR)
            found.vector = sg_words[known].bits;
        else if (sg_is_type(known) && found.type == W_none)
            found.type = known;
        else
            sg_fail(parser->compiler, SG_UNSUPPORTED, word.line, "'.%.*s' is not supported in a declaration",
                    word.length > 60 ? 60 : (int)word.length, word.text);
    }
    return found;
}

/* `[4][3]` or `[]`: the number of elements; 0 for `[]`. */
static uint64_t parse_dimensions(sg_parser *parser) {
    uint64_t elements = 1;
    while (sg_take_mark(parser, '[')) {
        int line = parser->token.line;
        uint64_t dimension = sg_at_mark(parser, ']') ? 0 : sg_expect_integer(parser);
        sg_expect_mark(parser, ']');
        if (dimension > LARGEST_VARIABLE || (dimension && elements > LARGEST_VARIABLE / dimension))
            sg_fail(parser->compiler, SG_BAD_PTX, line, "a variable larger than 1 TiB");
        elements *= dimension;
    }
    return elements;
}

static sg_variable_ir *make_variable(sg_parser *parser, declared kind, const char *name) {
    if (kind.type == W_none)
        sg_fail(parser->compiler, SG_BAD_PTX, parser->token.line, "variable %s has no type", name);
    sg_variable_ir *variable = sg_allocate(parser->compiler, sizeof *variable);
    variable->name = name;
    variable->space = kind.space == W_shared_cta ? W_shared : kind.space;
    variable->type = kind.type;
    variable->line = parser->token.line;
    variable->size = parse_dimensions(parser) * sg_bytes(kind.type) * kind.vector;
    uint32_t natural = sg_bytes(kind.type) * kind.vector;
    variable->alignment = kind.alignment ? kind.alignment : natural > 16 ? 16 : natural;
    variable->owner = parser->function;
    return variable;
}

/* ---- initialisers ---- */

static void add_fixup(sg_parser *parser, sg_variable_ir *variable, uint64_t offset, const char *name, int64_t addend,
                      uint64_t mask) {
    sg_fixup *fixup = sg_allocate(parser->compiler, sizeof *fixup);
    *fixup = (sg_fixup){.next = variable->fixups, .offset = offset, .size = sg_bytes(variable->type), .name = name,
                        .addend = addend, .line = parser->token.line};
    if (mask) { /* 0xFF0000(name): a byte */
        while (fixup->shift < 56 && mask >> fixup->shift != 0xff)
            fixup->shift += 8;
        if (mask >> fixup->shift != 0xff || mask << (56 - fixup->shift) << 8)
            sg_fail(parser->compiler, SG_BAD_PTX, fixup->line, "the mask of an address is one of its bytes");
    }
    if (fixup->size != (mask ? 1 : 8))
        sg_fail(parser->compiler, SG_UNSUPPORTED, fixup->line, "an address in an initialiser of type .%s is not supported",
                sg_words[variable->type].text);
    variable->fixups = fixup;
}

static void parse_symbol_initial(sg_parser *parser, sg_variable_ir *variable, uint64_t offset, uint64_t mask) {
    const char *name = sg_expect_name(parser);
    if (!strcmp(name, "generic") && sg_take_mark(parser, '(')) {
        name = sg_expect_name(parser);
        sg_expect_mark(parser, ')');
    }
    int64_t addend = 0;
    if (sg_take_mark(parser, '+'))
        addend = (int64_t)sg_expect_integer(parser);
    else if (sg_at_mark(parser, '-'))
        addend = (int64_t)sg_expect_integer(parser);
    add_fixup(parser, variable, offset, name, addend, mask);
}

/* `0xFF(name)`, `0xFF00(generic(name)+4)`: compilers write structures as bytes. */
static bool parse_masked_initial(sg_parser *parser, sg_variable_ir *variable, uint64_t offset) {
    if (parser->token.kind != TOKEN_INTEGER || parser->ahead.kind != TOKEN_MARK || parser->ahead.mark != '(')
        return false;
    int line = parser->token.line;
    uint64_t mask = sg_expect_integer(parser);
    if (!mask)
        sg_fail(parser->compiler, SG_BAD_PTX, line, "the mask of an address is one of its bytes");
    sg_expect_mark(parser, '(');
    parse_symbol_initial(parser, variable, offset, mask);
    sg_expect_mark(parser, ')');
    return true;
}

static void store_double(sg_parser *parser, sg_variable_ir *variable, uint64_t offset, uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    if (variable->type == W_f64 || variable->type == W_b64) {
        memcpy(variable->initial + offset, &value, 8);
    } else if (variable->type == W_f32 || variable->type == W_b32) {
        float single = (float)value;
        memcpy(variable->initial + offset, &single, 4);
    } else {
        sg_fail(parser->compiler, SG_BAD_PTX, parser->token.line, "a floating-point initialiser for type .%s",
                sg_words[variable->type].text);
    }
}

/* `x[] = {1, 2}`: as many elements as there are values. */
static void make_room(sg_parser *parser, sg_variable_ir *variable, uint64_t size) {
    if (!variable->open || size <= variable->size || size > LARGEST_INITIALISED)
        return;
    if (size > variable->capacity) {
        uint64_t capacity = size * 2 + 64;
        unsigned char *grown = sg_allocate(parser->compiler, capacity);
        memcpy(grown, variable->initial, variable->size);
        variable->initial = grown;
        variable->capacity = capacity;
    }
    variable->size = size;
}

static void parse_scalar_initial(sg_parser *parser, sg_variable_ir *variable, uint64_t *offset) {
    unsigned size = sg_bytes(variable->type);
    make_room(parser, variable, *offset + size);
    if (*offset > variable->size || variable->size - *offset < size)
        sg_fail(parser->compiler, SG_BAD_PTX, parser->token.line, "more initial values than %s has elements",
                variable->name);
    bool negative = sg_take_mark(parser, '-');
    uint64_t value = parser->token.integer;
    if (!negative && parse_masked_initial(parser, variable, *offset)) {
        *offset += size;
        return;
    }
    switch (parser->token.kind) {
    case TOKEN_INTEGER:
        value = negative ? -value : value;
        memcpy(variable->initial + *offset, &value, size > 8 ? 8 : size);
        sg_advance(parser);
        break;
    case TOKEN_SINGLE:
        value ^= (uint64_t)negative << 31;
        memcpy(variable->initial + *offset, &value, size < 4 ? size : 4);
        sg_advance(parser);
        break;
    case TOKEN_DOUBLE:
        store_double(parser, variable, *offset, value ^ (uint64_t)negative << 63);
        sg_advance(parser);
        break;
    default:
        parse_symbol_initial(parser, variable, *offset, 0);
    }
    *offset += size;
}

static void parse_initial(sg_parser *parser, sg_variable_ir *variable) {
    if (variable->size > LARGEST_INITIALISED)
        sg_fail(parser->compiler, SG_BAD_PTX, variable->line, "an initialised variable larger than 1 GiB");
    if (variable->space != W_global && variable->space != W_constant)
        sg_fail(parser->compiler, SG_BAD_PTX, variable->line, "only .global and .const variables have initial values");
    variable->initial = sg_allocate(parser->compiler, variable->size + 1);
    variable->open = variable->size == 0;
    uint64_t offset = 0;
    int depth = 0;
    do {
        while (sg_take_mark(parser, '{'))
            depth++;
        if (!sg_at_mark(parser, '}'))
            parse_scalar_initial(parser, variable, &offset);
        while (depth && sg_take_mark(parser, '}'))
            depth--;
    } while (depth && sg_take_mark(parser, ','));
    if (depth)
        sg_unexpected(parser, "'}'");
}

/* ---- where a declaration goes ---- */

static void add_module_variable(sg_parser *parser, sg_variable_ir *variable) {
    sg_ir *ir = parser->ir;
    sg_named named = sg_lookup(parser->names, 0, variable->name);
    if (named.kind == NAMED_VARIABLE) {
        sg_variable_ir *earlier = named.thing;
        if (earlier->linkage == LINK_EXTERN && variable->linkage != LINK_EXTERN)
            *earlier = *variable;
        else if (variable->linkage == LINK_LOCAL || variable->linkage == LINK_VISIBLE)
            sg_fail(parser->compiler, SG_BAD_PTX, variable->line, "%s is defined twice", variable->name);
        return;
    }
    if (named.kind != NAMED_NOTHING)
        sg_fail(parser->compiler, SG_BAD_PTX, variable->line, "%s is defined twice", variable->name);
    sg_define(parser->compiler, parser->names, 0, variable->name, (sg_named){NAMED_VARIABLE, variable});
    ir->variables = sg_grow(parser->compiler, ir->variables, ir->variable_count, &parser->variable_capacity,
                            sizeof *ir->variables);
    ir->variables[ir->variable_count++] = variable;
}

static void add_local_variable(sg_parser *parser, sg_variable_ir *variable) {
    sg_function *function = parser->function;
    if (variable->space != W_local && variable->space != W_shared && variable->space != W_param)
        sg_fail(parser->compiler, SG_BAD_PTX, variable->line, "a .%s variable inside a function",
                sg_words[variable->space].text);
    if (!sg_define(parser->compiler, parser->names, sg_scope(parser), variable->name,
                   (sg_named){NAMED_VARIABLE, variable}))
        sg_fail(parser->compiler, SG_BAD_PTX, variable->line, "%s is defined twice", variable->name);
    function->locals = sg_grow(parser->compiler, function->locals, function->local_count, &parser->local_capacity,
                               sizeof *function->locals);
    function->locals[function->local_count++] = variable;
}

void sg_parse_variables(sg_parser *parser, sg_linkage linkage) {
    int line = parser->token.line;
    declared kind = parse_declared(parser);
    if (kind.space == W_none || kind.space == W_reg)
        sg_fail(parser->compiler, SG_BAD_PTX, line, "a declaration without a state space");
    do {
        sg_variable_ir *variable = make_variable(parser, kind, sg_expect_name(parser));
        variable->linkage = linkage;
        if (sg_take_mark(parser, '='))
            parse_initial(parser, variable);
        if (!variable->size && !(variable->space == W_shared && linkage == LINK_EXTERN) && linkage != LINK_EXTERN)
            sg_fail(parser->compiler, SG_BAD_PTX, line, "variable %s has no size", variable->name);
        if (parser->function)
            add_local_variable(parser, variable);
        else
            add_module_variable(parser, variable);
    } while (sg_take_mark(parser, ','));
    sg_expect_mark(parser, ';');
}

sg_variable_ir *sg_parse_formal(sg_parser *parser) {
    declared kind = parse_declared(parser);
    if (kind.space != W_param && kind.space != W_reg)
        sg_unexpected(parser, "'.param' or '.reg'");
    sg_variable_ir *formal = make_variable(parser, kind, sg_expect_name(parser));
    if (kind.space == W_reg) {
        formal->formal = sg_allocate(parser->compiler, sizeof *formal->formal);
        *formal->formal = (sg_register){.name = formal->name, .type = kind.type};
    }
    return formal;
}

/* ---- registers ---- */

static sg_register *make_register(sg_parser *parser, const char *name, declared kind) {
    sg_register *reg = sg_allocate(parser->compiler, sizeof *reg);
    *reg = (sg_register){.name = name, .type = kind.type};
    if (kind.vector == 1)
        return reg;
    reg->part_count = kind.vector;
    reg->parts = sg_allocate(parser->compiler, kind.vector * sizeof *reg->parts);
    for (unsigned i = 0; i < kind.vector; i++)
        reg->parts[i] = (sg_register){.name = name, .type = kind.type};
    return reg;
}

static void define_registers(sg_parser *parser, declared kind, const char *name) {
    sg_named named = {NAMED_RANGE, NULL};
    if (sg_take_mark(parser, '<')) {
        register_range *range = sg_allocate(parser->compiler, sizeof *range);
        *range = (register_range){name, sg_expect_integer(parser), kind};
        sg_expect_mark(parser, '>');
        named.thing = range;
    } else {
        named = (sg_named){NAMED_REGISTER, make_register(parser, name, kind)};
    }
    if (!sg_define(parser->compiler, parser->names, sg_scope(parser), name, named))
        sg_fail(parser->compiler, SG_BAD_PTX, parser->token.line, "register %s is defined twice", name);
}

void sg_parse_registers(sg_parser *parser) {
    int line = parser->token.line;
    declared kind = parse_declared(parser);
    if (kind.type == W_none)
        sg_fail(parser->compiler, SG_BAD_PTX, line, "a register without a type");
    if (kind.vector > 4 || (kind.vector > 1 && kind.type == W_pred))
        sg_fail(parser->compiler, SG_BAD_PTX, line, "a vector register has 2 or 4 numbers");
    do
        define_registers(parser, kind, sg_expect_name(parser));
    while (sg_take_mark(parser, ','));
    sg_expect_mark(parser, ';');
}

/* A register of a range, made when it is first named: `.reg .b32 %r<100000>` costs nothing. */
static sg_register *from_range(sg_parser *parser, uint32_t scope, const char *name) {
    size_t length = strlen(name);
    uint64_t index = 0, unit = 1;
    for (size_t split = length; split > 1 && name[split - 1] >= '0' && name[split - 1] <= '9' && unit < 10000000000;) {
        split--;
        index += (uint64_t)(name[split] - '0') * unit;
        unit *= 10;
        if (name[split] == '0' && split + 1 < length)
            continue; /* %r01 is not %r1 */
        sg_named named = sg_lookup(parser->names, scope, sg_intern(parser->compiler, parser->names, name, split));
        register_range *range = named.thing;
        if (named.kind != NAMED_RANGE || index >= range->count)
            continue;
        sg_register *reg = make_register(parser, name, range->kind);
        sg_define(parser->compiler, parser->names, scope, name, (sg_named){NAMED_REGISTER, reg});
        return reg;
    }
    return NULL;
}

sg_register *sg_find_register(sg_parser *parser, const char *name) {
    for (size_t depth = parser->scope_depth; depth-- > 0;) {
        uint32_t scope = parser->scopes[depth];
        sg_named named = sg_lookup(parser->names, scope, name);
        if (named.kind == NAMED_REGISTER)
            return named.thing;
        if (named.kind == NAMED_VARIABLE || named.kind == NAMED_LABEL)
            return NULL;
        sg_register *reg = from_range(parser, scope, name);
        if (reg)
            return reg;
    }
    return NULL;
}
