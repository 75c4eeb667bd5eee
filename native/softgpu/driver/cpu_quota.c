/* CPU limits of control groups, version 1, 2, or both at once: the least of this process's own group and
 * of all above it. A container without a namespace for control groups sees its group's full path while only
 * the part below the mount's root is there, so paths are taken relative to that root. */
#include "cpu_quota.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION_1 = 1, VERSION_2 = 2 };

static FILE *open_below(const char *root, const char *path, const char *name) {
    char full[PATH_MAX + 64];
    int length = snprintf(full, sizeof full, "%s%s%s%s", root, path, *name ? "/" : "", name);
    return length > 0 && (size_t)length < sizeof full ? fopen(full, "re") : NULL;
}

static unsigned whole(long long quota, long long period) {
    return quota > 0 && period > 0 ? (unsigned)((quota + period - 1) / period) : 0;
}

static long long number_in(const char *root, const char *path, const char *name) {
    long long value = 0;
    FILE *file = open_below(root, path, name);
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld", &value) != 1)
        value = 0;
    fclose(file);
    return value;
}

/* cpu.max is "max 100000", or quota and period in microseconds; version 1 has a file for each. */
static unsigned limit_of(const char *root, const char *path, int version) {
    long long quota = 0, period = 0;
    if (version == VERSION_1)
        return whole(number_in(root, path, "cpu.cfs_quota_us"), number_in(root, path, "cpu.cfs_period_us"));
    FILE *file = open_below(root, path, "cpu.max");
    if (file == NULL)
        return 0;
    int read = fscanf(file, "%lld %lld", &quota, &period);
    fclose(file);
    return read == 2 ? whole(quota, period) : 0;
}

static unsigned least(unsigned a, unsigned b) { return a == 0 || (b != 0 && b < a) ? b : a; }

/* Whether `word` is one of the words that commas separate. */
static int lists(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

/* The path of this process's group in the hierarchy; "N:controllers:path", version 2 with no controllers. */
static int find_group(const char *root, int version, char path[PATH_MAX]) {
    char line[PATH_MAX + 256];
    int found = 0;
    FILE *file = open_below(root, "/proc/self/cgroup", "");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':'), *at = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (at == NULL)
            continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        found = version == VERSION_2 ? strncmp(line, "0:", 2) == 0 && controllers[1] == '\0' : lists(controllers + 1, "cpu");
        if (found)
            snprintf(path, PATH_MAX, "%s", at);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Up from the group to the mount. */
static unsigned least_above(const char *root, const char *mount, const char *below, int version) {
    char path[2 * PATH_MAX];
    unsigned limit = 0;
    snprintf(path, sizeof path, "%s%s", mount, strcmp(below, "/") == 0 ? "" : below);
    for (size_t end = strlen(path); end >= strlen(mount); end--)
        if (path[end] == '/' || path[end] == '\0') {
            path[end] = '\0';
            limit = least(limit, limit_of(root, path, version));
        }
    return limit;
}

/* The part of the group's path below the root of the mount; all of the mount where it lies elsewhere. */
static const char *relative(const char *path, const char *mount_root) {
    size_t length = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    if (strncmp(path, mount_root, length) != 0 || strstr(path, "/..") != NULL)
        return "";
    return path[length] == '/' || path[length] == '\0' ? path + length : "";
}

/* "id parent major:minor root mount options ... - type source super-options". */
static unsigned limit_of_mount(const char *root, char *line) {
    char mount_root[PATH_MAX], mount[PATH_MAX], type[32], options[1024], path[PATH_MAX];
    const char *rest = strstr(line, " - ");
    if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", mount_root, mount) != 2 ||
        sscanf(rest, " - %31s %*s %1023s", type, options) != 2)
        return 0;
    int version = strcmp(type, "cgroup2") == 0 ? VERSION_2
                  : strcmp(type, "cgroup") == 0 && lists(options, "cpu") ? VERSION_1 : 0;
    if (version == 0 || !find_group(root, version, path))
        return 0;
    return least_above(root, mount, relative(path, mount_root), version);
}

unsigned sg_cpu_quota(const char *root) {
    char line[3 * PATH_MAX];
    unsigned limit = 0;
    FILE *file = open_below(root, "/proc/self/mountinfo", "");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        limit = least(limit, limit_of_mount(root, line));
    if (file != NULL)
        fclose(file);
    return limit;
}
