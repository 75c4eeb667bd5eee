/* The two default streams of a context: the legacy one, which is ordered with all blocking streams, and
 * the one that each thread has for itself. */
#include <stdlib.h>

#include "queues.h"

typedef struct of_thread {
    sg_queue *queue;
    struct of_thread *next;
} of_thread;

static pthread_key_t key; /* the queues of a thread, one a context it used so */
static bool has_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

sg_queue *sg_queue_legacy(CUcontext context) {
    sg_queue *found = atomic_load_explicit(&context->legacy, memory_order_acquire);
    if (found != NULL)
        return found;
    sg_queue *made = sg_queue_make(context, false);
    if (made == NULL || atomic_compare_exchange_strong(&context->legacy, &found, made))
        return made;
    sg_queue_release(made);
    return found;
}

static void leave(void *value) {
    for (of_thread *entry = value, *next; entry != NULL; entry = next) {
        next = entry->next;
        sg_queue_release(entry->queue);
        free(entry);
    }
}

static void make_key(void) {
    has_key = pthread_key_create(&key, leave) == 0;
}

sg_queue *sg_queue_of_thread(CUcontext context) {
    pthread_once(&once, make_key);
    if (!has_key)
        return NULL;
    of_thread *first = pthread_getspecific(key);
    for (of_thread *entry = first; entry != NULL; entry = entry->next)
        if (sg_queue_context(entry->queue) == context)
            return entry->queue;
    of_thread *made = malloc(sizeof *made);
    sg_queue *queue = made != NULL ? sg_queue_make(context, false) : NULL;
    if (queue == NULL || pthread_setspecific(key, made) != 0) {
        sg_queue_release(queue);
        free(made);
        return NULL;
    }
    *made = (of_thread){queue, first};
    return queue;
}
