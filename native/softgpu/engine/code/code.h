/* What lowering makes and the machine runs: a flat array of fixed-size instructions for the
 * whole module, and for each function its frame.
 *
 * A register is a column of 32 lanes: 4 bytes a lane for types up to 32 bits (narrower values
 * are kept zero-extended), 8 for 64 bits; a predicate is one 32-bit mask. An operand is the
 * byte offset of its column, with bit 0 choosing where from: the warp's frame (0) or the
 * function's constants (1), which are splat once, when the module is made, and shared by
 * every warp. So no handler decodes operands. */
#ifndef SG_CODE_CODE_H
#define SG_CODE_CODE_H

#include "../ptx/ir.h"

enum { LANES = 32 };

typedef struct sg_warp sg_warp;
typedef struct sg_insn sg_insn;
typedef void sg_handler(sg_warp *warp, const sg_insn *insn);

/* Where an effective address comes from: a column, a constant, or (INDEX_*) column 4, which is the same
 * in all lanes, plus `target` times column 5. Only ld, st, atom and red see the last three. */
enum {
    ADDRESS_WIDE, ADDRESS_NARROW, ADDRESS_ABSOLUTE, ADDRESS_FRAME,
    ADDRESS_INDEX_S32, ADDRESS_INDEX_U32, ADDRESS_INDEX_64
};
/* What it is an address in. */
enum { SPACE_GLOBAL, SPACE_GENERIC, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM };

struct sg_insn {
    sg_handler *run;
    int64_t immediate;
    uint32_t operand[8];
    int32_t target;   /* branches: relative, in instructions; ADDRESS_INDEX_*: the scale */
    uint8_t mode;     /* ADDRESS_* */
    uint8_t space;    /* SPACE_* */
    uint8_t count;    /* components of a vector access */
    uint8_t round;    /* sg_word of a rounding mode; 0: to nearest even */
    uint8_t flags;    /* the handler's own */
    uint8_t variant;  /* the handler's own: an operator, a type */
    uint16_t handler; /* sg_handler_id */
    uint32_t straight; /* how many from here on are sg_is_straight */
};

/* ---- handlers ---- */

typedef enum {
#define HANDLER(name) H_##name,
#include "handlers.def"
#undef HANDLER
    HANDLER_COUNT
} sg_handler_id;

/* Computes, or accesses memory, for the lanes that run, and leaves it at that: who runs, and where, stays as
 * it is. The machine runs such instructions one behind the other without looking. */
static inline bool sg_is_straight(unsigned handler) {
    return handler < H_cp_async || (handler >= H_special && handler <= H_dynamic_shared);
}

/* The set compiled for the best instruction set that this processor has. */
sg_handler *const *sg_handlers(void);
/* For tests: modules made from now on use this compilation ("base", "v3", "v4"; NULL the
 * best). False where the processor lacks it. */
bool sg_choose_level(const char *level);

/* ---- functions and modules ---- */

typedef struct {
    size_t from, to, size; /* local memory of the caller and of the callee, in bytes */
} sg_copy;

/* One call in the text: which bytes go in and which come back. */
typedef struct {
    uint32_t callee; /* index of the function; for indirect calls read from a register */
    sg_copy *arguments;
    size_t argument_count;
    sg_copy *returns;
    size_t return_count;
} sg_call;

/* A matrix spread over the registers of a warp in tiles of eight rows; a tile is a column, or two
 * (`paired`). In a column lane l holds the l-th four bytes of the tile (f64: eight), row by row: elements
 * 4 (l mod 4) and on of row l / 4 for bytes. In a pair lane l holds elements 2 (l mod 4) and the next of row
 * l / 4, one in each. That is the layout of mma.sync for every shape and type; wmma, which leaves it open,
 * and wgmma have the same here. B counts as its transpose: its rows are the columns of the product. */
typedef struct {
    sg_word type;
    uint16_t rows, columns; /* of the matrix */
    uint16_t count;         /* registers; more than it takes hold the matrix again (wmma, f16) */
    bool paired;
    bool across;            /* tiles go along the rows first, else down */
    uint32_t *registers;    /* operands */
} sg_tiles;

/* What a matrix instruction works on: named by `target` of its sg_insn. d = a * b + c. */
typedef struct {
    uint16_t m, n, k;
    sg_tiles d, c, a, b;  /* wgmma: c is d, and b lies in shared memory; wmma.load and .store: d alone */
    bool saturate;
    bool exclusive;       /* b1: xor, else and */
    bool a_in_memory;     /* wgmma: operand 0 is the descriptor; 1 that of b */
    bool negate;
    bool a_transposed, b_transposed; /* in memory: m or n runs fastest, not k */
} sg_product;

/* A constant whose value is known when variables are bound: `splat` is its column. */
typedef struct {
    uint32_t column;
    unsigned width; /* bytes a lane: 4 or 8 */
    const sg_variable_ir *variable;
    int64_t addend;
} sg_binding;

typedef struct {
    const sg_function *function;
    uint32_t first;          /* index of its first instruction */
    uint32_t body;           /* a kernel: of the first one behind the prologue */
    uint32_t frame_bytes;    /* registers */
    uint32_t local_bytes;    /* .local and .param variables, per thread */
    unsigned char *constants;
    size_t constant_bytes;
    sg_binding *bindings;
    size_t binding_count;
    uint32_t pressure;       /* 32-bit registers at most alive, an estimate */
} sg_code;

struct sg_kernel {
    const sg_module *module;
    const sg_code *code;
    uint32_t static_shared;     /* without .extern arrays */
    uint32_t dynamic_alignment; /* of the .extern arrays it reaches */
    uint32_t local_bytes;       /* deepest chain of calls, or `recursive` */
    bool recursive;
    size_t parameter_bytes;
};

struct sg_module {
    sg_chunk *chunks; /* everything below lies in these */
    sg_ir *ir;
    sg_insn *insns;
    const sg_instruction **sources; /* what each insn was made of; NULL where the text has nothing for it */
    size_t insn_count;
    sg_code *codes;      /* one for each function of `ir` */
    sg_call *calls;
    size_t call_count;
    sg_product *products;
    size_t product_count;
    const char **messages; /* named by `immediate` of H_unsupported */
    size_t message_count;
    sg_kernel *kernels;
    size_t kernel_count;
    sg_variable_ir **variables; /* .global and .const */
    size_t variable_count;
};

/* ---- addresses that the engine gives out ----
 *
 * Generic addresses below SG_FIRST_ADDRESS are the engine's; device memory lies above. A
 * thread's local memory has the same addresses in every thread, as on a card. */
#define SG_SHARED_WINDOW ((uint64_t)0x01000000)
#define SG_LOCAL_WINDOW ((uint64_t)0x02000000)
#define SG_PARAM_WINDOW ((uint64_t)0x04000000)
#define SG_GRID_WINDOW ((uint64_t)0x05000000)
#define SG_CODE_WINDOW ((uint64_t)0x06000000)
#define SG_WINDOW_BYTES ((uint64_t)0x01000000)
/* Function i has the address SG_CODE_WINDOW + 16 * i. */

/* Lowers every defined function; escapes through `compiler`. */
void sg_lower(sg_compiler *compiler, sg_module *module);

#endif
