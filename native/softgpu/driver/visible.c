/* CUDA_VISIBLE_DEVICES as NVIDIA documents it: ordinals or `GPU-` UUID prefixes, comma-separated; the
 * list ends at the first entry that names no device (-1, an ordinal too large, an ambiguous prefix);
 * a device named twice makes the list empty. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "driver.h"

/* Like strtol, so `1gpu` is 1: that is how the driver reads it. -1: no number. */
static int read_ordinal(const char *entry, int count) {
    char *end;
    long number = strtol(entry, &end, 10);
    return end == entry || number < 0 || number >= count ? -1 : (int)number;
}

static int find_prefix(const char *entry, size_t length, const sg_device *devices, int count) {
    int found = -1;
    for (int i = 0; i < count; i++)
        if (strncasecmp(devices[i].facts.uuid, entry, length) == 0) {
            if (found >= 0)
                return -1; /* ambiguous */
            found = i;
        }
    return found;
}

int sg_visible_select(const char *value, const sg_device *devices, int count, int *chosen) {
    int selected = 0;
    while (value != NULL) {
        value += strspn(value, " \t");
        size_t length = strcspn(value, ", \t");
        int device = strncmp(value, "GPU-", 4) == 0 ? find_prefix(value, length, devices, count)
                                                    : read_ordinal(value, count);
        if (device < 0)
            break;
        for (int i = 0; i < selected; i++)
            if (chosen[i] == device)
                return 0;
        chosen[selected++] = device;
        value = strchr(value, ',');
        if (value != NULL)
            value++;
    }
    return selected;
}
