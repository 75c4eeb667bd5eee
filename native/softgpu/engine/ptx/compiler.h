/* What every step from text to code has in common: memory that lives as long as the module,
 * a log with line numbers, and one way out.
 *
 * Errors leave by longjmp to the step's entry: nothing outside the arena is held while a
 * step runs, and the alternative, a status from each of some hundred small functions, hides
 * the grammar behind `if (status)`. */
#ifndef SG_PTX_COMPILER_H
#define SG_PTX_COMPILER_H

#include "../engine.h"

#include <setjmp.h>

typedef struct sg_chunk sg_chunk;

typedef struct {
    sg_chunk *chunks; /* arena: freed together */
    jmp_buf escape;
    sg_status status;
    char *log;
    size_t log_size;
    size_t log_used;
} sg_compiler;

void sg_compiler_open(sg_compiler *compiler, char *log, size_t log_size);
void sg_compiler_release(sg_chunk *chunks);

/* Zeroed, aligned for any type; escapes with SG_NO_MEMORY. */
void *sg_allocate(sg_compiler *compiler, size_t size);
/* `items` holds `count` of `*capacity` elements: returns room for one more. */
void *sg_grow(sg_compiler *compiler, void *items, size_t count, size_t *capacity, size_t item_size);

/* One line in the log; line 0 is left out. Never fails: what does not fit is cut. */
void sg_note(sg_compiler *compiler, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void sg_fail(sg_compiler *compiler, sg_status status, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
