/* What the files of lowering share. One `sg_lowering` for each function. */
#ifndef SG_CODE_LOWER_H
#define SG_CODE_LOWER_H

#include "forms.h"

/* Columns: offsets in the frame (bit 0 clear) or in the constants (bit 0 set). */
typedef uint32_t sg_column;

enum { COLUMN_32 = 4 * LANES, COLUMN_64 = 8 * LANES, COLUMN_128 = 16 * LANES, COLUMN_PREDICATE = 64 };

typedef struct {
    unsigned width; /* 4, 8; 1 for a predicate */
    uint64_t value;
    const sg_variable_ir *variable; /* its address is added when it is bound */
    sg_column column;
} sg_constant;

/* A jump whose target is known when the whole function is lowered. */
typedef struct {
    size_t insn;
    const sg_label *label;
} sg_jump;

enum { SCRATCH_COLUMNS = 24 };

typedef struct sg_lowering {
    sg_compiler *compiler;
    sg_module *module;
    sg_function *function;
    sg_code *code;
    const sg_instruction *instruction;
    const sg_form *form;
    sg_attributes attributes;
    sg_constant *constants;
    size_t constant_count, constant_capacity;
    size_t constant_bytes;
    sg_jump *jumps;
    size_t jump_count, jump_capacity;
    uint32_t frame_bytes;
    /* Columns for values within one instruction, used again by the next. */
    sg_column scratch_32[SCRATCH_COLUMNS], scratch_64[SCRATCH_COLUMNS], scratch_predicate[SCRATCH_COLUMNS];
    unsigned used_32, used_64, used_predicate, made_32, made_64, made_predicate;
} sg_lowering;

/* ---- lower.c ---- */

/* Appends an instruction. The pointer is good until the next one is appended. */
sg_insn *sg_emit(sg_lowering *lowering, sg_handler_id handler);
sg_insn *sg_emit_to(sg_lowering *lowering, sg_handler_id handler, sg_column destination, sg_column source);
_Noreturn void sg_reject(sg_lowering *lowering, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The instruction at hand becomes one that faults with SG_UNSUPPORTED. */
void sg_emit_unsupported(sg_lowering *lowering, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sg_want_operands(sg_lowering *lowering, size_t least, size_t most);

/* ---- lower_operand.c ---- */

sg_column sg_scratch(sg_lowering *lowering, unsigned width);
sg_column sg_register_column(sg_lowering *lowering, const sg_register *reg);
sg_column sg_constant_column(sg_lowering *lowering, unsigned width, uint64_t value, const sg_variable_ir *variable);
/* Where to read the operand as `type`; emits what it takes to get it there. */
sg_column sg_source(sg_lowering *lowering, const sg_operand *operand, sg_word type);
/* Where to write a value of `type`; a register of just this size, or `_`. */
sg_column sg_destination(sg_lowering *lowering, const sg_operand *operand, sg_word type);
/* A source register may be wider than `type` (st, cvt): its low part. */
sg_column sg_low_source(sg_lowering *lowering, const sg_operand *operand, sg_word type);
/* Half `index` of a 128-bit operand: a register, or one item of `{low, high}`. 0 for `_`. */
sg_column sg_half_of_128(sg_lowering *lowering, const sg_operand *operand, unsigned index, bool source);
/* The effective address as a value of 64 bits, in the space that `access` then names. */
sg_column sg_address_value(sg_lowering *lowering, const sg_operand *operand, sg_word space, uint8_t *found_space);
/* Sets mode, space, operand 4 and immediate of an access. Emit it afterwards: this may emit
 * instructions of its own. */
void sg_address(sg_lowering *lowering, const sg_operand *operand, sg_word space, sg_insn *access);
unsigned sg_width(sg_word type); /* of a column's lane: 4, 8, 16; 1 for a predicate */
/* `source`, an integer of `type` sign- or zero-extended to 32 or 64 bits, into a register of
 * any width from `type` up. */
void sg_store_integer(sg_lowering *lowering, sg_column source, sg_word type, const sg_operand *destination);

/* ---- lower_compute.c, lower_half.c ---- */

/* Sources and destination by the form's operand string into `columns`; how many. */
size_t sg_plain_operands(sg_lowering *lowering, sg_column *columns, bool flush);
sg_insn *sg_emit_plain(sg_lowering *lowering, sg_handler_id handler, const sg_column *columns, size_t count);
/* .ftz: a source that is subnormal counts as zero of its sign. */
sg_column sg_flushed(sg_lowering *lowering, sg_column source);
sg_column sg_flushed_half(sg_lowering *lowering, sg_column source, sg_word type);
bool sg_is_f16(sg_word type); /* f16, f16x2 */
bool sg_is_bf16(sg_word type);

/* ---- lower_matrix.c ---- */

/* A product of the instruction's shape; `index` goes into `target`. The pointer is good until the next one. */
sg_product *sg_add_product(sg_lowering *lowering, int32_t *index);
/* The matrix in role a, b, c or d, and its registers where there is an operand. */
sg_tiles sg_matrix_tiles(sg_lowering *lowering, const sg_product *product, char role, sg_word type,
                         const sg_operand *operand);

/* ---- one function for each lowering that forms.def names ---- */

#define FORM(opcode, words, operands, lowering, handler) \
    void sg_lower_##lowering(sg_lowering *state, const sg_instruction *instruction);
#include "forms.def"
#undef FORM

/* ---- layout.c ---- */

/* Formals, locals and shared variables get their places; kernels their sizes. */
void sg_lay_out(sg_compiler *compiler, sg_module *module);
void sg_place_formals(sg_function *function);
/* ---- allocate.c ---- */

/* Registers of the function get columns; those that never live together share. */
void sg_allocate_columns(sg_lowering *lowering);

#endif
