/* Who holds a lock. F_OFD_GETLK answers -1 for an OFD lock, and a word in the shared state could be
 * forged by any tenant; the kernel names the lock in the fdinfo of the descriptor that took it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"

/* "lock:	1: OFDLCK ADVISORY  WRITE -1 00:2f:1234 1099511627776 1099511627776" */
static bool names_lock(const char *path, const char *ending) {
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, "lock:", 5) == 0 && strstr(line, ending) != NULL;
    fclose(file);
    return found;
}

static bool holds(int32_t pid, const char *ending) {
    char folder[64], path[400];
    bool found = false;
    struct dirent *entry;
    snprintf(folder, sizeof folder, "/proc/%d/fdinfo", pid);
    DIR *stream = opendir(folder);
    if (stream == NULL) /* gone, or another user's */
        return false;
    while (!found && (entry = readdir(stream)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        found = names_lock(path, ending);
    }
    closedir(stream);
    return found;
}

int32_t sg_lock_holder(const sg_device *device, int which) {
    char ending[96];
    struct stat about;
    int32_t found = 0;
    long long byte = ((long long)1 << 40) + which;
    DIR *stream;
    struct dirent *entry;
    if (fstat(device->state_file.number, &about) != 0 || (stream = opendir("/proc")) == NULL)
        return 0;
    snprintf(ending, sizeof ending, ":%llu %lld %lld", (unsigned long long)about.st_ino, byte, byte);
    while (found == 0 && (entry = readdir(stream)) != NULL) {
        int32_t pid = (int32_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && holds(pid, ending))
            found = pid;
    }
    closedir(stream);
    return found;
}
