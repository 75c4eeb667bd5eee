/* How many CPUs a kernel may use. */
#include <sched.h>

#include "cpu_quota.h"
#include "launch.h"

static unsigned count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look(void) {
    cpu_set_t set;
    unsigned limit = sg_cpu_quota("");
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
