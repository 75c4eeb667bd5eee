#include "compiler.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sg_chunk {
    sg_chunk *next;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

enum { CHUNK_BYTES = 64 * 1024 };

void sg_compiler_open(sg_compiler *compiler, char *log, size_t log_size) {
    memset(compiler, 0, sizeof *compiler);
    compiler->log = log;
    compiler->log_size = log ? log_size : 0;
    if (compiler->log_size)
        log[0] = 0;
}

void sg_compiler_release(sg_chunk *chunks) {
    while (chunks) {
        sg_chunk *next = chunks->next;
        free(chunks);
        chunks = next;
    }
}

static void out_of_memory(sg_compiler *compiler) {
    sg_fail(compiler, SG_NO_MEMORY, 0, "out of host memory");
}

void *sg_allocate(sg_compiler *compiler, size_t size) {
    size_t rounded = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (rounded < size || rounded > SIZE_MAX / 2)
        out_of_memory(compiler);
    sg_chunk *chunk = compiler->chunks;
    if (!chunk || chunk->size - chunk->used < rounded) {
        size_t wanted = rounded > CHUNK_BYTES ? rounded : CHUNK_BYTES;
        chunk = calloc(1, sizeof *chunk + wanted);
        if (!chunk)
            out_of_memory(compiler);
        chunk->size = wanted;
        chunk->next = compiler->chunks;
        compiler->chunks = chunk;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return memory;
}

void *sg_grow(sg_compiler *compiler, void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    void *grown = sg_allocate(compiler, wanted * item_size);
    if (count)
        memcpy(grown, items, count * item_size);
    *capacity = wanted;
    return grown;
}

static void append(sg_compiler *compiler, int line, const char *format, va_list arguments) {
    char text[400];
    int used = line > 0 ? snprintf(text, sizeof text, "line %d: ", line) : 0;
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    if (compiler->log_used + 1 >= compiler->log_size)
        return;
    size_t room = compiler->log_size - compiler->log_used;
    int written = snprintf(compiler->log + compiler->log_used, room, "%s\n", text);
    compiler->log_used += written < 0 ? 0 : (size_t)written < room ? (size_t)written : room - 1;
}

void sg_note(sg_compiler *compiler, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(compiler, line, format, arguments);
    va_end(arguments);
}

void sg_fail(sg_compiler *compiler, sg_status status, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(compiler, line, format, arguments);
    va_end(arguments);
    compiler->status = status;
    longjmp(compiler->escape, 1);
}
