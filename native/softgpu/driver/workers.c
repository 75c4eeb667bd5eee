/* How many CPUs a kernel may use. */
#include <sched.h>
#include <stdio.h>

#include "launch.h"

static unsigned count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* "max 100000", or quota and period in microseconds; no limit where the file is missing. */
static unsigned quota(void) {
    unsigned long long microseconds, period;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (file == NULL)
        return 0;
    int read = fscanf(file, "%llu %llu", &microseconds, &period);
    fclose(file);
    return read == 2 && period > 0 ? (unsigned)((microseconds + period - 1) / period) : 0;
}

static void look(void) {
    cpu_set_t set;
    unsigned limit = quota();
    count = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    if (limit > 0 && limit < count)
        count = limit;
    if (count == 0)
        count = 1;
}

unsigned sg_worker_count(void) {
    pthread_once(&once, look);
    return count;
}
