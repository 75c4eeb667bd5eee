/* Which form an instruction has: forms.def, matched against its words. */
#ifndef SG_CODE_FORMS_H
#define SG_CODE_FORMS_H

#include "code.h"

struct sg_lowering;

/* What the words of a matched form say. */
typedef struct {
    sg_word type[4];
    unsigned type_count;
    sg_word round, space, compare, operation;
    unsigned vector; /* 1, 2, 4 */
    bool ftz, sat, relu, nan;
} sg_attributes;

typedef struct {
    const char *opcode;
    const char *words;
    const char *operands;
    void (*lower)(struct sg_lowering *lowering, const sg_instruction *instruction);
    sg_handler_id handler;
} sg_form;

/* NULL where nothing in the table fits. */
const sg_form *sg_match_form(const sg_instruction *instruction, sg_attributes *attributes);
/* The table itself, for tests; NULL behind its end. */
const sg_form *sg_form_at(size_t index);
bool sg_opcode_exists(const char *opcode);
bool sg_has_word(const sg_instruction *instruction, sg_word word);

#endif
