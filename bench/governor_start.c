/* The start of a program that uses a library as its driver: load it, cuInit, the first device.
 *
 *   governor_start LIBRARY    prints milliseconds of wall time, and kibibytes resident afterwards
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            sscanf(line + 6, "%ld", &kib);
    if (status != NULL)
        fclose(status);
    return kib;
}

int main(int count, char **arguments)
{
    double begun = now_ms();
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*init)(unsigned) = library != NULL ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
    int (*get)(int *, int) = library != NULL ? (int (*)(int *, int))dlsym(library, "cuDeviceGet") : NULL;
    int device;
    if (init == NULL || get == NULL || init(0) != 0 || get(&device, 0) != 0) {
        fprintf(stderr, "%s\n", count == 2 && library == NULL ? dlerror() : "the library does not start");
        return 1;
    }
    printf("%.3f\t%ld\n", now_ms() - begun, resident_kib());
    return 0;
}
