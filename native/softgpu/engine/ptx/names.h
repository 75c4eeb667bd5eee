/* Names: interned strings, and scopes that map them to what they mean. */
#ifndef SG_PTX_NAMES_H
#define SG_PTX_NAMES_H

#include "compiler.h"

typedef struct sg_name_table sg_name_table;

typedef enum { NAMED_NOTHING, NAMED_REGISTER, NAMED_RANGE, NAMED_VARIABLE, NAMED_FUNCTION, NAMED_LABEL } sg_named_kind;

typedef struct {
    sg_named_kind kind;
    void *thing;
} sg_named;

sg_name_table *sg_names_open(sg_compiler *compiler);
/* The one copy of this text: equal names are equal pointers. */
const char *sg_intern(sg_compiler *compiler, sg_name_table *names, const char *text, size_t length);

/* Scope 0 is the module's; others are numbered by the parser as it meets them. False where
 * the name is taken in this scope. */
bool sg_define(sg_compiler *compiler, sg_name_table *names, uint32_t scope, const char *interned, sg_named named);
sg_named sg_lookup(const sg_name_table *names, uint32_t scope, const char *interned);

#endif
