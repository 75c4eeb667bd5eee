/* The line of the device's log that says what ended a kernel, where it was, and what lies around the address.
 *
 * Most wrong addresses are just outside something, or in something that is gone: so the allocations next to it
 * are named, and the last ones that were freed are remembered. Nothing here is looked at before a fault. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_log.h"

enum { FREED_KEPT = 64, NULL_PAGE = 4096 };

static struct {
    uint64_t address;
    size_t size;
} freed[FREED_KEPT]; /* under the space's lock; a ring */
static size_t freed_count;

void sg_fault_note_freed(const sg_allocation *gone) {
    freed[freed_count % FREED_KEPT].address = gone->address;
    freed[freed_count++ % FREED_KEPT].size = gone->size;
}

/* The newest that held it. */
static bool was_in_freed(uint64_t address, uint64_t *first, size_t *size) {
    size_t kept = freed_count < FREED_KEPT ? freed_count : FREED_KEPT;
    for (size_t i = 1; i <= kept; i++) {
        size_t at = (freed_count - i) % FREED_KEPT;
        if (address - freed[at].address >= freed[at].size)
            continue;
        *first = freed[at].address;
        *size = freed[at].size;
        return true;
    }
    return false;
}

typedef struct {
    bool has_below, has_above, was_freed;
    sg_allocation below, above; /* the last that begins at or before the address, the first behind it */
    uint64_t freed_address;
    size_t freed_size;
} surroundings;

static void look_around(uint64_t address, surroundings *around) {
    *around = (surroundings){0};
    sg_space_lock();
    const sg_allocation *below = sg_space_before(address), *above = sg_space_next(address + 1);
    if ((around->has_below = below != NULL))
        around->below = *below;
    if ((around->has_above = above != NULL))
        around->above = *above;
    around->was_freed = was_in_freed(address, &around->freed_address, &around->freed_size);
    sg_space_unlock();
}

typedef struct {
    char text[1600];
    size_t used;
} line;

static void __attribute__((format(printf, 2, 3))) add(line *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to->text + to->used, sizeof to->text - to->used, format, arguments);
    va_end(arguments);
    if (length > 0)
        to->used = to->used + (size_t)length < sizeof to->text ? to->used + (size_t)length : sizeof to->text - 1;
}

static void add_allocation(line *to, const sg_allocation *allocation) {
    add(to, "the allocation of %zu bytes at 0x%llx", allocation->size, (unsigned long long)allocation->address);
}

static void add_inside(line *to, CUcontext context, const sg_allocation *in, uint64_t address, uint32_t bytes) {
    uint64_t offset = address - in->address;
    if (in->size - offset < bytes) {
        add(to, "; its last %llu bytes lie behind ", (unsigned long long)(bytes - (in->size - offset)));
        add_allocation(to, in);
        return;
    }
    add(to, "; it begins at byte %llu of ", (unsigned long long)offset);
    add_allocation(to, in);
    if (!sg_memory_reachable(in, context, false))
        add(to, in->kind == SG_MEMORY_MAPPED ? ", which this device was given no access to" : ", which is of another context");
}

static void add_outside(line *to, const surroundings *around, uint64_t address) {
    uint64_t behind = around->has_below ? address - around->below.address - around->below.size : UINT64_MAX;
    uint64_t before = around->has_above ? around->above.address - address : UINT64_MAX;
    if (address < NULL_PAGE)
        add(to, "; a null pointer");
    else if (!around->has_below && !around->has_above)
        add(to, "; this process has no allocation");
    else if (behind == 0)
        add(to, "; right behind ");
    else
        add(to, "; %llu bytes %s ", (unsigned long long)(behind <= before ? behind : before),
            behind <= before ? "behind" : "before");
    if (address >= NULL_PAGE && (around->has_below || around->has_above))
        add_allocation(to, behind <= before ? &around->below : &around->above);
    if (around->was_freed)
        add(to, "; %zu bytes at 0x%llx that held it were freed", around->freed_size,
            (unsigned long long)around->freed_address);
}

static void add_surroundings(line *to, CUcontext context, uint64_t address, uint32_t bytes) {
    surroundings around;
    look_around(address, &around);
    if (around.has_below && address - around.below.address < around.below.size)
        add_inside(to, context, &around.below, address, bytes);
    else
        add_outside(to, &around, address);
}

/* "6double...", as the Itanium C++ ABI has it: the next identifier, or NULL. Tags (B) say nothing to a reader. */
static const char *next_identifier(const char **at, size_t *length) {
    bool tag = **at == 'B';
    char *end;
    const char *digits = *at + tag;
    if (*digits < '1' || *digits > '9')
        return NULL;
    *length = strtoul(digits, &end, 10);
    if (*length > strlen(end))
        return NULL;
    *at = end + *length;
    return tag ? next_identifier(at, length) : end;
}

static void add_identifier(line *to, const char *identifier, size_t length) {
    static const char locals[] = "_3clocals_3e"; /* numba's, for Python's <locals> */
    if (length == sizeof locals - 1 && memcmp(identifier, locals, length) == 0)
        add(to, "<locals>");
    else
        add(to, "%.*s", (int)length, identifier);
}

/* "__main__::double" for _ZN8__main__6doubleB2v1...E: scopes and the name, no arguments. */
static void add_name(line *to, const char *name) {
    const char *at = name, *identifier = NULL;
    size_t length;
    if (strncmp(at, "_Z", 2) == 0) {
        at += at[2] == 'N' ? 3 : 2;
        identifier = next_identifier(&at, &length);
    }
    if (identifier == NULL) {
        add(to, "%.400s", name);
        return;
    }
    add_identifier(to, identifier, length);
    while (name[2] == 'N' && (identifier = next_identifier(&at, &length)) != NULL) {
        add(to, "::");
        add_identifier(to, identifier, length);
    }
}

static void add_place(line *to, const sg_result *result, const char *kernel) {
    const sg_fault_place *at = &result->place;
    add(to, " in kernel ");
    add_name(to, kernel);
    if (at->known)
        add(to, ", block (%u,%u,%u), thread (%u,%u,%u)", at->block[0], at->block[1], at->block[2], at->thread[0],
            at->thread[1], at->thread[2]);
    if (result->line != 0)
        add(to, ", PTX line %d", result->line);
    if (at->function != NULL && strcmp(at->function, kernel) != 0) {
        add(to, " in ");
        add_name(to, at->function);
    }
    if (at->instruction != NULL)
        add(to, ", %s", at->instruction);
}

void sg_fault_log(CUcontext context, CUfunction function, const sg_result *result) {
    line text = {.used = 0};
    add(&text, "pid %d (%s) %s", (int)getpid(), program_invocation_short_name,
        sg_error_name(sg_result_of(result->status)));
    add_place(&text, result, function->info.name);
    add(&text, ": %s", result->message);
    if (result->place.global_bytes != 0)
        add_surroundings(&text, context, result->address, result->place.global_bytes);
    if (strncmp(function->info.name, "_Z", 2) == 0)
        add(&text, " (the kernel's name in the PTX is %.600s)", function->info.name);
    sg_log_event(context->gpu->device, "fault", text.text);
}
