/* The outermost grammar: directives, variables and functions in any order. */
#include "parser.h"

#include <string.h>

void sg_advance(sg_parser *parser) {
    parser->token = parser->ahead;
    parser->ahead = sg_lex(&parser->lexer);
}

bool sg_token_is(const sg_token *token, const char *text) {
    return token->length == strlen(text) && !memcmp(token->text, text, token->length);
}

bool sg_at_mark(const sg_parser *parser, char mark) {
    return parser->token.kind == TOKEN_MARK && parser->token.mark == mark;
}

bool sg_take_mark(sg_parser *parser, char mark) {
    bool taken = sg_at_mark(parser, mark);
    if (taken)
        sg_advance(parser);
    return taken;
}

void sg_unexpected(sg_parser *parser, const char *wanted) {
    const sg_token *token = &parser->token;
    if (token->kind == TOKEN_END)
        sg_fail(parser->compiler, SG_BAD_PTX, token->line, "%s expected, but the text ends", wanted);
    int shown = token->length > 60 ? 60 : (int)token->length;
    sg_fail(parser->compiler, SG_BAD_PTX, token->line, "%s expected, found '%.*s'", wanted, shown, token->text);
}

void sg_expect_mark(sg_parser *parser, char mark) {
    char wanted[] = {'\'', mark, '\'', 0};
    if (!sg_take_mark(parser, mark))
        sg_unexpected(parser, wanted);
}

bool sg_at_dotted(const sg_parser *parser, const char *word) {
    return parser->token.kind == TOKEN_DOTTED && sg_token_is(&parser->token, word);
}

bool sg_take_dotted(sg_parser *parser, const char *word) {
    bool taken = sg_at_dotted(parser, word);
    if (taken)
        sg_advance(parser);
    return taken;
}

const char *sg_expect_name(sg_parser *parser) {
    if (parser->token.kind != TOKEN_NAME)
        sg_unexpected(parser, "a name");
    const char *name = sg_intern(parser->compiler, parser->names, parser->token.text, parser->token.length);
    sg_advance(parser);
    return name;
}

uint64_t sg_expect_integer(sg_parser *parser) {
    bool negative = sg_take_mark(parser, '-');
    if (parser->token.kind != TOKEN_INTEGER)
        sg_unexpected(parser, "an integer");
    uint64_t value = parser->token.integer;
    sg_advance(parser);
    return negative ? -value : value;
}

/* .loc, .file and the like end with their line, not with a mark. */
void sg_skip_line(sg_parser *parser) {
    int line = parser->token.line;
    while (parser->token.kind != TOKEN_END && parser->token.line == line)
        sg_advance(parser);
}

/* .section .debug_info { ... }: what a debugger wants to know. */
static void skip_section(sg_parser *parser) {
    while (!sg_at_mark(parser, '{')) {
        if (parser->token.kind == TOKEN_END)
            sg_unexpected(parser, "'{'");
        sg_advance(parser);
    }
    while (!sg_take_mark(parser, '}')) {
        if (parser->token.kind == TOKEN_END)
            sg_unexpected(parser, "'}'");
        sg_advance(parser);
    }
}

/* The lexer reads 8.0 as a double. */
static int version_of(const sg_token *token) {
    int major = 0, minor = 0;
    size_t i = 0;
    for (; i < token->length && token->text[i] >= '0' && token->text[i] <= '9' && major < 100; i++)
        major = major * 10 + token->text[i] - '0';
    for (i++; i < token->length && token->text[i] >= '0' && token->text[i] <= '9' && minor < 10; i++)
        minor = minor * 10 + token->text[i] - '0';
    return major * 10 + minor;
}

/* .version 8.0 */
static void parse_version(sg_parser *parser) {
    if (parser->token.kind != TOKEN_DOUBLE)
        sg_unexpected(parser, "a version such as 8.0");
    parser->ir->ptx_version = version_of(&parser->token);
    sg_advance(parser);
}

int sg_ptx_version(const char *text, size_t length, int *line) {
    char unread[1];
    sg_compiler compiler;
    sg_lexer lexer;
    sg_compiler_open(&compiler, unread, sizeof unread);
    if (setjmp(compiler.escape))
        return 0; /* the lexer takes nothing from the arena */
    sg_lexer_open(&lexer, &compiler, text, length);
    sg_token token = sg_lex(&lexer);
    if (token.kind != TOKEN_DOTTED || !sg_token_is(&token, "version"))
        return 0;
    token = sg_lex(&lexer);
    *line = token.line;
    return token.kind == TOKEN_DOUBLE ? version_of(&token) : 0;
}

/* .target sm_80, debug */
static void parse_target(sg_parser *parser) {
    const char *name = sg_expect_name(parser);
    if (strncmp(name, "sm_", 3))
        sg_fail(parser->compiler, SG_BAD_PTX, parser->token.line, "a target such as sm_80 expected, found '%s'", name);
    int target = 0;
    for (const char *digit = name + 3; *digit >= '0' && *digit <= '9' && target < 10000; digit++)
        target = target * 10 + *digit - '0';
    parser->ir->target = target;
    while (sg_take_mark(parser, ','))
        sg_expect_name(parser);
}

static void parse_address_size(sg_parser *parser) {
    int line = parser->token.line;
    parser->ir->address_size = (int)sg_expect_integer(parser);
    if (parser->ir->address_size != 64)
        sg_fail(parser->compiler, SG_UNSUPPORTED, line, ".address_size %d is not supported: only 64",
                parser->ir->address_size);
}

static sg_linkage parse_linkage(sg_parser *parser) {
    if (sg_take_dotted(parser, "extern"))
        return LINK_EXTERN;
    if (sg_take_dotted(parser, "visible"))
        return LINK_VISIBLE;
    if (sg_take_dotted(parser, "weak"))
        return LINK_WEAK;
    if (sg_take_dotted(parser, "common"))
        return LINK_COMMON;
    return LINK_LOCAL;
}

static void parse_definition(sg_parser *parser) {
    sg_linkage linkage = parse_linkage(parser);
    if (sg_take_dotted(parser, "entry"))
        sg_parse_function(parser, linkage, true);
    else if (sg_take_dotted(parser, "func"))
        sg_parse_function(parser, linkage, false);
    else
        sg_parse_variables(parser, linkage);
}

/* `.alias f, g;`: f, declared before and without a body, is g. */
static void parse_alias(sg_parser *parser) {
    int line = parser->token.line;
    const char *name = sg_expect_name(parser);
    sg_named named = sg_lookup(parser->names, 0, name);
    sg_function *function = named.kind == NAMED_FUNCTION ? named.thing : NULL;
    if (!function || function->defined || function->alias)
        sg_fail(parser->compiler, SG_BAD_PTX, line, "%.100s is no function that is only declared", name);
    sg_expect_mark(parser, ',');
    const char *other = sg_expect_name(parser);
    named = sg_lookup(parser->names, 0, other);
    const sg_function *target = named.kind == NAMED_FUNCTION ? named.thing : NULL;
    if (!target || target == function || target->alias)
        sg_fail(parser->compiler, SG_BAD_PTX, line, "%.100s, the alias of %.100s, is no function", other, name);
    function->alias = other;
    sg_expect_mark(parser, ';');
}

/* Two are ours, and stand in what a link gave. Pragmas, since whoever else reads the text passes over those
 * that it does not know. */
static uint32_t register_limit_in(const sg_token *token) {
    static const char key[] = SG_REGISTER_LIMIT_PRAGMA "=";
    uint32_t limit = 0;
    if (token->kind != TOKEN_STRING || token->length < sizeof key || memcmp(token->text, key, sizeof key - 1))
        return 0;
    for (size_t i = sizeof key - 1; i < token->length && token->text[i] >= '0' && token->text[i] <= '9' && limit < 1000; i++)
        limit = limit * 10 + (uint32_t)(token->text[i] - '0');
    return limit;
}

static void parse_pragma(sg_parser *parser) {
    while (!sg_take_mark(parser, ';')) {
        if (parser->token.kind == TOKEN_END)
            sg_unexpected(parser, "';'");
        uint32_t limit = register_limit_in(&parser->token);
        if (limit)
            parser->ir->register_limit = limit;
        if (parser->token.kind == TOKEN_STRING && sg_token_is(&parser->token, SG_LINKED_PRAGMA))
            parser->ir->linked = true;
        sg_advance(parser);
    }
}

static void parse_statement(sg_parser *parser) {
    if (parser->token.kind != TOKEN_DOTTED) {
        if (sg_take_mark(parser, ';'))
            return;
        sg_unexpected(parser, "a directive");
    }
    if (sg_at_dotted(parser, "file") || sg_at_dotted(parser, "loc"))
        sg_skip_line(parser);
    else if (sg_at_dotted(parser, "section"))
        skip_section(parser);
    else if (sg_take_dotted(parser, "version"))
        parse_version(parser);
    else if (sg_take_dotted(parser, "target"))
        parse_target(parser);
    else if (sg_take_dotted(parser, "address_size"))
        parse_address_size(parser);
    else if (sg_take_dotted(parser, "pragma"))
        parse_pragma(parser);
    else if (sg_take_dotted(parser, "alias"))
        parse_alias(parser);
    else
        parse_definition(parser);
}

sg_ir *sg_parse(sg_compiler *compiler, const char *text, size_t length) {
    sg_parser *parser = sg_allocate(compiler, sizeof *parser);
    parser->compiler = compiler;
    parser->names = sg_names_open(compiler);
    parser->ir = sg_allocate(compiler, sizeof *parser->ir);
    parser->ir->names = parser->names;
    parser->ir->address_size = 64;
    sg_lexer_open(&parser->lexer, compiler, text, length);
    sg_advance(parser);
    sg_advance(parser);
    if (!sg_at_dotted(parser, "version"))
        sg_unexpected(parser, "'.version'");
    while (parser->token.kind != TOKEN_END)
        parse_statement(parser);
    if (!parser->ir->target)
        sg_fail(compiler, SG_BAD_PTX, 0, "the text has no .target");
    return parser->ir;
}

static sg_named find_in_module(const sg_ir *ir, const char *name) {
    return sg_lookup(ir->names, 0, name);
}

sg_function *sg_find_function(const sg_ir *ir, const char *name) {
    sg_named named = find_in_module(ir, name);
    sg_function *function = named.kind == NAMED_FUNCTION ? named.thing : NULL;
    if (!function || !function->alias)
        return function;
    return find_in_module(ir, function->alias).thing; /* parse_alias saw to it that it is a function */
}

sg_variable_ir *sg_find_variable(const sg_ir *ir, const char *name) {
    sg_named named = find_in_module(ir, name);
    return named.kind == NAMED_VARIABLE ? named.thing : NULL;
}

sg_label *sg_find_label(const sg_function *function, const char *name) {
    for (size_t i = 0; i < function->label_count; i++)
        if (function->labels[i].name == name)
            return &function->labels[i];
    return NULL;
}
