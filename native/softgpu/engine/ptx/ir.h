/* The typed form of a PTX module, as the parser leaves it: names resolved as far as scopes
 * go, instructions with their words and operands, nothing yet about how they run.
 * Everything lives in the module's arena. */
#ifndef SG_PTX_IR_H
#define SG_PTX_IR_H

#include "compiler.h"
#include "words.h"

typedef struct sg_function sg_function;
typedef struct sg_variable_ir sg_variable_ir;

typedef struct sg_register {
    const char *name;
    sg_word type;
    uint32_t slot; /* lowering: offset in the frame, 0 when not yet placed */
    struct sg_register *parts; /* `.reg .v4 .f32 %v`: its components, else NULL */
    unsigned part_count;
    /* code/invariants.h: */
    uint32_t definitions; /* instructions that may write it */
    uint32_t defined_at;  /* index of the last of them */
    uint32_t uses;        /* mentions as a source, once addresses are folded */
    bool invariant;       /* written once, with the same values in every block of a launch */
    bool uniform;         /* written once, with one value for all threads of a block */
    bool folded;          /* an access looked through its computation */
    bool kept;            /* written in the prologue, read behind it: it keeps its column */
} sg_register;

/* `.global .u64 p = generic(table)+4;`: eight bytes at `offset` hold an address; or one byte
 * of it, `0xFF00(table)`, the one from bit `shift` on. */
typedef struct sg_fixup {
    struct sg_fixup *next;
    size_t offset;
    unsigned size; /* 8 or 1 */
    unsigned shift;
    const char *name;
    int64_t addend;
    int line;
    const sg_variable_ir *variable; /* one of these two, once resolved */
    const sg_function *function;
} sg_fixup;

typedef enum { LINK_LOCAL, LINK_EXTERN, LINK_VISIBLE, LINK_WEAK, LINK_COMMON } sg_linkage;

struct sg_variable_ir {
    const char *name;
    sg_word space; /* W_global, W_constant, W_shared, W_local, W_param, W_reg (a formal) */
    sg_word type;
    sg_linkage linkage;
    uint64_t size; /* bytes; 0 for an extern array without a size */
    uint32_t alignment;
    int line;
    unsigned char *initial; /* NULL: zero */
    uint64_t capacity;      /* of `initial`, while `open`: the size follows from the values */
    bool open;
    sg_fixup *fixups;
    const sg_function *owner; /* NULL at module scope */
    sg_register *formal;      /* W_reg */
    size_t index;             /* global and const: in sg_module.variables */
    uint64_t address;         /* shared, local, param: offset; global, const: where the driver bound it */
    bool placed;
};

typedef enum {
    OPERAND_REGISTER,
    OPERAND_SPECIAL,  /* %tid.x */
    OPERAND_INTEGER,
    OPERAND_SINGLE,   /* bits in `integer` */
    OPERAND_DOUBLE,
    OPERAND_NAME,     /* a variable, function or label; `integer` is an addend */
    OPERAND_ADDRESS,  /* [base + integer]; base: `reg`, `name`, or neither */
    OPERAND_VECTOR,   /* {a, b, ...} in `items` */
    OPERAND_PAIR,     /* a|b in `items` */
    OPERAND_LIST,     /* (a, b) of a call */
    OPERAND_SINK      /* _ */
} sg_operand_kind;

typedef struct sg_operand sg_operand;
struct sg_operand {
    sg_operand_kind kind;
    bool negated; /* !%p */
    sg_register *reg;
    int special; /* sg_special */
    uint64_t integer;
    const char *name;
    sg_variable_ir *variable; /* what `name` is, where the parser or the verifier found it */
    /* [base + scale * index + integer], made by code/addressing.c */
    sg_register *index;
    uint32_t scale;
    sg_word index_type; /* W_s32, W_u32, W_b64 */
    sg_operand *items;
    size_t item_count;
};

enum { WORDS_PER_INSTRUCTION = 12 };

typedef struct {
    int line;
    sg_register *guard;
    bool guard_negated;
    const char *opcode;
    sg_word words[WORDS_PER_INSTRUCTION];
    size_t word_count;
    uint16_t shape[3];   /* m, n, k of W_shape */
    const char *unknown; /* the first word that `sg_words` lacks */
    const char *form;    /* "add.s32", for messages */
    sg_operand *operands;
    size_t operand_count;
    bool dropped; /* nobody reads its result any more */
} sg_instruction;

/* A label, a jump table or a prototype: they share one name space in a function. */
typedef struct {
    const char *name;
    size_t position;      /* index of the instruction that follows */
    const char **targets; /* .branchtargets */
    size_t target_count;
    sg_function *prototype; /* .callprototype */
    bool targeted;
    size_t code; /* lowering: index of the code at the label */
} sg_label;

struct sg_function {
    const char *name;
    bool entry;
    bool defined;
    sg_linkage linkage;
    int line;
    sg_variable_ir **returns, **params;
    size_t return_count, param_count;
    sg_variable_ir **locals; /* .local, .param and .shared of the body, in order */
    size_t local_count;
    sg_instruction *instructions;
    size_t instruction_count;
    sg_label *labels;
    size_t label_count;
    uint32_t max_threads;
    uint32_t register_limit; /* .maxnreg; 0: none */
    uint32_t required_threads[3];
    uint64_t cluster_blocks; /* .reqnctapercluster; 0: none */
    const char *alias;       /* `.alias this, that;` */
    size_t index; /* in sg_ir.functions */
};

typedef struct {
    int ptx_version; /* 80 for 8.0 */
    bool linked;             /* made of several texts */
    uint32_t register_limit; /* of all kernels; 0: none */
    int target;      /* 80 for sm_80 */
    int address_size;
    sg_variable_ir **variables; /* module scope, every space */
    size_t variable_count;
    sg_function **functions; /* one for each name: a definition replaces its declaration */
    size_t function_count;
    struct sg_name_table *names;
} sg_ir;

/* ptx/parse_*.c: escapes through `compiler` on an error. */
sg_ir *sg_parse(sg_compiler *compiler, const char *text, size_t length);

sg_function *sg_find_function(const sg_ir *ir, const char *name);
sg_variable_ir *sg_find_variable(const sg_ir *ir, const char *name);
sg_label *sg_find_label(const sg_function *function, const char *name);

/* ---- special registers ---- */

typedef enum {
#define SPECIAL(name, text, bits) SPECIAL_##name,
#include "specials.def"
#undef SPECIAL
    SPECIAL_COUNT
} sg_special;

/* -1 where the name is no special register. `text` without the %. */
int sg_special_named(const char *text);
unsigned sg_special_bits(int special);

#endif
