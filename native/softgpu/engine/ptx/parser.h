/* What the parser's files share: the token window, the scopes, the small grammar steps. */
#ifndef SG_PTX_PARSER_H
#define SG_PTX_PARSER_H

#include "ir.h"
#include "lexer.h"
#include "names.h"

enum { SCOPES_DEEP = 64 };

typedef struct {
    sg_compiler *compiler;
    sg_lexer lexer;
    sg_token token; /* the one to look at */
    sg_token ahead; /* and the one after */
    sg_ir *ir;
    sg_name_table *names;
    size_t variable_capacity, function_capacity;

    /* in a function */
    sg_function *function;
    uint32_t scopes[SCOPES_DEEP]; /* numbers of the open scopes, innermost last */
    size_t scope_depth;
    uint32_t scopes_met;
    size_t instruction_capacity, label_capacity, local_capacity;
} sg_parser;

/* ---- tokens ---- */

void sg_advance(sg_parser *parser);
bool sg_at_mark(const sg_parser *parser, char mark);
bool sg_take_mark(sg_parser *parser, char mark);
void sg_expect_mark(sg_parser *parser, char mark);
bool sg_at_dotted(const sg_parser *parser, const char *word);
bool sg_take_dotted(sg_parser *parser, const char *word);
const char *sg_expect_name(sg_parser *parser); /* interned */
uint64_t sg_expect_integer(sg_parser *parser); /* also a negative one, as two's complement */
_Noreturn void sg_unexpected(sg_parser *parser, const char *wanted);
bool sg_token_is(const sg_token *token, const char *text);

/* ---- declarations (parse_variable.c) ---- */

/* After the linkage and at the state space: one statement, up to and with `;`. */
void sg_parse_variables(sg_parser *parser, sg_linkage linkage);
/* `.param .b64 name` or `.reg .b32 name` of a parameter list. */
sg_variable_ir *sg_parse_formal(sg_parser *parser);
/* `.reg .b32 %r<5>, %x;` */
void sg_parse_registers(sg_parser *parser);
sg_register *sg_find_register(sg_parser *parser, const char *name);

/* ---- functions (parse_function.c, parse_operand.c) ---- */

void sg_parse_function(sg_parser *parser, sg_linkage linkage, bool entry);
/* `( .param ... )` into the array. */
void sg_parse_formals(sg_parser *parser, sg_variable_ir ***formals, size_t *count);
void sg_parse_operand(sg_parser *parser, sg_operand *operand);
void sg_skip_line(sg_parser *parser);
void sg_open_scope(sg_parser *parser);
void sg_close_scope(sg_parser *parser);
uint32_t sg_scope(const sg_parser *parser);

#endif
