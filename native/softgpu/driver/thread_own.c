#include "thread_own.h"

#include <pthread.h>
#include <stdlib.h>

/* One list a thread, of all that it has. */
struct block {
    struct block *next;
    void **place;
    _Alignas(max_align_t) unsigned char bytes[];
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int keyless;

static void free_all(void *first) {
    for (struct block *block = first, *next; block != NULL; block = next) {
        next = block->next;
        *block->place = NULL; /* whoever comes after us in the thread's end begins anew */
        free(block);
    }
}

static void make_key(void) {
    keyless = pthread_key_create(&key, free_all);
}

void *sg_thread_own(void **place, size_t size) {
    if (*place != NULL)
        return *place;
    pthread_once(&once, make_key);
    struct block *block = keyless == 0 ? calloc(1, sizeof *block + size) : NULL;
    if (block == NULL)
        return NULL;
    block->place = place;
    block->next = pthread_getspecific(key);
    if (pthread_setspecific(key, block) != 0) {
        free(block);
        return NULL;
    }
    return *place = block->bytes;
}
