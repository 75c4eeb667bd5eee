#include "book.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "latch.h"

#define FIRST_SIZE 1024

static latch lock;
static struct entry *table;
static _Atomic uint64_t size; /* a power of two, or 0 */
static atomic_ulong count;
/* Contexts in the book, for a look without the lock; a place is another's only once it was empty. */
static struct {
    _Atomic uint64_t context;
    atomic_uint device;
} contexts[16];

void book_lock(void)
{
    latch_take(&lock);
}

void book_unlock(void)
{
    latch_let_go(&lock);
}

/* What the parent holds is not the child's: its pages here are private copies. */
static void in_child(void)
{
    latch_let_go(&lock);
    if (table != NULL)
        memset(table, 0, size * sizeof *table);
    count = 0;
    for (unsigned at = 0; at < sizeof contexts / sizeof *contexts; at++)
        contexts[at].context = 0;
}

void book_open(void)
{
    pthread_atfork(book_lock, book_unlock, in_child);
}

static uint64_t place_of(uint64_t kind, uint64_t key)
{
    uint64_t hash = (key ^ kind << 60) * 0x9e3779b97f4a7c15u;
    return (hash ^ hash >> 32) & (size - 1);
}

static struct entry *search(enum kind kind, uint64_t key)
{
    uint64_t at = place_of(kind, key);
    while (table[at].kind != KIND_FREE && (table[at].kind != kind || table[at].key != key))
        at = (at + 1) & (size - 1);
    return &table[at];
}

static bool grow(void)
{
    struct entry *old = table;
    uint64_t old_size = size, new_size = size == 0 ? FIRST_SIZE : size * 2;
    void *map = mmap(NULL, new_size * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    table = map;
    size = new_size;
    for (uint64_t at = 0; at < old_size; at++)
        if (old[at].kind != KIND_FREE)
            *search(old[at].kind, old[at].key) = old[at];
    if (old != NULL)
        munmap(old, old_size * sizeof *old);
    return true;
}

static bool is_roomy(void)
{
    return (atomic_load_explicit(&count, memory_order_relaxed) + 1) * 4 <= size * 3;
}

/* Looked at without the lock, so some threads at once may get beyond three quarters: the last quarter is theirs. */
bool book_has_room(void)
{
    if (__builtin_expect(is_roomy(), 1))
        return true;
    book_lock();
    bool room = is_roomy() || grow();
    book_unlock();
    return room;
}

/* ---- contexts ---- */

static unsigned cell_of(uint64_t context)
{
    return (unsigned)(context * 0x9e3779b97f4a7c15u >> 60);
}

static void show_context(const struct entry *entry)
{
    unsigned cell = cell_of(entry->key);
    if (atomic_load(&contexts[cell].context) != 0)
        return; /* another's: this one is looked up */
    atomic_store(&contexts[cell].device, entry->device);
    atomic_store(&contexts[cell].context, entry->key);
}

static void hide_context(uint64_t context)
{
    unsigned cell = cell_of(context);
    if (atomic_load(&contexts[cell].context) == context)
        atomic_store(&contexts[cell].context, 0);
}

bool book_shows_context(uint64_t context, unsigned *device)
{
    unsigned cell = cell_of(context);
    if (atomic_load_explicit(&contexts[cell].context, memory_order_acquire) != context)
        return false;
    *device = atomic_load_explicit(&contexts[cell].device, memory_order_relaxed);
    return true;
}

/* ---- entries ---- */

void book_put(const struct entry *entry)
{
    if (count + 2 > size && !grow())
        return; /* the last free place ends every search. What is not in the book stays charged */
    struct entry *place = search(entry->kind, entry->key);
    if (place->kind == KIND_FREE)
        atomic_store_explicit(&count, count + 1, memory_order_relaxed);
    *place = *entry;
    if (entry->kind == KIND_CONTEXT)
        show_context(entry);
}

struct entry *book_find(enum kind kind, uint64_t key)
{
    if (size == 0)
        return NULL;
    struct entry *place = search(kind, key);
    return place->kind == KIND_FREE ? NULL : place;
}

/* Close the gap: later entries of the same run move up, so that no tombstones pile up. */
static void remove_at(uint64_t gap)
{
    for (uint64_t at = (gap + 1) & (size - 1); table[at].kind != KIND_FREE; at = (at + 1) & (size - 1)) {
        uint64_t home = place_of(table[at].kind, table[at].key);
        if (((at - home) & (size - 1)) >= ((at - gap) & (size - 1))) {
            table[gap] = table[at];
            gap = at;
        }
    }
    memset(&table[gap], 0, sizeof table[gap]);
    atomic_store_explicit(&count, count - 1, memory_order_relaxed);
}

bool book_take(enum kind kind, uint64_t key, struct entry *out)
{
    struct entry *found = book_find(kind, key);
    if (found == NULL)
        return false;
    *out = *found;
    remove_at((uint64_t)(found - table));
    if (kind == KIND_CONTEXT)
        hide_context(key);
    return true;
}

struct entry *book_next(uint64_t *at)
{
    while (*at < size) {
        struct entry *entry = &table[(*at)++];
        if (entry->kind != KIND_FREE)
            return entry;
    }
    return NULL;
}
