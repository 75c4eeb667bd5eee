/* Where the control groups of this process are.
 *
 * /proc/self/cgroup names the group in each hierarchy, and /proc/self/mountinfo where a hierarchy is mounted and
 * which of its groups is at the mount: version 2 alone lies at /sys/fs/cgroup, beside version 1 often at
 * /sys/fs/cgroup/unified, and a container without a namespace for control groups sees its group's full path
 * while only the part below the mount's root is there. Nothing is assumed of any of it. */
#include "control_groups.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

typedef struct {
    const char *root, *controller;
    sg_control_group_visit visit;
    void *of;
} walk;

/* Whether `word` is one of the words that commas separate. */
static bool lists(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static FILE *open_below(const char *root, const char *path) {
    char full[PATH_MAX];
    int length = snprintf(full, sizeof full, "%s%s", root, path);
    return length > 0 && (size_t)length < sizeof full ? fopen(full, "re") : NULL;
}

/* "N:controllers:path"; version 2 has the number 0 and no controllers. The path of ours, or NULL. */
static const char *path_in(char *line, const char *controller, int version) {
    char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL || path[1] != '/')
        return NULL;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    bool ours = version == 2 ? strncmp(line, "0:", 2) == 0 && controllers[1] == '\0'
                             : lists(controllers + 1, controller);
    return ours ? path : NULL;
}

/* malloc'd; NULL where the process is in no such hierarchy. */
static char *group_of(const walk *w, int version) {
    char *line = NULL, *found = NULL;
    const char *path;
    size_t room = 0;
    FILE *file = open_below(w->root, "/proc/self/cgroup");
    while (file != NULL && found == NULL && getline(&line, &room, file) > 0)
        if ((path = path_in(line, w->controller, version)) != NULL)
            found = strdup(path);
    free(line);
    if (file != NULL)
        fclose(file);
    return found;
}

/* In place: mountinfo writes a space, a tab, a line's end and a backslash as \ and three octal digits. */
static void decode(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; to++) {
        bool escaped = from[0] == '\\' && strspn(from + 1, "01234567") >= 3;
        *to = escaped ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0')) : *from;
        from += escaped ? 4 : 1;
    }
    *to = '\0';
}

/* The part of the group's path below the root of the mount; none of it where it lies elsewhere, or where a
 * namespace shows it from below ("/.."). */
static const char *relative(const char *path, const char *mount_root) {
    size_t length = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    if (strncmp(path, mount_root, length) != 0 || strstr(path, "/..") != NULL || strcmp(path, "/") == 0)
        return "";
    return path[length] == '/' || path[length] == '\0' ? path + length : "";
}

/* Up from the group to the mount, which is the first `mount_length` characters. */
static void go_up(const walk *w, int version, char *folder, size_t mount_length) {
    for (size_t end = strlen(folder); end >= mount_length; end--)
        if (end == mount_length || folder[end] == '/' || folder[end] == '\0') {
            folder[end] = '\0';
            w->visit(&(sg_control_group){version, folder}, w->of);
        }
}

static void visit_mount(const walk *w, int version, const char *mount_root, const char *mount) {
    char *path = group_of(w, version);
    size_t length = strlen(w->root) + strlen(mount);
    char *folder = path != NULL ? malloc(length + strlen(path) + 1) : NULL;
    if (folder != NULL) {
        sprintf(folder, "%s%s%s", w->root, mount, relative(path, mount_root));
        go_up(w, version, folder, length);
    }
    free(folder);
    free(path);
}

/* The next word of a line, ended; NULL at its end. */
static char *word(char **rest) {
    return strtok_r(NULL, " \n", rest);
}

/* "id parent major:minor root mount options ... - type source super-options". */
static void read_mount(const walk *w, char *line) {
    char *rest = NULL, *mark = strstr(line, " - "), *type, *options;
    if (mark == NULL || (type = strtok_r(mark + 3, " \n", &rest)) == NULL || word(&rest) == NULL)
        return;
    options = word(&rest);
    int version = strcmp(type, "cgroup2") == 0 ? 2
                  : strcmp(type, "cgroup") == 0 && options != NULL && lists(options, w->controller) ? 1 : 0;
    *mark = '\0';
    if (version == 0 || strtok_r(line, " ", &rest) == NULL || word(&rest) == NULL || word(&rest) == NULL)
        return;
    char *mount_root = word(&rest), *mount = word(&rest);
    if (mount == NULL || *mount_root != '/' || *mount != '/')
        return;
    decode(mount_root);
    decode(mount);
    visit_mount(w, version, mount_root, mount);
}

void sg_control_groups_above(const char *root, const char *controller, sg_control_group_visit visit, void *of) {
    const walk w = {root, controller, visit, of};
    char *line = NULL;
    size_t room = 0;
    FILE *file = open_below(root, "/proc/self/mountinfo");
    while (file != NULL && getline(&line, &room, file) > 0)
        read_mount(&w, line);
    free(line);
    if (file != NULL)
        fclose(file);
}

int sg_control_group_numbers(const sg_control_group *group, const char *file, const char *key, uint64_t *numbers,
                             int room) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", group->folder, file);
    return length > 0 && (size_t)length < sizeof path ? sg_file_numbers(path, key, numbers, room) : 0;
}
