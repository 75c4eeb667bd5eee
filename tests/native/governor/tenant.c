/* A tenant in C: what must be fast, threaded, or killed at any moment.
 *
 *   tenant LIBCUDA race SECONDS SEED      allocate and free at the limit; prints allocations kept
 *   tenant LIBCUDA threads COUNT ROUNDS   threads allocate and free; all is given back
 *   tenant LIBCUDA churn                  allocate and free until killed
 *   tenant LIBCUDA count FILE SEED        the same at random, counting its operations in FILE's first word
 *   tenant LIBCUDA twice LIBCUDA2 ROUNDS  threads, half of them through a second governor over the same ledger
 *   tenant LIBCUDA nulls                  call every function there is with NULL and 0
 *   tenant LIBCUDA fork                   a child takes a share of its own, the parent keeps its
 *   tenant LIBCUDA steps STRIDE           a child that allocates and frees is killed at every STRIDE-th
 *                                         instruction; prints at how many, and the bytes lost by all
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_calls.h"
#include "traced.h"

#define MIB (1ull << 20)

typedef unsigned long long ptr;
static void *library;
static int (*alloc_memory)(ptr *, size_t);
static int (*free_memory)(ptr);
static int (*set_current)(void *);
static int (*get_info)(size_t *, size_t *);
static void *context;

static void begin(void)
{
    int (*start)(unsigned) = (int (*)(unsigned))symbol(library, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))symbol(library, "cuDevicePrimaryCtxRetain");
    alloc_memory = (int (*)(ptr *, size_t))symbol(library, "cuMemAlloc_v2");
    free_memory = (int (*)(ptr))symbol(library, "cuMemFree_v2");
    set_current = (int (*)(void *))symbol(library, "cuCtxSetCurrent");
    get_info = (int (*)(size_t *, size_t *))symbol(library, "cuMemGetInfo_v2");
    must(start(0), "cuInit");
    must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(set_current(context), "cuCtxSetCurrent");
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int race(double seconds, unsigned seed)
{
    enum { HELD = 64 };
    ptr held[HELD] = {0};
    unsigned long taken = 0, refused = 0;
    begin();
    for (double end = now() + seconds; now() < end;) {
        unsigned at = (unsigned)rand_r(&seed) % HELD;
        if (held[at] != 0) {
            must(free_memory(held[at]), "cuMemFree");
            held[at] = 0;
        }
        int result = alloc_memory(&held[at], MIB * (1 + (unsigned)rand_r(&seed) % 4));
        if (result != 0 && result != 2)
            must(result, "cuMemAlloc");
        taken += result == 0;
        refused += result == 2;
    }
    for (unsigned at = 0; at < HELD; at++)
        if (held[at] != 0)
            must(free_memory(held[at]), "cuMemFree");
    printf("%lu %lu\n", taken, refused);
    return 0;
}

static long rounds;

static void *worker(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    must(set_current(context), "cuCtxSetCurrent");
    ptr held[16] = {0};
    for (long round = 0; round < rounds; round++) {
        unsigned at = (unsigned)rand_r(&seed) % 16;
        if (held[at] != 0) {
            must(free_memory(held[at]), "cuMemFree");
            held[at] = 0;
        } else {
            must(alloc_memory(&held[at], 1 + (unsigned)rand_r(&seed) % 4096), "cuMemAlloc");
        }
    }
    for (unsigned at = 0; at < 16; at++)
        if (held[at] != 0)
            must(free_memory(held[at]), "cuMemFree");
    return NULL;
}

static size_t free_now(void)
{
    size_t left, total;
    must(get_info(&left, &total), "cuMemGetInfo");
    return left;
}

static int threads(unsigned count, long each)
{
    pthread_t ids[64];
    rounds = each;
    begin();
    size_t before = free_now();
    for (unsigned at = 0; at < count; at++)
        pthread_create(&ids[at], NULL, worker, (void *)(uintptr_t)(at + 1));
    for (unsigned at = 0; at < count; at++)
        pthread_join(ids[at], NULL);
    printf("%lld\n", (long long)before - (long long)free_now());
    return 0;
}

__attribute__((noreturn)) static void churn(void)
{
    ptr held[8] = {0};
    begin();
    printf("running\n");
    fflush(stdout);
    for (unsigned round = 0;; round++) {
        if (held[round % 8] != 0)
            must(free_memory(held[round % 8]), "cuMemFree");
        held[round % 8] = 0;
        alloc_memory(&held[round % 8], MIB * (1 + round % 5));
    }
}

__attribute__((noreturn)) static void count_until_killed(const char *path, unsigned seed)
{
    enum { HELD = 32 };
    ptr held[HELD] = {0};
    int file = open(path, O_RDWR | O_CLOEXEC);
    _Atomic unsigned long *done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (done == MAP_FAILED)
        exit(72);
    begin();
    printf("running\n");
    fflush(stdout);
    for (;; atomic_fetch_add(done, 1)) {
        unsigned at = (unsigned)rand_r(&seed) % HELD;
        if (held[at] != 0) {
            must(free_memory(held[at]), "cuMemFree");
            held[at] = 0;
            continue;
        }
        int result = alloc_memory(&held[at], 1 + (unsigned)rand_r(&seed) % (8 * MIB));
        if (result != 2)
            must(result, "cuMemAlloc");
    }
}

/* ---- two governors in one process: each has a mapping and a slot of its own, as two processes would ---- */

struct face {
    int (*take)(ptr *, size_t);
    int (*give)(ptr);
    unsigned seed;
};

static void *at_the_limit(void *argument)
{
    struct face *face = argument;
    ptr held[8] = {0};
    must(set_current(context), "cuCtxSetCurrent");
    for (long round = 0; round < rounds; round++) {
        unsigned at = (unsigned)rand_r(&face->seed) % 8;
        if (held[at] != 0) {
            must(face->give(held[at]), "cuMemFree");
            held[at] = 0;
        } else {
            int result = face->take(&held[at], MIB * (1 + (unsigned)rand_r(&face->seed) % 8));
            if (result != 2)
                must(result, "cuMemAlloc");
        }
    }
    for (unsigned at = 0; at < 8; at++)
        if (held[at] != 0)
            must(face->give(held[at]), "cuMemFree");
    return NULL;
}

static struct face face_of(void *governor, unsigned seed)
{
    library = governor;
    begin();
    return (struct face){alloc_memory, free_memory, seed};
}

static int twice(const char *other, long each)
{
    enum { THREADS = 8 };
    pthread_t ids[THREADS];
    struct face faces[THREADS];
    void *first = library, *second = opened(other);
    if (second == first)
        return 73;
    rounds = each;
    for (unsigned at = 0; at < THREADS; at++)
        faces[at] = face_of(at % 2 ? second : first, at + 1);
    size_t before = free_now();
    for (unsigned at = 0; at < THREADS; at++)
        pthread_create(&ids[at], NULL, at_the_limit, &faces[at]);
    for (unsigned at = 0; at < THREADS; at++)
        pthread_join(ids[at], NULL);
    printf("%lld\n", (long long)before - (long long)free_now());
    return 0;
}

/* Names on stdin, one a line. */
static int nulls(void)
{
    char name[256];
    unsigned long called = 0;
    begin();
    while (fgets(name, sizeof name, stdin) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        int (*function)(void *, void *, void *, void *, void *, void *, void *, void *) =
            (int (*)(void *, void *, void *, void *, void *, void *, void *, void *))symbol(library, name);
        function(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        called++;
    }
    printf("%lu\n", called);
    return 0;
}

static int in_fork(void)
{
    ptr parents, childs;
    int status;
    begin();
    must(alloc_memory(&parents, 20 * MIB), "cuMemAlloc");
    pid_t child = fork();
    if (child == 0) {
        /* The scripted driver works on in a child; the child's memory is the child's charge. */
        must(alloc_memory(&childs, 30 * MIB), "cuMemAlloc in the child");
        printf("%llu\n", free_now() / MIB);
        fflush(stdout);
        raise(9);
    }
    waitpid(child, &status, 0);
    printf("%llu\n", free_now() / MIB);
    must(free_memory(parents), "cuMemFree");
    printf("%llu\n", free_now() / MIB);
    return 0;
}

/* ---- killed at every instruction ---- */

enum { OWN_SLOT = 30, CHILD = 20 }; /* MiB */

__attribute__((noreturn)) static void traced_child(void)
{
    ptr first, second;
    must(alloc_memory(&first, 1 * MIB), "cuMemAlloc in the child");
    traced_from_here();
    must(alloc_memory(&second, CHILD * MIB), "cuMemAlloc in the child");
    must(free_memory(second), "cuMemFree in the child");
    _exit(0);
}

static bool step_and_kill(long instructions)
{
    pid_t child = fork();
    if (child == 0)
        traced_child();
    return traced_kill(child, instructions);
}

/* All that is left to this process can be had, and not a byte more. */
static size_t left_after(size_t room)
{
    ptr all, more;
    size_t lost = 0;
    while (lost <= room && alloc_memory(&all, room - lost) != 0)
        lost++;
    if (alloc_memory(&more, 1) == 0)
        return SIZE_MAX; /* more than the limit */
    must(free_memory(all), "cuMemFree");
    return lost;
}

static int steps(long stride)
{
    ptr own;
    long tried = 0;
    size_t lost = 0;
    begin();
    must(alloc_memory(&own, OWN_SLOT * MIB), "cuMemAlloc");
    size_t room = free_now();
    for (; step_and_kill(tried * stride); tried++)
        lost += left_after(room);
    printf("%ld %zu\n", tried, lost);
    return 0;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 64;
    library = opened(arguments[1]);
    const char *what = arguments[2];
    if (strcmp(what, "race") == 0 && count == 5)
        return race(atof(arguments[3]), (unsigned)atoi(arguments[4]));
    if (strcmp(what, "threads") == 0 && count == 5)
        return threads((unsigned)atoi(arguments[3]), atol(arguments[4]));
    if (strcmp(what, "churn") == 0)
        churn();
    if (strcmp(what, "count") == 0 && count == 5)
        count_until_killed(arguments[3], (unsigned)atoi(arguments[4]));
    if (strcmp(what, "twice") == 0 && count == 5)
        return twice(arguments[3], atol(arguments[4]));
    if (strcmp(what, "nulls") == 0)
        return nulls();
    if (strcmp(what, "fork") == 0)
        return in_fork();
    if (strcmp(what, "steps") == 0 && count == 4)
        return steps(atol(arguments[3]));
    return 64;
}
