/* How much memory the machine has for software GPUs: by what the kernel says is available, and by the limits
 * of the control groups that this process is in. */
#include "machine_memory.h"

#include <limits.h>
#include <stdio.h>

#include "control_groups.h"
#include "layout.h"

enum { RESERVE_FRACTION = 16 }; /* of a control group's limit stays free in any case */

typedef struct {
    const char *limit, *usage;
    const char *files[2]; /* keys of memory.stat: page cache that can be dropped */
} named;

static const named version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                {"total_inactive_file", "total_active_file"}};
static const named version_2 = {"memory.max", "memory.current", {"inactive_file", "active_file"}};

/* One group's limit, against what it uses for other things than files. */
static void narrow(const sg_control_group *group, void *of) {
    const named *names = group->version == 1 ? &version_1 : &version_2;
    sg_machine_memory *memory = of;
    uint64_t limit, usage, cache = 0, part;
    if (sg_control_group_numbers(group, names->limit, NULL, &limit, 1) == 0 || limit >= memory->total)
        return;
    for (int i = 0; i < 2; i++)
        if (sg_control_group_numbers(group, "memory.stat", names->files[i], &part, 1) == 1)
            cache += part;
    if (limit < memory->limit)
        memory->limit = limit;
    if (sg_control_group_numbers(group, names->usage, NULL, &usage, 1) == 0)
        return;
    uint64_t used = usage > cache ? usage - cache : 0;
    if (limit / RESERVE_FRACTION + used >= limit)
        memory->exhausted = true;
}

bool sg_machine_memory_read(const char *root, sg_machine_memory *memory) {
    char path[PATH_MAX];
    uint64_t total, available;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (sg_file_numbers(path, "MemTotal", &total, 1) == 0 || sg_file_numbers(path, "MemAvailable", &available, 1) == 0)
        return false;
    *memory = (sg_machine_memory){.total = total * 1024, .available = available * 1024, .limit = UINT64_MAX};
    sg_control_groups_above(root, "memory", narrow, memory);
    return true;
}
