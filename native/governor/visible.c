#include "visible.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "share.h"

static int by_position(const char *entry, size_t length)
{
    unsigned position = 0;
    for (size_t at = 0; at < length; at++) {
        if (entry[at] < '0' || entry[at] > '9' || position > ALIQUOT_DEVICES_MAX)
            return -1;
        position = position * 10 + (unsigned)(entry[at] - '0');
    }
    return length > 0 && position < share.devices ? (int)position : -1;
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
    for (bool first = true; asked != NULL; first = false) {
        asked += strspn(asked, " \t");
        size_t length = strcspn(asked, ","), trimmed = length;
        while (trimmed > 0 && (asked[trimmed - 1] == ' ' || asked[trimmed - 1] == '\t'))
            trimmed--;
        int device = by_position(asked, trimmed);
        if (device < 0)
            device = by_uuid(asked, trimmed);
        if (device < 0 || taken[device])
            return;
        taken[device] = true;
        end = append(append(end, first ? "" : ","), share.uuid[device]);
        asked = asked[length] == ',' ? asked + length + 1 : NULL;
    }
}
