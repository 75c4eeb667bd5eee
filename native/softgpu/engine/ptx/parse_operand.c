/* Operands: registers, constants, addresses, vectors, the lists of a call. */
#include "parser.h"

#include <string.h>

static sg_variable_ir *find_scoped_variable(sg_parser *parser, const char *name) {
    for (size_t depth = parser->scope_depth; depth-- > 0;) {
        sg_named named = sg_lookup(parser->names, parser->scopes[depth], name);
        if (named.kind == NAMED_VARIABLE)
            return named.thing;
    }
    return NULL;
}

/* `%tid.x` comes as `%tid` and `.x`. */
static bool parse_special(sg_parser *parser, const char *name, sg_operand *operand) {
    char text[64];
    if (name[0] != '%' || strlen(name) > 40)
        return false;
    strcpy(text, name + 1);
    if (parser->token.kind == TOKEN_DOTTED && parser->token.length < 8) {
        strcat(text, ".");
        strncat(text, parser->token.text, parser->token.length);
    }
    operand->special = sg_special_named(text);
    if (operand->special < 0)
        return false;
    if (strchr(text, '.'))
        sg_advance(parser);
    operand->kind = OPERAND_SPECIAL;
    return true;
}

/* The `+4`, `-4` or `+-4` after a name or register. */
static uint64_t parse_addend(sg_parser *parser) {
    if (sg_take_mark(parser, '+'))
        return sg_expect_integer(parser);
    return sg_at_mark(parser, '-') ? sg_expect_integer(parser) : 0;
}

/* A vector register: `%v.y` is a component, `%v` alone all of them. */
static void parse_component(sg_parser *parser, sg_operand *operand) {
    const sg_register *whole = operand->reg;
    operand->reg = NULL;
    if (parser->token.kind == TOKEN_DOTTED && parser->token.length == 1) {
        static const char letters[] = "xyzwrgba";
        const char *found = strchr(letters, *parser->token.text);
        unsigned index = found ? (unsigned)(found - letters) % 4 : 4;
        if (index >= whole->part_count)
            sg_unexpected(parser, "a component");
        operand->reg = &whole->parts[index];
        sg_advance(parser);
        return;
    }
    operand->kind = OPERAND_VECTOR;
    operand->item_count = whole->part_count;
    operand->items = sg_allocate(parser->compiler, whole->part_count * sizeof *operand->items);
    for (unsigned i = 0; i < whole->part_count; i++)
        operand->items[i] = (sg_operand){.kind = OPERAND_REGISTER, .reg = &whole->parts[i]};
}

static void parse_name(sg_parser *parser, sg_operand *operand) {
    int line = parser->token.line;
    const char *name = sg_expect_name(parser);
    if (!strcmp(name, "_")) {
        operand->kind = OPERAND_SINK;
    } else if ((operand->reg = sg_find_register(parser, name))) {
        operand->kind = OPERAND_REGISTER;
        if (operand->reg->parts)
            parse_component(parser, operand);
    } else if (!strcmp(name, "WARP_SZ")) {
        operand->kind = OPERAND_INTEGER;
        operand->integer = 32;
    } else if (parse_special(parser, name, operand)) {
        return;
    } else if (name[0] == '%') {
        sg_fail(parser->compiler, SG_BAD_PTX, line, "register %.100s is not declared", name);
    } else {
        operand->kind = OPERAND_NAME;
        operand->name = name;
        operand->variable = find_scoped_variable(parser, name);
    }
}

static void parse_constant(sg_parser *parser, sg_operand *operand) {
    bool negative = sg_take_mark(parser, '-');
    bool inverted = !negative && sg_take_mark(parser, '~');
    uint64_t value = parser->token.integer;
    switch (parser->token.kind) {
    case TOKEN_INTEGER:
        operand->kind = OPERAND_INTEGER;
        operand->integer = negative ? -value : inverted ? ~value : value;
        break;
    case TOKEN_SINGLE:
        operand->kind = OPERAND_SINGLE;
        operand->integer = value ^ (uint64_t)negative << 31;
        break;
    case TOKEN_DOUBLE:
        operand->kind = OPERAND_DOUBLE;
        operand->integer = value ^ (uint64_t)negative << 63;
        break;
    default:
        sg_unexpected(parser, "an operand");
    }
    sg_advance(parser);
}

/* Addresses with more parts than coordinates belong to forms we do not run: they are read over, and the
 * form is reported. */
static void skip_rest_of_address(sg_parser *parser) {
    for (int depth = 1; depth > 0; sg_advance(parser)) {
        if (parser->token.kind == TOKEN_END || sg_at_mark(parser, ';'))
            sg_unexpected(parser, "']'");
        depth += sg_at_mark(parser, '[') - sg_at_mark(parser, ']');
    }
}

static void parse_items(sg_parser *parser, sg_operand *operand, char closing) {
    size_t capacity = 0;
    while (!sg_take_mark(parser, closing)) {
        if (operand->item_count)
            sg_expect_mark(parser, ',');
        if (operand->item_count > 4096)
            sg_unexpected(parser, "the end of a list");
        operand->items = sg_grow(parser->compiler, operand->items, operand->item_count, &capacity,
                                 sizeof *operand->items);
        sg_operand *item = &operand->items[operand->item_count++];
        *item = (sg_operand){0};
        if (sg_at_mark(parser, '{') || sg_at_mark(parser, '(') || sg_at_mark(parser, '['))
            sg_unexpected(parser, "a register or constant");
        sg_parse_operand(parser, item);
    }
}

/* `[tex, {x, y}]`: the coordinates become the address's items. */
static void parse_coordinates(sg_parser *parser, sg_operand *operand) {
    if (!sg_take_mark(parser, ',')) {
        sg_expect_mark(parser, ']');
        return;
    }
    if (sg_take_mark(parser, '{'))
        parse_items(parser, operand, '}');
    if (!sg_take_mark(parser, ']'))
        skip_rest_of_address(parser);
}

static void parse_address(sg_parser *parser, sg_operand *operand) {
    if (parser->token.kind == TOKEN_NAME) {
        parse_name(parser, operand);
        if (operand->kind != OPERAND_REGISTER && operand->kind != OPERAND_NAME)
            sg_unexpected(parser, "an address");
        operand->integer = parse_addend(parser);
    } else {
        operand->integer = sg_expect_integer(parser);
    }
    operand->kind = OPERAND_ADDRESS;
    parse_coordinates(parser, operand);
}

/* `a|b`: the second half after the first is read. */
static void parse_pair(sg_parser *parser, sg_operand *operand) {
    sg_operand *items = sg_allocate(parser->compiler, 2 * sizeof *items);
    items[0] = *operand;
    if (parser->token.kind != TOKEN_NAME)
        sg_unexpected(parser, "a register");
    parse_name(parser, &items[1]);
    *operand = (sg_operand){.kind = OPERAND_PAIR, .items = items, .item_count = 2};
}

void sg_parse_operand(sg_parser *parser, sg_operand *operand) {
    if (sg_take_mark(parser, '[')) {
        parse_address(parser, operand);
        return;
    }
    if (sg_take_mark(parser, '{')) {
        operand->kind = OPERAND_VECTOR;
        parse_items(parser, operand, '}');
        return;
    }
    if (sg_take_mark(parser, '(')) {
        operand->kind = OPERAND_LIST;
        parse_items(parser, operand, ')');
        return;
    }
    bool negated = sg_take_mark(parser, '!');
    if (parser->token.kind != TOKEN_NAME) {
        parse_constant(parser, operand);
        return;
    }
    parse_name(parser, operand);
    operand->negated = negated;
    if (operand->kind == OPERAND_NAME)
        operand->integer = parse_addend(parser);
    if (sg_take_mark(parser, '|'))
        parse_pair(parser, operand);
}
