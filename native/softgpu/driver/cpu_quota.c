/* CPU limits of control groups: the least of this process's own group and of all above it. */
#include "cpu_quota.h"

#include <limits.h>
#include <stddef.h>

#include "control_groups.h"

static unsigned whole(uint64_t quota, uint64_t period) {
    uint64_t count = quota > 0 && period > 0 ? quota / period + (quota % period != 0) : 0;
    return count < UINT_MAX ? (unsigned)count : 0;
}

/* cpu.max is "max 100000", or quota and period in microseconds; version 1 has a file for each. */
static unsigned limit_of(const sg_control_group *group) {
    uint64_t numbers[2];
    if (group->version == 2)
        return sg_control_group_numbers(group, "cpu.max", NULL, numbers, 2) == 2 ? whole(numbers[0], numbers[1]) : 0;
    if (sg_control_group_numbers(group, "cpu.cfs_quota_us", NULL, &numbers[0], 1) == 0 ||
        sg_control_group_numbers(group, "cpu.cfs_period_us", NULL, &numbers[1], 1) == 0)
        return 0;
    return whole(numbers[0], numbers[1]);
}

static void narrow(const sg_control_group *group, void *of) {
    unsigned *least = of, limit = limit_of(group);
    if (limit != 0 && (*least == 0 || limit < *least))
        *least = limit;
}

unsigned sg_cpu_quota(const char *root) {
    unsigned least = 0;
    sg_control_groups_above(root, "cpu", narrow, &least);
    return least;
}
