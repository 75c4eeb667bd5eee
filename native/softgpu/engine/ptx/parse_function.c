/* Functions: head, performance directives, body. */
#include "parser.h"

#include <string.h>

void sg_open_scope(sg_parser *parser) {
    if (parser->scope_depth == SCOPES_DEEP)
        sg_fail(parser->compiler, SG_BAD_PTX, parser->token.line, "blocks nested deeper than %d", SCOPES_DEEP);
    parser->scopes[parser->scope_depth++] = ++parser->scopes_met;
}

void sg_close_scope(sg_parser *parser) { parser->scope_depth--; }

uint32_t sg_scope(const sg_parser *parser) {
    return parser->scope_depth ? parser->scopes[parser->scope_depth - 1] : 0;
}

void sg_parse_formals(sg_parser *parser, sg_variable_ir ***formals, size_t *count) {
    size_t capacity = 0;
    *formals = NULL;
    *count = 0;
    sg_expect_mark(parser, '(');
    while (!sg_take_mark(parser, ')')) {
        if (*count)
            sg_expect_mark(parser, ',');
        *formals = sg_grow(parser->compiler, *formals, *count, &capacity, sizeof **formals);
        (*formals)[(*count)++] = sg_parse_formal(parser);
    }
}

static void define_formals(sg_parser *parser, sg_variable_ir **formals, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sg_variable_ir *formal = formals[i];
        sg_named named = formal->formal ? (sg_named){NAMED_REGISTER, formal->formal} : (sg_named){NAMED_VARIABLE, formal};
        if (!sg_define(parser->compiler, parser->names, sg_scope(parser), formal->name, named))
            sg_fail(parser->compiler, SG_BAD_PTX, formal->line, "parameter %.100s is named twice", formal->name);
    }
}

/* ---- the body ---- */

static sg_label *add_label(sg_parser *parser, const char *name) {
    sg_function *function = parser->function;
    sg_label *existing = sg_find_label(function, name);
    if (existing)
        sg_fail(parser->compiler, SG_BAD_PTX, parser->token.line, "label %.100s is defined twice", name);
    function->labels = sg_grow(parser->compiler, function->labels, function->label_count, &parser->label_capacity,
                               sizeof *function->labels);
    sg_label *label = &function->labels[function->label_count++];
    *label = (sg_label){.name = name, .position = function->instruction_count};
    return label;
}

static void parse_targets(sg_parser *parser, sg_label *label) {
    size_t capacity = 0;
    do {
        label->targets = sg_grow(parser->compiler, label->targets, label->target_count, &capacity,
                                 sizeof *label->targets);
        label->targets[label->target_count++] = sg_expect_name(parser);
    } while (sg_take_mark(parser, ','));
    sg_expect_mark(parser, ';');
}

/* prototype_2 : .callprototype (.param .b32 _) _ (.param .b32 _); */
static void parse_prototype(sg_parser *parser, sg_label *label) {
    sg_function *prototype = sg_allocate(parser->compiler, sizeof *prototype);
    prototype->line = parser->token.line;
    if (sg_at_mark(parser, '('))
        sg_parse_formals(parser, &prototype->returns, &prototype->return_count);
    prototype->name = sg_expect_name(parser);
    if (sg_at_mark(parser, '('))
        sg_parse_formals(parser, &prototype->params, &prototype->param_count);
    while (parser->token.kind == TOKEN_DOTTED) /* .noreturn, .abi_preserve n */
        for (sg_advance(parser); parser->token.kind == TOKEN_INTEGER;)
            sg_advance(parser);
    sg_expect_mark(parser, ';');
    label->prototype = prototype;
}

static void parse_label(sg_parser *parser) {
    sg_label *label = add_label(parser, sg_expect_name(parser));
    sg_expect_mark(parser, ':');
    if (sg_take_dotted(parser, "branchtargets"))
        parse_targets(parser, label);
    else if (sg_take_dotted(parser, "callprototype"))
        parse_prototype(parser, label);
    else if (sg_at_dotted(parser, "calltargets"))
        while (!sg_take_mark(parser, ';')) {
            if (parser->token.kind == TOKEN_END)
                sg_unexpected(parser, "';'");
            sg_advance(parser);
        }
}

/* "ld.global.v2.f32" from the first byte of the opcode to the last of its words. */
static void parse_words(sg_parser *parser, sg_instruction *instruction) {
    const char *start = parser->token.text;
    const char *end = start + parser->token.length;
    instruction->opcode = sg_expect_name(parser);
    while (parser->token.kind == TOKEN_DOTTED) {
        sg_word word = sg_word_named(parser->token.text, parser->token.length);
        end = parser->token.text + parser->token.length;
        if (word == W_shape)
            sg_read_shape(parser->token.text, parser->token.length, instruction->shape);
        if (word == W_none && !instruction->unknown)
            instruction->unknown =
                sg_intern(parser->compiler, parser->names, parser->token.text, parser->token.length);
        if (instruction->word_count == WORDS_PER_INSTRUCTION)
            instruction->unknown = "a form of more than 12 words";
        else
            instruction->words[instruction->word_count++] = word;
        sg_advance(parser);
    }
    size_t length = (size_t)(end - start);
    instruction->form = sg_intern(parser->compiler, parser->names, start, length > 120 ? 120 : length);
}

static void parse_guard(sg_parser *parser, sg_instruction *instruction) {
    if (!sg_take_mark(parser, '@'))
        return;
    instruction->guard_negated = sg_take_mark(parser, '!');
    int line = parser->token.line;
    const char *name = sg_expect_name(parser);
    instruction->guard = sg_find_register(parser, name);
    if (!instruction->guard || instruction->guard->type != W_pred)
        sg_fail(parser->compiler, SG_BAD_PTX, line, "%.100s is no predicate", name);
}

static void parse_instruction(sg_parser *parser) {
    sg_function *function = parser->function;
    function->instructions = sg_grow(parser->compiler, function->instructions, function->instruction_count,
                                     &parser->instruction_capacity, sizeof *function->instructions);
    sg_instruction *instruction = &function->instructions[function->instruction_count];
    *instruction = (sg_instruction){.line = parser->token.line};
    parse_guard(parser, instruction);
    parse_words(parser, instruction);
    size_t capacity = 0;
    while (!sg_take_mark(parser, ';')) {
        if (instruction->operand_count)
            sg_expect_mark(parser, ',');
        instruction->operands = sg_grow(parser->compiler, instruction->operands, instruction->operand_count, &capacity,
                                        sizeof *instruction->operands);
        sg_operand *operand = &instruction->operands[instruction->operand_count++];
        *operand = (sg_operand){0};
        sg_parse_operand(parser, operand);
    }
    function->instruction_count++;
}

static void parse_body_directive(sg_parser *parser) {
    if (sg_at_dotted(parser, "loc") || sg_at_dotted(parser, "file"))
        sg_skip_line(parser);
    else if (sg_take_dotted(parser, "pragma"))
        while (!sg_take_mark(parser, ';')) {
            if (parser->token.kind == TOKEN_END)
                sg_unexpected(parser, "';'");
            sg_advance(parser);
        }
    else if (sg_at_dotted(parser, "reg"))
        sg_parse_registers(parser);
    else
        sg_parse_variables(parser, sg_take_dotted(parser, "extern") ? LINK_EXTERN : LINK_LOCAL);
}

static void parse_body(sg_parser *parser) {
    size_t outer = parser->scope_depth;
    sg_open_scope(parser);
    while (parser->scope_depth > outer) {
        if (sg_take_mark(parser, '}'))
            sg_close_scope(parser);
        else if (sg_take_mark(parser, '{'))
            sg_open_scope(parser);
        else if (parser->token.kind == TOKEN_DOTTED)
            parse_body_directive(parser);
        else if (parser->token.kind == TOKEN_NAME && parser->ahead.kind == TOKEN_MARK && parser->ahead.mark == ':')
            parse_label(parser);
        else if (parser->token.kind == TOKEN_NAME || sg_at_mark(parser, '@'))
            parse_instruction(parser);
        else if (!sg_take_mark(parser, ';'))
            sg_unexpected(parser, "an instruction");
    }
}

/* ---- the head ---- */

static void parse_threads(sg_parser *parser, uint32_t threads[3]) {
    for (int i = 0; i < 3; i++) {
        uint64_t count = i == 0 || sg_take_mark(parser, ',') ? sg_expect_integer(parser) : 1;
        threads[i] = count > 1024 ? 1024 : (uint32_t)count;
    }
}

static void parse_performance(sg_parser *parser, sg_function *function) {
    uint32_t threads[3];
    if (sg_take_dotted(parser, "maxntid")) {
        parse_threads(parser, threads);
        function->max_threads = threads[0] * threads[1] * threads[2];
    } else if (sg_take_dotted(parser, "reqntid")) {
        parse_threads(parser, function->required_threads);
    } else if (sg_take_dotted(parser, "reqnctapercluster")) {
        parse_threads(parser, threads);
        function->cluster_blocks = (uint64_t)threads[0] * threads[1] * threads[2];
    } else if (sg_take_dotted(parser, "maxnreg")) {
        function->register_limit = (uint32_t)sg_expect_integer(parser);
    } else { /* .minnctapersm 2, .noreturn, .pragma "...": of no consequence here */
        sg_advance(parser);
        while (parser->token.kind == TOKEN_INTEGER || parser->token.kind == TOKEN_STRING || sg_at_mark(parser, ','))
            sg_advance(parser);
    }
}

/* A declaration and its definition are one function: what was declared is filled in. */
static sg_function *enter_function(sg_parser *parser, sg_function *head) {
    sg_named named = sg_lookup(parser->names, 0, head->name);
    if (named.kind == NAMED_FUNCTION) {
        sg_function *earlier = named.thing;
        if (earlier->entry != head->entry)
            sg_fail(parser->compiler, SG_BAD_PTX, head->line, "%.100s is declared as .entry and as .func", head->name);
        if (!earlier->defined) {
            head->index = earlier->index;
            *earlier = *head;
        }
        return earlier;
    }
    if (named.kind != NAMED_NOTHING)
        sg_fail(parser->compiler, SG_BAD_PTX, head->line, "%.100s is defined twice", head->name);
    sg_ir *ir = parser->ir;
    sg_define(parser->compiler, parser->names, 0, head->name, (sg_named){NAMED_FUNCTION, head});
    ir->functions = sg_grow(parser->compiler, ir->functions, ir->function_count, &parser->function_capacity,
                            sizeof *ir->functions);
    head->index = ir->function_count;
    ir->functions[ir->function_count++] = head;
    return head;
}

static sg_function *parse_head(sg_parser *parser, sg_linkage linkage, bool entry) {
    sg_function *head = sg_allocate(parser->compiler, sizeof *head);
    head->entry = entry;
    head->linkage = linkage;
    head->line = parser->token.line;
    if (sg_at_mark(parser, '('))
        sg_parse_formals(parser, &head->returns, &head->return_count);
    head->name = sg_expect_name(parser);
    if (sg_at_mark(parser, '('))
        sg_parse_formals(parser, &head->params, &head->param_count);
    while (parser->token.kind == TOKEN_DOTTED)
        parse_performance(parser, head);
    return head;
}

void sg_parse_function(sg_parser *parser, sg_linkage linkage, bool entry) {
    sg_function *head = parse_head(parser, linkage, entry);
    sg_function *function = enter_function(parser, head);
    if (sg_take_mark(parser, ';'))
        return;
    if (function->defined)
        sg_fail(parser->compiler, SG_BAD_PTX, head->line, "%.100s is defined twice", function->name);
    sg_expect_mark(parser, '{');
    function->defined = true;
    parser->function = function;
    parser->scope_depth = 0;
    parser->instruction_capacity = parser->label_capacity = parser->local_capacity = 0;
    sg_open_scope(parser);
    define_formals(parser, function->returns, function->return_count);
    define_formals(parser, function->params, function->param_count);
    parse_body(parser);
    sg_close_scope(parser);
    parser->function = NULL;
    for (size_t i = 0; i < function->return_count; i++)
        function->returns[i]->owner = function;
    for (size_t i = 0; i < function->param_count; i++)
        function->params[i]->owner = function;
}
