/* The device's log: what a program asked for and this software GPU does not do, by name. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"

#define LOG_LIMIT (1 << 20)

/* Two processes may both find the line missing and both write it; a lock is not worth that. */
static bool has_line(int file, const char *line) {
    struct stat about;
    bool found = false;
    if (fstat(file, &about) != 0 || about.st_size == 0)
        return false;
    if (about.st_size > LOG_LIMIT)
        return true; /* full: say no more */
    char *text = malloc((size_t)about.st_size + 2);
    if (text == NULL)
        return true;
    text[0] = '\n';
    ssize_t size = pread(file, text + 1, (size_t)about.st_size, 0);
    text[size < 0 ? 1 : size + 1] = '\0';
    for (char *at = text; !found && (at = strstr(at, line)) != NULL; at++)
        found = at[-1] == '\n';
    free(text);
    return found;
}

void sg_log_once(const sg_device *device, const char *kind, const char *name) {
    char path[4200], line[512];
    snprintf(path, sizeof path, "%s/log", device->folder);
    snprintf(line, sizeof line - 1, "%s %s", kind, name);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    size_t length = strlen(line);
    line[length++] = '\n';
    line[length] = '\0';
    int file = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return; /* a log that cannot be written changes nothing for the program */
    if (!has_line(file, line))
        (void)!write(file, line, length);
    close(file);
}
