/* Where the devices lie, and which there are. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* `softgpu/` beside the file that the library was loaded as. The name is not resolved: a share's
 * folder has symlinks to the library, and its own devices beside them. A library with such a folder
 * is bound to it; there, no variable of the environment shows more devices. */
static bool beside_library(const void *anchor, char *folder, size_t size) {
    Dl_info info;
    if (dladdr(anchor, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash == NULL)
        return false;
    int length = snprintf(folder, size, "%.*s/softgpu", (int)(slash - info.dli_fname), info.dli_fname);
    return length > 0 && (size_t)length < size && is_folder(folder);
}

static bool users_state(char *folder, size_t size) {
    const char *override = getenv("ALIQUOT_STATE_DIR");
    const char *state_home = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int length;
    if (override != NULL && *override != '\0')
        length = snprintf(folder, size, "%s/softgpu", override);
    else if (geteuid() == 0)
        length = snprintf(folder, size, "/var/lib/aliquot/softgpu");
    else if (state_home != NULL && *state_home == '/')
        length = snprintf(folder, size, "%s/aliquot/softgpu", state_home);
    else if (home != NULL && *home != '\0')
        length = snprintf(folder, size, "%s/.local/state/aliquot/softgpu", home);
    else
        return false;
    return length > 0 && (size_t)length < size && is_folder(folder);
}

int sg_inventory_folder(const void *anchor, char *folder, size_t size) {
    return beside_library(anchor, folder, size) || users_state(folder, size) ? 0 : -ENOENT;
}

static int read_facts(const char *folder, sg_facts *facts) {
    char path[4200], text[8192];
    snprintf(path, sizeof path, "%s/device", folder);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    ssize_t length = read(file, text, sizeof text);
    int error = length < 0 ? -errno : 0;
    close(file);
    return error != 0 ? error : sg_facts_parse(text, (size_t)length, facts);
}

static uint64_t bus_order(const sg_facts *facts) {
    return (uint64_t)facts->pci_domain << 32 | facts->pci_bus << 8 | facts->pci_device;
}

static int by_bus(const void *a, const void *b) {
    const sg_facts *left = &((const sg_device *)a)->facts, *right = &((const sg_device *)b)->facts;
    uint64_t x = bus_order(left), y = bus_order(right);
    if (x != y)
        return x < y ? -1 : 1;
    return strcmp(left->uuid, right->uuid);
}

/* The mutexes are not made: those of many devices are when all are in their place. */
static int read_device(const char *folder, sg_device *device) {
    memset(device, 0, sizeof *device);
    int length = snprintf(device->folder, sizeof device->folder, "%s", folder);
    if (length < 0 || (size_t)length >= sizeof device->folder)
        return -ENAMETOOLONG;
    device->state_file = device->arena_file = SG_NO_FILE;
    device->slot = SG_NO_SLOT;
    return read_facts(device->folder, &device->facts);
}

int sg_device_read(const char *folder, sg_device *device) {
    int error = read_device(folder, device);
    sg_mutexes_reset(device);
    return error;
}

int sg_inventory_read(const char *folder, sg_device *devices, int capacity) {
    int count = 0;
    struct dirent *entry;
    DIR *stream = opendir(folder);
    if (stream == NULL)
        return 0;
    while (count < capacity && (entry = readdir(stream)) != NULL) {
        char path[sizeof devices->folder];
        if (entry->d_name[0] == '.')
            continue;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length >= 0 && (size_t)length < sizeof path && read_device(path, &devices[count]) == 0)
            count++;
    }
    closedir(stream);
    qsort(devices, (size_t)count, sizeof *devices, by_bus);
    for (int i = 0; i < count; i++)
        sg_mutexes_reset(&devices[i]);
    return count;
}
