#include "book.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_SIZE 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *table;
static uint64_t size; /* a power of two, or 0 */
static uint64_t count;
static uint64_t reserved;

void book_lock(void)
{
    pthread_mutex_lock(&lock);
}

void book_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* What the parent holds is not the child's: its pages here are private copies. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    if (table != NULL)
        memset(table, 0, size * sizeof *table);
    count = reserved = 0;
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

bool book_reserve(void)
{
    book_lock();
    bool room = (count + reserved + 1) * 4 <= size * 3 || grow();
    reserved += room;
    book_unlock();
    return room;
}

void book_unreserve(void)
{
    book_lock();
    reserved -= reserved > 0;
    book_unlock();
}

void book_put(const struct entry *entry)
{
    struct entry *place = search(entry->kind, entry->key);
    count += place->kind == KIND_FREE;
    reserved -= reserved > 0;
    *place = *entry;
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
    count--;
}

bool book_take(enum kind kind, uint64_t key, struct entry *out)
{
    struct entry *found = book_find(kind, key);
    if (found == NULL)
        return false;
    *out = *found;
    remove_at((uint64_t)(found - table));
    reserved++;
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
