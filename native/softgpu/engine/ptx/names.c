#include "names.h"

#include <string.h>

enum { BUCKETS = 1024 };

typedef struct entry {
    struct entry *next;
    const char *name;
    uint32_t scope;
    sg_named named;
} entry;

typedef struct text {
    struct text *next;
    uint32_t hash;
    size_t length;
    char bytes[];
} text;

struct sg_name_table {
    text *texts[BUCKETS];
    entry *entries[BUCKETS];
};

sg_name_table *sg_names_open(sg_compiler *compiler) { return sg_allocate(compiler, sizeof(sg_name_table)); }

/* Numba's names run to 700 bytes and differ at the end, so every byte counts. */
static uint32_t hash_text(const char *bytes, size_t length) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash;
}

static size_t bucket(uint32_t scope, const char *interned) {
    uintptr_t mixed = ((uintptr_t)interned >> 4) * 2654435761u + scope * 40503u;
    return (mixed >> 8) % BUCKETS;
}

const char *sg_intern(sg_compiler *compiler, sg_name_table *names, const char *bytes, size_t length) {
    uint32_t hash = hash_text(bytes, length);
    for (text *t = names->texts[hash % BUCKETS]; t; t = t->next)
        if (t->hash == hash && t->length == length && !memcmp(t->bytes, bytes, length))
            return t->bytes;
    text *added = sg_allocate(compiler, sizeof *added + length + 1);
    added->hash = hash;
    added->length = length;
    memcpy(added->bytes, bytes, length);
    added->next = names->texts[hash % BUCKETS];
    names->texts[hash % BUCKETS] = added;
    return added->bytes;
}

static entry *find(const sg_name_table *names, uint32_t scope, const char *interned) {
    for (entry *e = names->entries[bucket(scope, interned)]; e; e = e->next)
        if (e->name == interned && e->scope == scope)
            return e;
    return NULL;
}

bool sg_define(sg_compiler *compiler, sg_name_table *names, uint32_t scope, const char *interned, sg_named named) {
    if (find(names, scope, interned))
        return false;
    entry *added = sg_allocate(compiler, sizeof *added);
    *added = (entry){names->entries[bucket(scope, interned)], interned, scope, named};
    names->entries[bucket(scope, interned)] = added;
    return true;
}

sg_named sg_lookup(const sg_name_table *names, uint32_t scope, const char *interned) {
    entry *found = find(names, scope, interned);
    return found ? found->named : (sg_named){NAMED_NOTHING, NULL};
}
