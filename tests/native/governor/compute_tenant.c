/* A tenant that computes, over a software GPU in virtual time.
 *
 *   compute_tenant SHARE END_NS [WORD=VALUE …]
 *
 * SHARE is a share's folder, or `bare=DRIVER_FOLDER` for no share at all. It launches until the device's clock
 * says END_NS after its beginning, and prints one line of JSON.
 *
 *   kernel=NS      length of a kernel (100000)
 *   spread=KIND    `lognormal` (sigma 1.5), `tenfold` (a length of 1 or 10 kernels by chance), `regime` (ten times
 *                  as long in every second half second)
 *   streams=N      in turns on so many streams
 *   graph=N        graphs of N kernels
 *   cooperative=1  by cuLaunchCooperativeKernel
 *   sync=N         wait after each N launches; how long it waits is told from the first of them on
 *   think=NS       do something else for so long after each wait, or each launch
 *   begin=NS       not before
 *   end=NS         instead of END_NS
 *   after=NS       tells of waits only from then on
 *   report=1       a line when it has a context
 *   stops=NS       launches nothing: every NS it writes a line and reads one, and the clock stands still meanwhile
 *   fork=N         after N launches: the child tries to launch as well, and ends
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_calls.h"

static const char PTX[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry asleep(.param .u32 count, .param .u32 ns) {\n"
                          ".reg .u32 %r<3>;\n.reg .pred %p1;\n"
                          "ld.param.u32 %r1, [count];\nld.param.u32 %r2, [ns];\n"
                          "again:\nnanosleep.u32 %r2;\nsub.u32 %r1, %r1, 1;\n"
                          "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra again;\nret;\n}\n";

#define CLOCK_BEGINS UINT64_C(1000000000) /* a new device's clock */

static void *library, *driver;
static uint64_t (*now)(void);
static int (*wait_until)(uint64_t);
static void *function, *streams[16], *graph;
static uint64_t kernel = 100000, think, begin, end_ns, after_ns, stops;
static unsigned stream_count = 1, graph_size, sync_each, cooperative, report, fork_after;
static const char *spread = "";
static unsigned seed = 1;

#define CALL(name, types, ...) must(((int(*) types)symbol(library, #name))(__VA_ARGS__), #name)

/* ---- how long it waited ---- */

enum { MOST_WAITS = 1 << 20 };
static uint32_t waits[MOST_WAITS]; /* tenths of a microsecond */
static unsigned wait_count;
static uint64_t waits_ns;

static void waited(uint64_t ns)
{
    if (wait_count == MOST_WAITS)
        exit(75);
    waits[wait_count++] = (uint32_t)(ns / 100);
    waits_ns += ns;
}

static int by_length(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The wait that so many of a hundred are not longer than. */
static unsigned long long percentile(unsigned of_100)
{
    qsort(waits, wait_count, sizeof *waits, by_length);
    return wait_count != 0 ? 100ULL * waits[(uint64_t)(wait_count - 1) * of_100 / 100] : 0;
}

static double unit(void)
{
    return (rand_r(&seed) + 1.0) / (RAND_MAX + 2.0);
}

static uint64_t length(void)
{
    if (strcmp(spread, "lognormal") == 0)
        return (uint64_t)((double)kernel * exp(1.5 * sqrt(-2 * log(unit())) * cos(6.283185307 * unit())));
    if (strcmp(spread, "tenfold") == 0)
        return rand_r(&seed) % 2 ? kernel : 10 * kernel;
    if (strcmp(spread, "regime") == 0)
        return now() / 500000000 % 2 ? 10 * kernel : kernel;
    return kernel;
}

typedef int launch_kernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
typedef int launch_cooperative(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                               void **);
static launch_kernel *launch_plainly;
static launch_cooperative *launch_cooperatively;
static int (*launch_graph)(void *, void *);

static void launch(void *stream, uint64_t ns)
{
    uint32_t pieces = (uint32_t)(ns / 1000000 + 1), each = (uint32_t)(ns / pieces);
    void *parameters[] = {&pieces, &each};
    if (cooperative)
        must(launch_cooperatively(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters), "cuLaunchCooperativeKernel");
    else
        must(launch_plainly(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL), "cuLaunchKernel");
}

static void open_all(const char *share)
{
    char path[4096];
    bool bare = strncmp(share, "bare=", 5) == 0;
    snprintf(path, sizeof path, bare ? "%s/libcuda.so.1" : "%s/lib/libcuda.so.1", bare ? share + 5 : share);
    library = opened(path);
    void *context, *module;
    CALL(cuInit, (unsigned), 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    CALL(cuCtxSetCurrent, (void *), context);
    snprintf(path, sizeof path, bare ? "%s/libcuda.so.1" : "%s/driver/libcuda.so.1", bare ? share + 5 : share);
    driver = opened(path);
    now = (uint64_t(*)(void))symbol(driver, "aliquotSoftgpuNow");
    wait_until = (int (*)(uint64_t))symbol(driver, "aliquotSoftgpuWaitUntil");
    CALL(cuModuleLoadData, (void **, const void *), &module, PTX);
    CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module, "asleep");
    for (unsigned at = 0; at < stream_count; at++)
        CALL(cuStreamCreate, (void **, unsigned), &streams[at], 1);
    launch_plainly = (launch_kernel *)symbol(library, "cuLaunchKernel");
    launch_cooperatively = (launch_cooperative *)symbol(library, "cuLaunchCooperativeKernel");
    launch_graph = (int (*)(void *, void *))symbol(library, "cuGraphLaunch");
}

static void capture(void)
{
    void *made;
    CALL(cuStreamBeginCapture_v2, (void *, int), streams[0], 0);
    for (unsigned at = 0; at < graph_size; at++)
        launch(streams[0], kernel);
    CALL(cuStreamEndCapture, (void *, void **), streams[0], &made);
    CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &graph, made, 0);
}

/* Whatever a driver says to a child that launches in its parent's context, it must say so, not wait. */
static void fork_once(void)
{
    pid_t child = fork();
    if (child == 0) {
        uint32_t one = 1;
        void *parameters[] = {&one, &one};
        (void)launch_plainly(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "the child ended with %d\n", status);
        exit(74);
    }
}

static void take_word(char *word)
{
    char *value = strchr(word, '=');
    if (value == NULL)
        exit(73);
    *value++ = '\0';
    uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(word, "spread") == 0)
        spread = value;
    struct {
        const char *name;
        uint64_t *wide;
        unsigned *narrow;
    } words[] = {{"kernel", &kernel, NULL},       {"think", &think, NULL},
                 {"begin", &begin, NULL},         {"streams", NULL, &stream_count},
                 {"end", &end_ns, NULL},          {"stops", &stops, NULL},
                 {"after", &after_ns, NULL},
                 {"graph", NULL, &graph_size},    {"sync", NULL, &sync_each},
                 {"seed", NULL, &seed},           {"cooperative", NULL, &cooperative},
                 {"report", NULL, &report},       {"fork", NULL, &fork_after}};
    for (unsigned at = 0; at < sizeof words / sizeof *words; at++)
        if (strcmp(word, words[at].name) == 0) {
            if (words[at].wide != NULL)
                *words[at].wide = number;
            else
                *words[at].narrow = (unsigned)number;
        }
}

static void stop_now_and_then(uint64_t end)
{
    char line[64];
    for (uint64_t at = CLOCK_BEGINS + begin + stops; at < end; at += stops) {
        must(wait_until(at), "WaitUntil");
        printf("{\"now\": %llu}\n", (unsigned long long)(now() - CLOCK_BEGINS));
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            exit(76);
    }
}

static uint64_t compute(uint64_t end)
{
    int (*synchronize)(void) = (int (*)(void))symbol(library, "cuCtxSynchronize");
    uint64_t launches = 0, before = now();
    for (; now() < end; launches++) {
        if (fork_after != 0 && launches == fork_after)
            fork_once();
        void *stream = streams[launches % stream_count];
        if (sync_each == 0 || launches % sync_each == 0)
            before = now();
        if (graph_size != 0)
            must(launch_graph(graph, stream), "cuGraphLaunch");
        else
            launch(stream, length());
        bool wait = sync_each != 0 && launches % sync_each == sync_each - 1;
        if (wait) {
            must(synchronize(), "cuCtxSynchronize");
            uint64_t since = before > CLOCK_BEGINS + after_ns ? before : CLOCK_BEGINS + after_ns;
            if (now() > since)
                waited(now() - since);
        }
        if (think != 0 && (wait || sync_each == 0))
            must(wait_until(now() + think), "WaitUntil");
    }
    return launches;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 64;
    end_ns = strtoull(arguments[2], NULL, 10);
    for (int at = 3; at < count; at++)
        take_word(arguments[at]);
    open_all(arguments[1]);
    if (graph_size != 0)
        capture();
    if (report) {
        printf("{\"pid\": %d}\n", getpid());
        fflush(stdout);
    }
    if (stops != 0)
        stop_now_and_then(CLOCK_BEGINS + end_ns);
    if (begin != 0)
        must(wait_until(CLOCK_BEGINS + begin), "WaitUntil");
    uint64_t first = now(), launches = stops != 0 ? 0 : compute(CLOCK_BEGINS + end_ns), stopped = now();
    CALL(cuCtxSynchronize, (void), );
    printf("{\"pid\": %d, \"launches\": %llu, \"began\": %llu, \"stopped\": %llu, \"ended\": %llu, \"mean_wait\": %llu, "
           "\"median_wait\": %llu, \"p99_wait\": %llu, \"longest_wait\": %llu}\n",
           getpid(), (unsigned long long)launches, (unsigned long long)(first - CLOCK_BEGINS),
           (unsigned long long)(stopped - CLOCK_BEGINS), (unsigned long long)(now() - CLOCK_BEGINS),
           (unsigned long long)(wait_count ? waits_ns / wait_count : 0), percentile(50), percentile(99), percentile(100));
    return 0;
}
