/* The table of live objects: pointer to kind, open addressing with linear probing. */
#include <stdlib.h>

#include "driver.h"

typedef struct {
    const void *object;
    sg_kind kind;
} entry;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static entry *entries;
static size_t capacity; /* a power of two, at most half full */
static size_t count;

static size_t home(const void *object) {
    return (size_t)((uintptr_t)object * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (capacity - 1);
}

static size_t locate(const void *object) {
    size_t i = home(object);
    while (entries[i].object != NULL && entries[i].object != object)
        i = (i + 1) & (capacity - 1);
    return i;
}

static bool grow(void) {
    entry *old = entries;
    size_t old_capacity = capacity, wanted = capacity ? capacity * 2 : 256;
    entry *fresh = calloc(wanted, sizeof *fresh);
    if (fresh == NULL)
        return false;
    entries = fresh;
    capacity = wanted;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].object != NULL)
            entries[locate(old[i].object)] = old[i];
    free(old);
    return true;
}

bool sg_object_add(const void *object, sg_kind kind) {
    pthread_rwlock_wrlock(&lock);
    bool room = (count + 1) * 2 <= capacity || grow();
    if (room) {
        entries[locate(object)] = (entry){object, kind};
        count++;
    }
    pthread_rwlock_unlock(&lock);
    return room;
}

void sg_object_remove(const void *object) {
    pthread_rwlock_wrlock(&lock);
    size_t hole = capacity == 0 ? 0 : locate(object);
    if (capacity != 0 && entries[hole].object != NULL) {
        /* Close the gap: an entry that probing would no longer reach moves into the hole. */
        for (size_t i = (hole + 1) & (capacity - 1); entries[i].object != NULL; i = (i + 1) & (capacity - 1)) {
            size_t wanted = home(entries[i].object);
            if (((i - wanted) & (capacity - 1)) >= ((i - hole) & (capacity - 1))) {
                entries[hole] = entries[i];
                hole = i;
            }
        }
        entries[hole].object = NULL;
        count--;
    }
    pthread_rwlock_unlock(&lock);
}

bool sg_object_is(const void *object, sg_kind kind) {
    if (object == NULL)
        return false;
    pthread_rwlock_rdlock(&lock);
    bool is = false;
    if (capacity != 0) {
        const entry *found = &entries[locate(object)];
        is = found->object == object && found->kind == kind;
    }
    pthread_rwlock_unlock(&lock);
    return is;
}

void sg_objects_forget(void) {
    pthread_rwlock_init(&lock, NULL);
}
