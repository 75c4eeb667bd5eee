/* The device's log: what a program asked for and this software GPU does not do, by name, once; and what
 * happened to programs, each time. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

static bool is_full(int file) {
    struct stat about;
    return fstat(file, &about) != 0 || about.st_size > LOG_LIMIT;
}

/* A log that cannot be written changes nothing for the program. */
static int open_log(const sg_device *device) {
    char path[4200];
    snprintf(path, sizeof path, "%s/log", device->folder);
    return open(path, O_RDWR | O_APPEND | O_CLOEXEC);
}

/* What programs say comes from programs: a line stays one line, and no terminal is steered by it. */
static size_t end_line(char *line) {
    size_t length = 0;
    for (; line[length]; length++)
        if ((unsigned char)line[length] < ' ' || line[length] == 0x7f)
            line[length] = ' ';
    line[length++] = '\n';
    line[length] = '\0';
    return length;
}

void sg_log_once(const sg_device *device, const char *kind, const char *name) {
    char line[512];
    int file = open_log(device);
    if (file < 0)
        return;
    snprintf(line, sizeof line - 1, "%s %s", kind, name);
    size_t length = end_line(line);
    if (!has_line(file, line))
        (void)!write(file, line, length);
    close(file);
}

void sg_log_event(const sg_device *device, const char *kind, const char *text) {
    char line[2048], when[32];
    struct tm utc;
    time_t now = time(NULL);
    int file = open_log(device);
    if (file < 0)
        return;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(line, sizeof line - 1, "%s %s %s", kind, when, text);
    size_t length = end_line(line);
    if (!is_full(file))
        (void)!write(file, line, length);
    close(file);
}
