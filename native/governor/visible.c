#include "visible.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "share.h"

/* Leading digits count, whatever follows them: that is how drivers read it. */
static int by_position(const char *entry, size_t length)
{
    unsigned position = 0;
    size_t digits = 0;
    while (digits < length && entry[digits] >= '0' && entry[digits] <= '9') {
        position = position * 10 + (unsigned)(entry[digits++] - '0');
        if (position >= share.devices)
            return -1;
    }
    return digits > 0 ? (int)position : -1;
}

/* A prefix names a device where it fits exactly one. */
static int by_uuid(const char *entry, size_t length)
{
    int found = -1;
    if (length <= strlen("GPU-"))
        return -1;
    for (unsigned device = 0; device < share.devices; device++)
        if (strncasecmp(share.uuid[device], entry, length) == 0) {
            if (found >= 0)
                return -1;
            found = (int)device;
        }
    return found;
}

static char *append(char *end, const char *text)
{
    size_t length = strlen(text);
    memcpy(end, text, length + 1);
    return end + length;
}

void visible_devices(char out[VISIBLE_BYTES], const char *asked)
{
    bool taken[ALIQUOT_DEVICES_MAX] = {false};
    char *end = append(out, "CUDA_VISIBLE_DEVICES=");
    for (unsigned device = 0; asked == NULL && device < share.devices; device++) {
        end = append(end, device > 0 ? "," : "");
        end = append(end, share.uuid[device]);
    }
    char *const list = end;
    while (asked != NULL) {
        asked += strspn(asked, " \t");
        size_t length = strcspn(asked, ", \t");
        int device = by_position(asked, length);
        if (device < 0)
            device = by_uuid(asked, length);
        if (device < 0)
            return;
        if (taken[device]) {
            *list = '\0';
            return;
        }
        taken[device] = true;
        end = append(append(end, end == list ? "" : ","), share.uuid[device]);
        asked = strchr(asked, ',');
        asked = asked != NULL ? asked + 1 : NULL;
    }
}
