/* How much memory the machine has for software GPUs: by what the kernel says is available, and by the limits
 * of the control groups that this process is in (version 1 and 2, each group up to the root).
 *
 * A test compiles this file with another SG_SYSTEM_ROOT. */
#include "machine_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SG_SYSTEM_ROOT
#define SG_SYSTEM_ROOT ""
#endif

enum { RESERVE_FRACTION = 16 }; /* of a control group's limit stays free in any case */

/* The number behind `key` in a file of "key number" lines; the whole file's where `key` is NULL. */
static bool read_number(const char *path, const char *key, uint64_t *number) {
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t length = key != NULL ? strlen(key) : 0;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        char *end;
        if (key != NULL && (strncmp(line, key, length) != 0 || (line[length] != ' ' && line[length] != ':')))
            continue;
        const char *digits = line + length + strspn(line + length, ": \t");
        *number = strtoull(digits, &end, 10); /* "max", version 2's word for no limit, is no number */
        found = end != digits;
        if (key == NULL)
            break;
    }
    fclose(file);
    return found;
}

typedef struct {
    const char *mount, *limit, *usage;
    const char *files[2]; /* keys of memory.stat: page cache that can be dropped */
} hierarchy;

static const hierarchy version_1 = {SG_SYSTEM_ROOT "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                    "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
static const hierarchy version_2 = {SG_SYSTEM_ROOT "/sys/fs/cgroup", "memory.max", "memory.current",
                                    {"inactive_file", "active_file"}};

static bool number_of(const hierarchy *h, const char *group, const char *name, const char *key, uint64_t *number) {
    char path[1024];
    int length = snprintf(path, sizeof path, "%s%s/%s", h->mount, group, name);
    return length > 0 && (size_t)length < sizeof path && read_number(path, key, number);
}

/* One group's limit, against what it uses for other things than files. */
static void narrow(const hierarchy *h, const char *group, sg_machine_memory *memory) {
    uint64_t limit, usage, cache = 0, part;
    if (!number_of(h, group, h->limit, NULL, &limit) || limit >= memory->total)
        return;
    for (int i = 0; i < 2; i++)
        if (number_of(h, group, "memory.stat", h->files[i], &part))
            cache += part;
    if (limit < memory->limit)
        memory->limit = limit;
    if (!number_of(h, group, h->usage, NULL, &usage))
        return;
    uint64_t used = usage > cache ? usage - cache : 0;
    if (limit / RESERVE_FRACTION + used >= limit)
        memory->exhausted = true;
}

/* In a container the path of a group may not be there below the mount: the group then is the mount itself. */
static void narrow_upwards(const hierarchy *h, char *group, sg_machine_memory *memory) {
    for (;;) {
        char *slash = strrchr(group, '/');
        narrow(h, group, memory);
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

static void read_groups(sg_machine_memory *memory) {
    char line[900];
    FILE *file = fopen(SG_SYSTEM_ROOT "/proc/self/cgroup", "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        controllers++;
        if (strcmp(controllers, "memory") == 0)
            narrow_upwards(&version_1, group, memory);
        else if (*controllers == '\0')
            narrow_upwards(&version_2, group, memory);
    }
    fclose(file);
}

bool sg_machine_memory_read(sg_machine_memory *memory) {
    uint64_t total, available;
    if (!read_number(SG_SYSTEM_ROOT "/proc/meminfo", "MemTotal", &total) ||
        !read_number(SG_SYSTEM_ROOT "/proc/meminfo", "MemAvailable", &available))
        return false;
    *memory = (sg_machine_memory){.total = total * 1024, .available = available * 1024, .limit = UINT64_MAX};
    read_groups(memory);
    return true;
}
