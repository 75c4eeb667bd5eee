/* What a call through the governor costs over the same call straight into the driver, in turns, so
 * that a machine that slows down slows both. A block of rounds gives a median; the best block counts, for
 * what else the machine does can only add.
 *
 *   governor_calls DRIVER GOVERNOR [PROCESSES]
 *       one line a figure: name, then nanoseconds a call (through - straight). With PROCESSES only
 *       allocation and free, while so many others of the share are there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 15, ROUNDS = 101, CALLS = 10000, PAIRS = 500 };

typedef int query(void *);
typedef int launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int take(unsigned long long *, size_t);
typedef int give(unsigned long long);

static volatile int sink;
static int sink_function;

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static double query_ns(void *function)
{
    query *call = (query *)function;
    double begun = now_ns();
    for (int at = 0; at < CALLS; at++)
        sink = call(NULL);
    return (now_ns() - begun) / CALLS;
}

/* ---- launches, each by itself: most go into an open batch, one in BATCH closes it and opens the next ---- */

enum { BATCH = 64, LAUNCHES = BATCH * 2000, CHUNK = 16, CHUNKS = LAUNCHES / CHUNK };

struct launches {
    double median, late, opening; /* ns: half and 99 of 100 of those inside a batch; half of the others */
};

static double ticks_per_ns(void)
{
    double begun = now_ns();
    unsigned long long ticks = __builtin_ia32_rdtsc();
    while (now_ns() - begun < 20e6)
        ;
    return (double)(__builtin_ia32_rdtsc() - ticks) / (now_ns() - begun);
}

static give *give_now;

static double pair_ns(void *function)
{
    take *call = (take *)function;
    double begun = now_ns();
    for (int at = 0; at < PAIRS; at++) {
        unsigned long long pointer = 0;
        sink = call(&pointer, 4096);
        sink = give_now(pointer);
    }
    return (now_ns() - begun) / PAIRS;
}

static int ascending(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double median_added(const char *name, double (*measure)(void *), void *driver, void *governor)
{
    double added[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        give_now = (give *)symbol(driver, "cuMemFree_v2");
        double straight = measure(symbol(driver, name));
        give_now = (give *)symbol(governor, "cuMemFree_v2");
        added[round] = measure(symbol(governor, name)) - straight;
    }
    qsort(added, ROUNDS, sizeof *added, ascending);
    return added[ROUNDS / 2];
}

/* Of chunks, since the clock of some machines ticks in steps of 10 ns; three in four end no batch. */
static double median_launch(launch *call)
{
    static double took[CHUNKS];
    for (int at = 0; at < CHUNKS; at++) {
        unsigned long long begun = __builtin_ia32_rdtsc();
        for (int one = 0; one < CHUNK; one++)
            sink = call(&sink_function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        took[at] = (double)(__builtin_ia32_rdtsc() - begun) / CHUNK;
    }
    qsort(took, CHUNKS, sizeof *took, ascending);
    return took[CHUNKS / 2];
}

static struct launches launches_of(void *function)
{
    static double took[LAUNCHES];
    launch *call = (launch *)function;
    for (int at = 0; at < LAUNCHES; at++) {
        unsigned long long begun = __builtin_ia32_rdtsc();
        sink = call(&sink_function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        took[at] = (double)(__builtin_ia32_rdtsc() - begun);
    }
    qsort(took, LAUNCHES, sizeof *took, ascending);
    int inside = LAUNCHES / BATCH * (BATCH - 2);
    return (struct launches){median_launch(call), took[inside / 100 * 99], took[inside + (LAUNCHES - inside) / 2]};
}

static double lesser_of(double one, double other)
{
    return one < other ? one : other;
}

static struct launches lesser(struct launches one, struct launches other)
{
    return (struct launches){lesser_of(one.median, other.median), lesser_of(one.late, other.late),
                             lesser_of(one.opening, other.opening)};
}

static void compare_launches(void *driver, void *governor)
{
    double ticks = ticks_per_ns();
    struct launches straight = launches_of(symbol(driver, "cuLaunchKernel"));
    struct launches through = launches_of(symbol(governor, "cuLaunchKernel"));
    /* The least of each apart: the least difference would be that of a disturbed driver. */
    for (int block = 1; block < BLOCKS; block++) {
        straight = lesser(straight, launches_of(symbol(driver, "cuLaunchKernel")));
        through = lesser(through, launches_of(symbol(governor, "cuLaunchKernel")));
    }
    printf("launch\t%.3f\nlaunch p99\t%.3f\nbatch\t%.3f\n", (through.median - straight.median) / ticks,
           (through.late - straight.median) / ticks, (through.opening - straight.median) / ticks);
}

static void compare(const char *what, const char *name, double (*measure)(void *), void *driver, void *governor)
{
    double best = median_added(name, measure, driver, governor);
    for (int block = 1; block < BLOCKS; block++) {
        double next = median_added(name, measure, driver, governor);
        best = next < best ? next : best;
    }
    printf("%s\t%.3f\n", what, best);
}

/* Processes that hold memory of the share, until this one ends. */
static void start_others(void *governor, int count)
{
    unsigned long long pointer;
    int ready[2], stay[2];
    char byte = 0;
    if (pipe(ready) != 0 || pipe(stay) != 0)
        exit(1);
    for (int at = 0; at < count; at++) {
        if (fork() == 0) {
            close(stay[1]);
            byte = (char)(((int (*)(unsigned))symbol(governor, "cuInit"))(0) != 0 ||
                          ((take *)symbol(governor, "cuMemAlloc_v2"))(&pointer, 4096) != 0);
            if (write(ready[1], &byte, 1) == 1)
                _exit((int)read(stay[0], &byte, 1)); /* the end of the file is our end */
            _exit(1);
        }
        if (read(ready[0], &byte, 1) != 1 || byte != 0) {
            fprintf(stderr, "another process of the share cannot start\n");
            exit(1);
        }
    }
}

/* The C library leaves out what makes a lock a lock while a process has one thread; programs that use a
 * GPU have many. */
static void *do_nothing(void *nothing)
{
    pause();
    return nothing;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    void *driver = count == 3 || count == 4 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *governor = driver != NULL ? dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    unsigned long long pointer, before = 0;
    if (governor == NULL) {
        fprintf(stderr, "%s\n", count > 2 ? dlerror() : "usage: governor_calls DRIVER GOVERNOR [PROCESSES]");
        return 1;
    }
    /* The limiter is there and holds: else the figures below would be of nothing. */
    if (((int (*)(unsigned))symbol(governor, "cuInit"))(0) != 0 ||
        ((take *)symbol(governor, "cuMemAlloc_v2"))(&pointer, 4096) != 0 ||
        ((give *)symbol(governor, "cuMemFree_v2"))(pointer) != 0 ||
        ((take *)symbol(governor, "cuMemAlloc_v2"))(&before, 1ull << 40) != 2) {
        fprintf(stderr, "the governor does not hold its limit\n");
        return 1;
    }
    if (count == 4)
        start_others(governor, atoi(arguments[3]));
    pthread_create(&thread, NULL, do_nothing, NULL);
    if (count == 4) {
        compare("pair", "cuMemAlloc_v2", pair_ns, driver, governor);
        return 0;
    }
    compare("query", "cuStreamQuery", query_ns, driver, governor);
    compare_launches(driver, governor);
    compare("pair", "cuMemAlloc_v2", pair_ns, driver, governor);
    return 0;
}
