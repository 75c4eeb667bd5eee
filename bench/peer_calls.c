/* Calls as a program makes them, whatever stands between it and its driver: nanoseconds each, the median of a block.
 *
 *   peer_calls    opens libcuda.so.1 by its name; one line a figure: name, then nanoseconds */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 31, CALLS = 2000, PAIRS = 20, LAUNCHES = 32 };

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";
static void *library, *function;

static void *symbol(const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

#define CALL(name, types, ...) (((int(*) types)symbol(name))(__VA_ARGS__))

static void must(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double query(void)
{
    int (*call)(void *) = (int (*)(void *))symbol("cuStreamQuery");
    double begun = now_ns();
    for (int at = 0; at < CALLS; at++)
        call(NULL);
    return (now_ns() - begun) / CALLS;
}

static double info(void)
{
    int (*call)(size_t *, size_t *) = (int (*)(size_t *, size_t *))symbol("cuMemGetInfo_v2");
    size_t left, total;
    double begun = now_ns();
    for (int at = 0; at < PAIRS; at++)
        must(call(&left, &total), "cuMemGetInfo");
    return (now_ns() - begun) / PAIRS;
}

static double pair(void)
{
    int (*take)(unsigned long long *, size_t) = (int (*)(unsigned long long *, size_t))symbol("cuMemAlloc_v2");
    int (*give)(unsigned long long) = (int (*)(unsigned long long))symbol("cuMemFree_v2");
    double begun = now_ns();
    for (int at = 0; at < PAIRS; at++) {
        unsigned long long pointer;
        must(take(&pointer, 4096), "cuMemAlloc");
        must(give(pointer), "cuMemFree");
    }
    return (now_ns() - begun) / PAIRS;
}

static double launch(void)
{
    typedef int call(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    call *one = (call *)symbol("cuLaunchKernel");
    double begun = now_ns(), took;
    for (int at = 0; at < LAUNCHES; at++)
        must(one(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
    took = (now_ns() - begun) / LAUNCHES;
    must(CALL("cuCtxSynchronize", (void), ), "cuCtxSynchronize");
    return took;
}

static int ascending(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static void measure(const char *name, double (*one)(void))
{
    double took[BLOCKS];
    for (int block = 0; block < BLOCKS; block++)
        took[block] = one();
    qsort(took, BLOCKS, sizeof *took, ascending);
    printf("%s\t%.1f\n", name, took[BLOCKS / 2]);
}

int main(void)
{
    void *context, *module;
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    must(CALL("cuInit", (unsigned), 0), "cuInit");
    must(CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0), "cuDevicePrimaryCtxRetain");
    must(CALL("cuCtxSetCurrent", (void *), context), "cuCtxSetCurrent");
    must(CALL("cuModuleLoadData", (void **, const void *), &module, text), "cuModuleLoadData");
    must(CALL("cuModuleGetFunction", (void **, void *, const char *), &function, module, "nothing"), "cuModuleGetFunction");
    measure("query", query);
    measure("info", info);
    measure("launch", launch);
    measure("pair", pair);
    return 0;
}
