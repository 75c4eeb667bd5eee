/* Linking: several PTX texts into one. Works on the text, statement by statement, so that
 * what comes out is PTX that any reader of the first texts can read: declarations that a
 * definition elsewhere answers are left out, of several weak or common definitions the first
 * is kept, and names private to one text that another text also uses are renamed. */
#include "lexer.h"
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { REACH_PRIVATE, REACH_EXTERN, REACH_STRONG, REACH_WEAK } reach;

typedef struct {
    size_t text;      /* which input */
    const char *from; /* the statement */
    const char *to;
    int line;
    const char *name; /* interned */
    reach reach;
    bool defines; /* false: a declaration of a function whose body is elsewhere */
    bool dropped;
} statement;

typedef struct {
    sg_compiler compiler;
    sg_name_table *names;
    statement *statements;
    size_t count, capacity;
    size_t text; /* the one being read */
    int version; /* 85 for 8.5: the highest */
    int target;
    char version_text[16], target_text[16];
    char *out;
    size_t out_length, out_capacity;
} linker;

typedef struct {
    linker *l;
    sg_lexer lexer;
    sg_token token;
    const char *end; /* of the token before */
} reader;

static void advance(reader *r) {
    r->end = r->token.text + r->token.length + (r->token.kind == TOKEN_STRING);
    r->token = sg_lex(&r->lexer);
}

static bool token_is(const sg_token *token, const char *text) {
    return token->length == strlen(text) && !memcmp(token->text, text, token->length);
}
static bool at_mark(const reader *r, char mark) { return r->token.kind == TOKEN_MARK && r->token.mark == mark; }
static bool at_dotted(const reader *r, const char *word) {
    return r->token.kind == TOKEN_DOTTED && token_is(&r->token, word);
}

static _Noreturn void unexpected(reader *r, const char *wanted) {
    sg_fail(&r->l->compiler, SG_BAD_PTX, r->token.line, "input %zu: %s expected", r->l->text + 1, wanted);
}

static void skip_line(reader *r) {
    int line = r->token.line;
    while (r->token.kind != TOKEN_END && r->token.line == line)
        advance(r);
}

/* From an opening bracket to behind the one that closes it. */
static void skip_brackets(reader *r, char open, char close) {
    int depth = 0;
    do {
        if (r->token.kind == TOKEN_END)
            unexpected(r, "a closing bracket");
        depth += at_mark(r, open) - at_mark(r, close);
        advance(r);
    } while (depth > 0);
}

/* ---- header ---- */

static void keep_highest(const sg_token *token, int value, int *highest, char *text, size_t size) {
    if (value <= *highest || token->length >= size)
        return;
    *highest = value;
    memcpy(text, token->text, token->length);
    text[token->length] = 0;
}

static int digits_of(const sg_token *token) {
    int value = 0;
    for (size_t i = 0; i < token->length && value < 100000; i++)
        if (token->text[i] >= '0' && token->text[i] <= '9')
            value = value * 10 + token->text[i] - '0';
    return value;
}

static void read_version(reader *r) {
    advance(r);
    if (r->token.kind != TOKEN_DOUBLE)
        unexpected(r, "a version such as 8.0");
    keep_highest(&r->token, digits_of(&r->token), &r->l->version, r->l->version_text, sizeof r->l->version_text);
    advance(r);
}

static void read_target(reader *r) {
    advance(r);
    if (r->token.kind != TOKEN_NAME)
        unexpected(r, "a target such as sm_80");
    keep_highest(&r->token, digits_of(&r->token), &r->l->target, r->l->target_text, sizeof r->l->target_text);
    do
        advance(r);
    while (at_mark(r, ',') || r->token.kind == TOKEN_NAME);
}

/* ---- definitions and declarations ---- */

static statement *add_statement(reader *r, const sg_token *first) {
    linker *l = r->l;
    l->statements = sg_grow(&l->compiler, l->statements, l->count, &l->capacity, sizeof *l->statements);
    statement *added = &l->statements[l->count++];
    *added = (statement){.text = l->text, .from = first->text - 1, .line = first->line};
    return added;
}

static const char *take_name(reader *r) {
    if (r->token.kind != TOKEN_NAME)
        unexpected(r, "a name");
    const char *name = sg_intern(&r->l->compiler, r->l->names, r->token.text, r->token.length);
    advance(r);
    return name;
}

static void read_function(reader *r, statement *s) {
    advance(r);
    if (at_mark(r, '('))
        skip_brackets(r, '(', ')');
    s->name = take_name(r);
    while (!at_mark(r, ';') && !at_mark(r, '{')) {
        if (r->token.kind == TOKEN_END)
            unexpected(r, "a body or ';'");
        advance(r);
    }
    s->defines = at_mark(r, '{');
    if (s->defines)
        skip_brackets(r, '{', '}');
    else
        advance(r);
}

static void read_variable(reader *r, statement *s) {
    while (r->token.kind != TOKEN_NAME) { /* `.align 8 .b8`, `.attribute(.managed)` */
        if (r->token.kind == TOKEN_END || at_mark(r, ';'))
            unexpected(r, "a name");
        if (at_mark(r, '('))
            skip_brackets(r, '(', ')');
        else
            advance(r);
    }
    s->name = take_name(r);
    for (int depth = 0; !at_mark(r, ';'); advance(r)) {
        if (r->token.kind == TOKEN_END)
            unexpected(r, "';'");
        depth += at_mark(r, '{') - at_mark(r, '}');
        if (depth == 0 && at_mark(r, ','))
            sg_fail(&r->l->compiler, SG_UNSUPPORTED, r->token.line,
                    "input %zu: several variables in one statement are not supported in linking", r->l->text + 1);
    }
    advance(r);
    s->defines = s->reach != REACH_EXTERN;
}

static reach read_reach(reader *r) {
    reach found = at_dotted(r, "extern")    ? REACH_EXTERN
                  : at_dotted(r, "visible") ? REACH_STRONG
                  : at_dotted(r, "weak") || at_dotted(r, "common") ? REACH_WEAK
                                                                   : REACH_PRIVATE;
    if (found != REACH_PRIVATE)
        advance(r);
    return found;
}

static void read_statement(reader *r) {
    sg_token first = r->token;
    size_t index = r->l->count;
    add_statement(r, &first)->reach = read_reach(r);
    statement *s = &r->l->statements[index];
    if (at_dotted(r, "entry") || at_dotted(r, "func")) {
        bool entry = at_dotted(r, "entry");
        read_function(r, s);
        if (entry && s->reach == REACH_PRIVATE)
            s->reach = REACH_STRONG; /* a kernel is found by its name */
    } else {
        read_variable(r, s);
    }
    s->to = r->end;
}

static void read_text(linker *l, const char *text, size_t length) {
    reader r = {.l = l};
    sg_lexer_open(&r.lexer, &l->compiler, text, length);
    advance(&r);
    while (r.token.kind != TOKEN_END) {
        if (at_mark(&r, ';'))
            advance(&r);
        else if (r.token.kind != TOKEN_DOTTED)
            unexpected(&r, "a directive");
        else if (at_dotted(&r, "version"))
            read_version(&r);
        else if (at_dotted(&r, "target"))
            read_target(&r);
        else if (at_dotted(&r, "address_size"))
            advance(&r), advance(&r);
        else if (at_dotted(&r, "file") || at_dotted(&r, "loc"))
            skip_line(&r);
        else if (at_dotted(&r, "pragma"))
            while (!at_mark(&r, ';') && r.token.kind != TOKEN_END)
                advance(&r);
        else if (at_dotted(&r, "section")) {
            while (!at_mark(&r, '{') && r.token.kind != TOKEN_END)
                advance(&r);
            skip_brackets(&r, '{', '}');
        } else {
            read_statement(&r);
        }
    }
}

/* ---- resolution ---- */

/* The definition that everyone outside a text means by this name. */
static statement *definition_of(linker *l, const char *name) {
    statement *weak = NULL;
    for (size_t i = 0; i < l->count; i++) {
        statement *s = &l->statements[i];
        if (s->name != name || !s->defines || s->reach == REACH_PRIVATE)
            continue;
        if (s->reach == REACH_STRONG)
            return s;
        weak = weak ? weak : s;
    }
    return weak;
}

static void resolve(linker *l) {
    for (size_t i = 0; i < l->count; i++) {
        statement *s = &l->statements[i];
        if (s->reach == REACH_PRIVATE)
            continue;
        const statement *definition = definition_of(l, s->name);
        if (s == definition || !definition)
            continue;
        if (s->reach == REACH_STRONG && s->defines)
            sg_fail(&l->compiler, SG_BAD_PTX, s->line, "%.200s is defined in input %zu and in input %zu", s->name,
                    definition->text + 1, s->text + 1);
        /* A text's own forward declaration stays in front of its definition. */
        s->dropped = s->defines || s->text != definition->text || s->reach == REACH_EXTERN;
    }
}

static bool used_elsewhere(const linker *l, const char *name, size_t text) {
    for (size_t i = 0; i < l->count; i++)
        if (l->statements[i].name == name && l->statements[i].text != text && !l->statements[i].dropped)
            return true;
    return false;
}

/* Scope n + 1 of the name table: the new names of input n's private ones. */
static void rename_private(linker *l) {
    for (size_t i = 0; i < l->count; i++) {
        const statement *s = &l->statements[i];
        uint32_t scope = (uint32_t)s->text + 1;
        if (s->reach != REACH_PRIVATE || !used_elsewhere(l, s->name, s->text))
            continue;
        if (sg_lookup(l->names, scope, s->name).kind != NAMED_NOTHING)
            continue; /* its declaration came before */
        size_t size = strlen(s->name) + 32;
        char *renamed = sg_allocate(&l->compiler, size);
        snprintf(renamed, size, "%s$input%zu", s->name, s->text + 1);
        sg_define(&l->compiler, l->names, scope, s->name, (sg_named){NAMED_VARIABLE, renamed});
    }
}

/* ---- output ---- */

static void write(linker *l, const char *bytes, size_t length) {
    if (l->out_length + length + 1 > l->out_capacity) {
        size_t capacity = (l->out_length + length + 1) * 2;
        char *grown = realloc(l->out, capacity);
        if (!grown)
            sg_fail(&l->compiler, SG_NO_MEMORY, 0, "out of host memory");
        l->out = grown;
        l->out_capacity = capacity;
    }
    memcpy(l->out + l->out_length, bytes, length);
    l->out_length += length;
    l->out[l->out_length] = 0;
}

static void write_statement(linker *l, const statement *s) {
    sg_lexer lexer;
    const char *written = s->from;
    sg_lexer_open(&lexer, &l->compiler, s->from, (size_t)(s->to - s->from));
    for (sg_token token = sg_lex(&lexer); token.kind != TOKEN_END; token = sg_lex(&lexer)) {
        if (token.kind != TOKEN_NAME)
            continue;
        const char *name = sg_intern(&l->compiler, l->names, token.text, token.length);
        sg_named renamed = sg_lookup(l->names, (uint32_t)s->text + 1, name);
        if (renamed.kind == NAMED_NOTHING)
            continue;
        write(l, written, (size_t)(token.text - written));
        write(l, renamed.thing, strlen(renamed.thing));
        written = token.text + token.length;
    }
    write(l, written, (size_t)(s->to - written));
    write(l, "\n", 1);
}

static void write_all(linker *l) {
    char header[100];
    int length = snprintf(header, sizeof header, ".version %s\n.target %s\n.address_size 64\n.pragma \"%s\";\n\n",
                          l->version_text, l->target_text, SG_LINKED_PRAGMA);
    write(l, header, (size_t)length);
    for (size_t i = 0; i < l->count; i++)
        if (!l->statements[i].dropped)
            write_statement(l, &l->statements[i]);
}

sg_status sg_link(const char *const *texts, const size_t *lengths, size_t count, char *log, size_t log_size,
                  char **merged, size_t *merged_length) {
    linker *l = calloc(1, sizeof *l);
    *merged = NULL;
    *merged_length = 0;
    if (!l)
        return SG_NO_MEMORY;
    sg_compiler_open(&l->compiler, log, log_size);
    if (!setjmp(l->compiler.escape)) {
        l->names = sg_names_open(&l->compiler);
        for (l->text = 0; l->text < count; l->text++)
            read_text(l, texts[l->text], lengths[l->text]);
        if (!l->version || !l->target)
            sg_fail(&l->compiler, SG_BAD_PTX, 0, "no input has .version and .target");
        resolve(l);
        rename_private(l);
        write_all(l);
        *merged = l->out;
        *merged_length = l->out_length;
    } else {
        free(l->out);
    }
    sg_status status = l->compiler.status;
    sg_compiler_release(l->compiler.chunks);
    free(l);
    return status;
}
