/* The engine: PTX text in, results in device memory out. It knows no driver API, no
 * processes and no files; the driver layer gives it memory through `sg_memory` and gets
 * faults back as values.
 *
 * Threading: a module is immutable after sg_module_create and sg_module_bind, and may be
 * launched from several threads at once.
 */
#ifndef SG_ENGINE_H
#define SG_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sg_module sg_module;
typedef struct sg_kernel sg_kernel;

/* What went wrong, in the engine's own words; the driver layer maps it to CUresult. */
typedef enum {
    SG_OK = 0,
    SG_BAD_PTX,       /* does not parse or verify: CUDA_ERROR_INVALID_PTX */
    SG_UNSUPPORTED,   /* a form we do not run: CUDA_ERROR_NOT_SUPPORTED, named in the log */
    SG_NO_MEMORY,     /* host memory, or a device chunk that could not be committed */
    SG_ILLEGAL_ADDRESS,
    SG_MISALIGNED,
    SG_STACK_OVERFLOW,
    SG_TRAP,          /* trap; or an assertion */
    SG_TIMEOUT,
    SG_INVALID_LAUNCH /* block too large, too much shared memory, ... */
} sg_status;

/* ---- memory, as the driver layer presents it ----
 *
 * Device addresses lie at or above SG_FIRST_ADDRESS: below are the engine's own windows for
 * generic pointers into shared, local and parameter memory and to functions.
 * `find` and `commit` are called from several worker threads at once. */
#define SG_FIRST_ADDRESS ((uint64_t)1 << 32)

typedef struct {
    uint64_t first;      /* device addresses [first, last) ... */
    uint64_t last;
    unsigned char *host; /* ... lie at host[address - first] */
} sg_range;

/* ---- textures and surfaces, as the driver layer presents them ---- */

typedef enum { SG_TEXEL_UNSIGNED, SG_TEXEL_SIGNED, SG_TEXEL_FLOAT } sg_texel_kind;
/* As cuda.h numbers them. */
enum { SG_ADDRESS_WRAP, SG_ADDRESS_CLAMP, SG_ADDRESS_MIRROR, SG_ADDRESS_BORDER };

typedef struct {
    unsigned char *bytes; /* of a surface: all backed */
    unsigned dimensions;  /* 1 to 3 */
    uint64_t size[3];     /* in texels; 1 where the dimension is not there */
    uint64_t pitch, slice; /* bytes from one row, one slice or layer to the next */
    uint64_t layers;       /* 0: it has none */
    unsigned channels, channel_bytes;
    sg_texel_kind kind;
    uint8_t address[3]; /* SG_ADDRESS_*: what lies outside */
    bool linear, normalized_coordinates;
    bool normalized_read; /* integers are read as floats of [0, 1] or [-1, 1] */
    float border[4];
} sg_texture;

typedef struct sg_memory {
    void *context;
    /* The mapped range that holds `address`. Returns false where nothing is mapped. The
     * engine caches the answer for the length of a launch; allocations freed while a kernel
     * runs are the program's own fault, as on a card. */
    bool (*find)(void *context, uint64_t address, sg_range *range);
    /* Before the first store into each 2 MiB chunk of the device (chunk = address >> 21) in a
     * launch: make sure the chunk is backed. NULL where everything is. SG_NO_MEMORY where that cannot
     * be, SG_ILLEGAL_ADDRESS where the chunk may be read only. */
    sg_status (*commit)(void *context, uint64_t address);
    /* What a texture's or surface's handle stands for; false: nothing. NULL where there are none. */
    bool (*texture)(void *context, uint64_t handle, bool surface, sg_texture *texture);
} sg_memory;

/* ---- modules ---- */

/* Parse and verify. `log` gets line-numbered messages, NUL-terminated. The text need not be
 * NUL-terminated and is not kept.
 * An instruction of a form that does not run is no error here, since a module may hold many
 * kernels: the log names it with its line, and a launch that reaches it ends with
 * SG_UNSUPPORTED and that name before it does anything. SG_UNSUPPORTED from here means that
 * nothing of the module could be run (32-bit addresses, texture references). */
sg_status sg_module_create(const char *ptx, size_t length, char *log, size_t log_size, sg_module **module);
void sg_module_destroy(sg_module *module);

/* What `.version` says, at `*line`: 80 for 8.0. 0 where the text does not begin with one. */
int sg_ptx_version(const char *text, size_t length, int *line);

/* Merge several PTX texts into one self-contained text that sg_module_create takes: extern
 * declarations resolved against definitions of the others, duplicates of .version/.target
 * dropped, clashing file-local (static) names renamed. *merged is malloc'd. This is cuLink*. */
sg_status sg_link(const char *const *texts, const size_t *lengths, size_t count, char *log, size_t log_size,
                  char **merged, size_t *merged_length);

/* At the outer level of a text: `.pragma "NAME=38";`, its kernels count no more registers than that;
 * `.pragma "NAME";`, it was made of several, which a call may know by different signatures. */
#define SG_REGISTER_LIMIT_PRAGMA "aliquot.maxnreg"
#define SG_LINKED_PRAGMA "aliquot.linked"

/* Module-scope variables (.global and .const): the driver layer allocates device memory for
 * each, fills it from `initial` (rest zero), and binds its address. */
typedef struct {
    const char *name;
    size_t size;
    size_t alignment;
    bool constant;
    const unsigned char *initial; /* NULL: all zero; else `size` bytes */
} sg_variable;

size_t sg_module_variable_count(const sg_module *module);
sg_variable sg_module_variable(const sg_module *module, size_t index);
void sg_module_bind(sg_module *module, size_t index, uint64_t address);
/* After every variable is bound: the bytes of `index` with addresses of other variables
 * (initialisers such as `.global .u64 p = table;`) filled in. Copies `size` bytes to `out`. */
void sg_module_image(const sg_module *module, size_t index, unsigned char *out);

/* How long its code is, as the engine has it. */
size_t sg_module_instruction_count(const sg_module *module);

size_t sg_module_kernel_count(const sg_module *module);
const sg_kernel *sg_module_kernel(const sg_module *module, size_t index);
const sg_kernel *sg_module_kernel_named(const sg_module *module, const char *name);

typedef struct {
    const char *name;
    size_t parameter_count;
    size_t parameter_bytes;        /* of the packed parameter block */
    uint32_t static_shared_bytes;
    uint32_t local_bytes;          /* per thread */
    uint32_t registers;            /* per thread, as a card would count them; an estimate, within .maxnreg */
    uint32_t constant_bytes;       /* of all .const variables of the module */
    uint32_t maximum_threads;      /* .maxntid, else 1024 */
    uint32_t required_threads[3];  /* .reqntid, else 0 */
    int ptx_version;               /* 80 for 8.0 */
    int target;                    /* 80 for sm_80 */
} sg_kernel_info;

sg_kernel_info sg_kernel_describe(const sg_kernel *kernel);
/* Offset and size of parameter `index` in the packed block. */
bool sg_kernel_parameter(const sg_kernel *kernel, size_t index, size_t *offset, size_t *size);

/* ---- launches ---- */

/* Others want the device while a launch runs: it can be told to stand still for a while. */
typedef struct {
    void *context;
    /* Has it to stand still now? From several threads at once, and often. NULL: never. */
    bool (*due)(void *context);
    /* Returns when it may go on. From one thread, while no other runs anything of the launch. */
    void (*give_way)(void *context);
    /* For how long it had the device so far; that counts for `timeout_ns`. */
    uint64_t (*held_ns)(void *context);
} sg_preemption;

typedef struct {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared_bytes;
    const unsigned char *parameters; /* packed, parameter_bytes long */
    const sg_memory *memory;
    bool cooperative;                /* all blocks resident: grid-wide barriers are allowed */
    uint32_t multiprocessors;        /* for %nsmid */
    uint64_t clock_hz;               /* for %clock64, %globaltimer */
    uint64_t timeout_ns;             /* 0: none */
    uint32_t stack_bytes;            /* for calls that recurse, per thread; less than 64 KiB is 64 KiB */
    bool modelled;                   /* %clock, %globaltimer and nanosleep are of the kernel's own time, */
    uint64_t model_ns;               /* which begins here: see timing.c */
    unsigned worker_threads;         /* at most this many; 1 runs in the caller */
    sg_preemption preemption;
    /* vprintf, one call of it at a time, from several worker threads at once; may be NULL. */
    void (*print)(void *context, const char *text, size_t length);
    void *print_context;
    /* malloc and free, from several worker threads at once; NULL: there is no heap. malloc gives 0 where
     * there is no room; free says whether the address was malloc's. */
    uint64_t (*heap_allocate)(void *context, uint64_t bytes);
    bool (*heap_release)(void *context, uint64_t address);
    void *heap_context;
} sg_launch;

/* Where a launch failed. The texts live as long as the module. */
typedef struct {
    bool known;              /* `block` and `thread` are: the first thread that it happened to */
    uint32_t block[3], thread[3];
    const char *instruction; /* "st.global.u32"; NULL unknown */
    const char *function;    /* that the instruction is in; NULL unknown */
    uint32_t global_bytes;   /* of an access at `address` that was to be one of global memory; else 0 */
} sg_fault_place;

typedef struct {
    sg_status status;
    uint64_t address;       /* of the access that failed, where there is one */
    int line;               /* of the PTX text; 0 unknown */
    uint64_t instructions;  /* of lanes */
    uint64_t bytes;         /* of global memory, as lanes asked for them */
    uint64_t longest_block_ns, all_blocks_ns; /* where modelled: the time of the slowest warp of a block */
    char message[200];      /* without the line */
    sg_fault_place place;
} sg_result;

sg_status sg_run(const sg_kernel *kernel, const sg_launch *launch, sg_result *result);

#endif
