/* PTX text as tokens. Used by the parser and by the linker. */
#ifndef SG_PTX_LEXER_H
#define SG_PTX_LEXER_H

#include "compiler.h"

typedef enum {
    TOKEN_END,
    TOKEN_NAME,    /* %r1, $L__BB0_2, _Z3foo */
    TOKEN_DOTTED,  /* .global: `text` is what follows the dot */
    TOKEN_INTEGER,
    TOKEN_SINGLE,  /* 0f3F800000: bits in `integer` */
    TOKEN_DOUBLE,  /* 0d... or 1.5: bits in `integer` */
    TOKEN_STRING,
    TOKEN_MARK     /* one character of punctuation */
} sg_token_kind;

typedef struct {
    sg_token_kind kind;
    char mark;
    int line;
    const char *text; /* into the source, `length` bytes */
    size_t length;
    uint64_t integer;
} sg_token;

typedef struct {
    sg_compiler *compiler;
    const char *at;
    const char *end;
    int line;
} sg_lexer;

void sg_lexer_open(sg_lexer *lexer, sg_compiler *compiler, const char *text, size_t length);
/* Escapes with SG_BAD_PTX on a character or number that is no PTX. */
sg_token sg_lex(sg_lexer *lexer);

#endif
