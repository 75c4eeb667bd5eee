/* What calls of the software GPU cost: `softgpu_costs init|launch|load|memory|updates PTX` prints a figure.
 * `load` takes the text whose loading is measured. */
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu_driver.h"

enum { LAUNCHES = 2001, LOADS = 51, PROCESSES = 16, UPDATES = 200 };

static double microseconds_since(double start) { return 1e6 * (seconds(CLOCK_MONOTONIC) - start); }

static double init(void) {
    double start = seconds(CLOCK_MONOTONIC);
    MUST(cuInit(0));
    return microseconds_since(start);
}

static double launch(const char *path) {
    static double taken[LAUNCHES];
    open_device();
    CUfunction function = function_of(path, "empty");
    for (int i = 0; i < LAUNCHES; i++) {
        double start = seconds(CLOCK_MONOTONIC);
        MUST(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        taken[i] = microseconds_since(start);
    }
    return median(taken, LAUNCHES);
}

static double load(const char *path) {
    static double taken[LOADS];
    char *text = read_text(path);
    open_device();
    for (int i = 0; i < LOADS; i++) {
        CUmodule module;
        double start = seconds(CLOCK_MONOTONIC);
        MUST(cuModuleLoadData(&module, text));
        taken[i] = microseconds_since(start);
        MUST(cuModuleUnload(module));
    }
    return median(taken, LOADS);
}

static double resident_kib(void) {
    char line[256];
    double kib = NAN;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "Rss: %lf", &kib);
    if (file != NULL)
        fclose(file);
    return kib;
}

/* From before the first call to after the first kernel, device memory that is touched included. */
static double memory(const char *path) {
    double before = resident_kib();
    open_device();
    CUfunction function = function_of(path, "count_up");
    CUdeviceptr counter;
    MUST(cuMemAlloc_v2(&counter, 4));
    MUST(cuMemsetD8_v2(counter, 0, 4));
    MUST(cuLaunchKernel(function, 256, 1, 1, 256, 1, 1, 0, NULL, (void *[]){&counter}, NULL));
    MUST(cuCtxSynchronize());
    return (resident_kib() - before) / 1024;
}

/* One of the processes: it opens the counter that the parent shares and counts up. */
static void count_up(const char *path, const int *ends) {
    CUipcMemHandle handle;
    CUdeviceptr counter;
    close(ends[1]); /* or a parent that failed would be waited for */
    if (read(ends[0], &handle, sizeof handle) != sizeof handle)
        _exit(1);
    open_device();
    CUfunction function = function_of(path, "count_up");
    MUST(cuIpcOpenMemHandle_v2(&counter, handle, 1));
    for (int i = 0; i < UPDATES; i++)
        MUST(cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&counter}, NULL));
    MUST(cuCtxSynchronize());
    _exit(0);
}

/* Lost updates of one counter that all processes share; NaN where a process failed. */
static double updates(const char *path) {
    int ends[2], failed = 0;
    unsigned counted = 0;
    if (pipe(ends) != 0)
        return NAN;
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0)
            count_up(path, ends);
    open_device(); /* after the forks: a child cannot use its parent's context */
    CUdeviceptr counter;
    CUipcMemHandle handle;
    MUST(cuMemAlloc_v2(&counter, 1 << 21));
    MUST(cuMemsetD8_v2(counter, 0, 4));
    MUST(cuIpcGetMemHandle(&handle, counter));
    for (int i = 0; i < PROCESSES; i++)
        failed |= write(ends[1], &handle, sizeof handle) != sizeof handle;
    for (int i = 0, status; i < PROCESSES; i++)
        failed |= wait(&status) < 0 || status != 0;
    MUST(cuMemcpyDtoH_v2(&counted, counter, sizeof counted));
    return failed ? (double)NAN : (double)PROCESSES * UPDATES * 4 * 64 - counted;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    double figure = NAN;
    if (strcmp(argv[1], "init") == 0)
        figure = init();
    else if (strcmp(argv[1], "launch") == 0)
        figure = launch(argv[2]);
    else if (strcmp(argv[1], "load") == 0)
        figure = load(argv[2]);
    else if (strcmp(argv[1], "memory") == 0)
        figure = memory(argv[2]);
    else if (strcmp(argv[1], "updates") == 0)
        figure = updates(argv[2]);
    printf("%g\n", figure);
    return 0;
}
