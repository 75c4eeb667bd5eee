/* malloc and free in kernels: a context's heap.
 *
 * The heap is device memory of the context, CU_LIMIT_MALLOC_HEAP_SIZE of it, taken when a kernel first asks.
 * What is handed out is written down beside it in host memory, so that a kernel's wild store costs it its
 * data and never the heap. A block is of one of eight sizes between two powers of two, cut off the unused
 * end or taken from those freed before; blocks are not joined again, but a heap in which nothing lives
 * begins anew. */
#include <stdlib.h>

#include "driver.h"

enum { UNIT = 16, CLASSES = 256, NOTHING = 0 };

struct sg_heap {
    pthread_mutex_t lock; /* the threads of a launch */
    uint64_t base;
    uint32_t units;
    uint32_t unused;         /* the first unit never handed out */
    uint32_t living;         /* blocks */
    uint32_t freed[CLASSES]; /* the first free block of each class: its unit + 1 */
    uint32_t *next;          /* by first unit of a free block: the next one, + 1 */
    unsigned char *class_of; /* by first unit of a living block; NOTHING elsewhere */
};

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* The smallest class that holds so many units: classes 1 to 8 are of 1 to 8 units, then steps double. */
static unsigned class_for(uint32_t units) {
    unsigned step = 0;
    while ((uint64_t)8 << step < units)
        step++;
    uint32_t steps = (uint32_t)(((uint64_t)units + ((uint64_t)1 << step) - 1) >> step);
    return step * 8 + steps;
}

static uint32_t units_of(unsigned class) {
    return ((class - 1) % 8 + 1) << (class - 1) / 8;
}

static void heap_free(struct sg_heap *heap) {
    free(heap->next);
    free(heap->class_of);
    pthread_mutex_destroy(&heap->lock);
    free(heap);
}

static struct sg_heap *heap_make(CUcontext context) {
    struct sg_heap *heap = calloc(1, sizeof *heap);
    sg_allocation made;
    size_t size = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    if (heap == NULL)
        return NULL;
    pthread_mutex_init(&heap->lock, NULL);
    heap->units = size / UNIT > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)(size / UNIT);
    heap->next = calloc((size_t)heap->units + 1, sizeof *heap->next);
    heap->class_of = calloc((size_t)heap->units + 1, 1);
    if (heap->next == NULL || heap->class_of == NULL || heap->units == 0 ||
        sg_memory_allocate(context, (size_t)heap->units * UNIT, SG_MEMORY_HEAP, &made) != CUDA_SUCCESS) {
        heap_free(heap);
        return NULL;
    }
    heap->base = made.address;
    return heap;
}

static struct sg_heap *heap_of(CUcontext context) {
    pthread_mutex_lock(&making);
    if (context->heap == NULL)
        context->heap = heap_make(context);
    struct sg_heap *heap = context->heap;
    pthread_mutex_unlock(&making);
    return heap;
}

bool sg_heap_in_use(CUcontext context) {
    pthread_mutex_lock(&making);
    bool is = context->heap != NULL;
    pthread_mutex_unlock(&making);
    return is;
}

/* A freed block of the class, else of a larger one up to twice its size. */
static bool take_freed(struct sg_heap *heap, unsigned class, uint32_t *unit, unsigned *taken) {
    for (unsigned c = class; c < CLASSES && c <= class + 8; c++) {
        if (heap->freed[c] == 0)
            continue;
        *unit = heap->freed[c] - 1;
        *taken = c;
        heap->freed[c] = heap->next[*unit];
        return true;
    }
    return false;
}

static bool take_unused(struct sg_heap *heap, uint32_t wanted, uint32_t *unit) {
    if (wanted > heap->units - heap->unused)
        return false;
    *unit = heap->unused;
    heap->unused += wanted;
    return true;
}

uint64_t sg_heap_allocate(void *given, uint64_t bytes) {
    struct sg_heap *heap = bytes == 0 ? NULL : heap_of(given);
    uint64_t address = 0;
    uint32_t unit;
    if (heap == NULL || bytes > (uint64_t)heap->units * UNIT)
        return 0;
    uint32_t wanted = (uint32_t)((bytes + UNIT - 1) / UNIT);
    unsigned class = class_for(wanted), taken = class;
    pthread_mutex_lock(&heap->lock);
    if (take_freed(heap, class, &unit, &taken) || take_unused(heap, units_of(class), &unit)) {
        heap->class_of[unit] = (unsigned char)taken;
        heap->living++;
        address = heap->base + (uint64_t)unit * UNIT;
    }
    pthread_mutex_unlock(&heap->lock);
    return address;
}

static void begin_anew(struct sg_heap *heap) {
    heap->unused = 0;
    for (unsigned c = 0; c < CLASSES; c++)
        heap->freed[c] = 0;
}

bool sg_heap_release(void *given, uint64_t address) {
    struct sg_heap *heap = heap_of(given);
    bool known = false;
    if (heap == NULL || address < heap->base || address % UNIT != 0)
        return false;
    uint64_t unit = (address - heap->base) / UNIT;
    pthread_mutex_lock(&heap->lock);
    unsigned class = unit < heap->units ? heap->class_of[unit] : NOTHING;
    if (class != NOTHING) {
        known = true;
        heap->class_of[unit] = NOTHING;
        heap->next[unit] = heap->freed[class];
        heap->freed[class] = (uint32_t)unit + 1;
        if (--heap->living == 0)
            begin_anew(heap);
    }
    pthread_mutex_unlock(&heap->lock);
    return known;
}

/* Its device memory goes with the context's. */
void sg_heap_close(CUcontext context) {
    if (context->heap != NULL)
        heap_free(context->heap);
    context->heap = NULL;
}
