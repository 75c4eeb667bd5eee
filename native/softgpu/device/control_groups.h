/* The control groups that this process is in, and what they say: version 1, 2, or both at once. */
#ifndef SG_CONTROL_GROUPS_H
#define SG_CONTROL_GROUPS_H

#include <stdint.h>

typedef struct {
    int version; /* 1 or 2: their files have other names */
    const char *folder;
} sg_control_group;

typedef void (*sg_control_group_visit)(const sg_control_group *group, void *of);

/* This process's own group and all above it, as far as they can be seen, in each hierarchy that may have the
 * controller. `root` comes before every path: empty, or a folder that looks like / in a test. */
void sg_control_groups_above(const char *root, const char *controller, sg_control_group_visit visit, void *of);

/* The numbers that a group's file begins with, or that follow `key` where the file has a line for each key; how
 * many there are, at most `room`. "max" and "-1", which mean no limit, are no numbers. */
int sg_control_group_numbers(const sg_control_group *group, const char *file, const char *key, uint64_t *numbers,
                             int room);

#endif
