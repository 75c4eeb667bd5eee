#include "lexer.h"

#include <stdlib.h>
#include <string.h>

void sg_lexer_open(sg_lexer *lexer, sg_compiler *compiler, const char *text, size_t length) {
    lexer->compiler = compiler;
    lexer->at = text;
    lexer->end = text + length;
    lexer->line = 1;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int hex_value(char c) {
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static bool continues_name(char c) { return (starts_name(c) && c != '%') || is_digit(c); }

static char peek(const sg_lexer *lexer, size_t ahead) {
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : 0;
}

static void skip_block_comment(sg_lexer *lexer) {
    int opened = lexer->line;
    for (lexer->at += 2; lexer->at < lexer->end; lexer->at++) {
        if (*lexer->at == '\n')
            lexer->line++;
        if (*lexer->at == '*' && peek(lexer, 1) == '/') {
            lexer->at += 2;
            return;
        }
    }
    sg_fail(lexer->compiler, SG_BAD_PTX, opened, "comment without an end");
}

static void skip_blank(sg_lexer *lexer) {
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n')
            lexer->line++;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
            lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '/') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '*') {
            skip_block_comment(lexer);
        } else if (c == 0 && lexer->end - lexer->at == 1) {
            lexer->at++; /* a terminator counted into the length: drivers accept it */
        } else {
            return;
        }
    }
}

/* 0f and 0d: exactly 8 and 16 hexadecimal digits. */
static void lex_float_bits(sg_lexer *lexer, sg_token *token, int digits) {
    lexer->at += 2;
    for (int i = 0; i < digits; i++) {
        int value = hex_value(peek(lexer, 0));
        if (value < 0)
            sg_fail(lexer->compiler, SG_BAD_PTX, lexer->line, "a floating-point constant needs %d hexadecimal digits",
                    digits);
        token->integer = token->integer << 4 | (uint64_t)value;
        lexer->at++;
    }
    token->kind = digits == 8 ? TOKEN_SINGLE : TOKEN_DOUBLE;
}

static void lex_radix(sg_lexer *lexer, sg_token *token, int radix) {
    int digits = 0;
    for (;; lexer->at++, digits++) {
        int value = hex_value(peek(lexer, 0));
        if (value < 0 || value >= radix)
            break;
        if (token->integer > (UINT64_MAX - (uint64_t)value) / (uint64_t)radix)
            sg_fail(lexer->compiler, SG_BAD_PTX, lexer->line, "an integer constant exceeds 64 bits");
        token->integer = token->integer * (uint64_t)radix + (uint64_t)value;
    }
    if (!digits)
        sg_fail(lexer->compiler, SG_BAD_PTX, lexer->line, "a constant without digits");
    if (peek(lexer, 0) == 'U')
        lexer->at++;
}

/* 1.5, 1e10: a double written in decimal. */
static bool lex_decimal_double(sg_lexer *lexer, sg_token *token) {
    size_t n = 0;
    while (is_digit(peek(lexer, n)))
        n++;
    char next = peek(lexer, n);
    if (next != '.' && next != 'e' && next != 'E')
        return false;
    char digits[64];
    size_t length = 0;
    while (length < sizeof digits - 1) {
        char c = peek(lexer, length);
        bool sign = (c == '+' || c == '-') && length && (digits[length - 1] == 'e' || digits[length - 1] == 'E');
        if (!is_digit(c) && c != '.' && c != 'e' && c != 'E' && !sign)
            break;
        digits[length++] = c;
    }
    digits[length] = 0;
    char *rest;
    double value = strtod(digits, &rest);
    if (rest != digits + length) /* also under a locale whose decimal point is a comma: never a wrong value */
        sg_fail(lexer->compiler, SG_BAD_PTX, lexer->line, "not a number: %s", digits);
    memcpy(&token->integer, &value, sizeof value);
    lexer->at += length;
    token->kind = TOKEN_DOUBLE;
    return true;
}

static void lex_number(sg_lexer *lexer, sg_token *token) {
    char second = peek(lexer, 1);
    token->kind = TOKEN_INTEGER;
    if (*lexer->at == '0' && (second == 'f' || second == 'F')) {
        lex_float_bits(lexer, token, 8);
    } else if (*lexer->at == '0' && (second == 'd' || second == 'D')) {
        lex_float_bits(lexer, token, 16);
    } else if (*lexer->at == '0' && (second == 'x' || second == 'X')) {
        lexer->at += 2;
        lex_radix(lexer, token, 16);
    } else if (*lexer->at == '0' && (second == 'b' || second == 'B')) {
        lexer->at += 2;
        lex_radix(lexer, token, 2);
    } else if (!lex_decimal_double(lexer, token)) {
        lex_radix(lexer, token, *lexer->at == '0' ? 8 : 10);
    }
}

static void lex_dotted(sg_lexer *lexer, sg_token *token) {
    lexer->at++;
    token->kind = TOKEN_DOTTED;
    token->text = lexer->at;
    while (continues_name(peek(lexer, 0)) || (peek(lexer, 0) == ':' && peek(lexer, 1) == ':'))
        lexer->at += peek(lexer, 0) == ':' ? 2 : 1;
}

static void lex_string(sg_lexer *lexer, sg_token *token) {
    token->kind = TOKEN_STRING;
    token->text = ++lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at++;
    if (peek(lexer, 0) != '"')
        sg_fail(lexer->compiler, SG_BAD_PTX, lexer->line, "string without an end");
}

sg_token sg_lex(sg_lexer *lexer) {
    skip_blank(lexer);
    sg_token token = {.kind = TOKEN_END, .line = lexer->line, .text = lexer->at};
    if (lexer->at == lexer->end)
        return token;
    char c = *lexer->at;
    if (starts_name(c)) {
        token.kind = TOKEN_NAME;
        do
            lexer->at++;
        while (continues_name(peek(lexer, 0)));
    } else if (c == '.' && continues_name(peek(lexer, 1))) { /* also .2d */
        lex_dotted(lexer, &token);
    } else if (is_digit(c)) {
        lex_number(lexer, &token);
    } else if (c == '"') {
        lex_string(lexer, &token);
        token.length = (size_t)(lexer->at++ - token.text);
        return token;
    } else if (c && strchr(",;:()[]{}<>+-*/=|@!~&^.#?%", c)) {
        token.kind = TOKEN_MARK;
        token.mark = c;
        lexer->at++;
    } else {
        sg_fail(lexer->compiler, SG_BAD_PTX, lexer->line, "unexpected byte 0x%02x", (unsigned char)c);
    }
    token.length = (size_t)(lexer->at - token.text);
    return token;
}
