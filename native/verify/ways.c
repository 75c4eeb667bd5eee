/* Other ways to the driver, and to what the share is kept by. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attempt.h"
#include "driver.h"

/* In the environment that the attempt was started in; loading was done by main. */
struct finding try_environment(void)
{
    if (driver_function("cuInit") == NULL)
        return with_note(judged(0, share.limit[0], 0), HELD, "no driver is found");
    return fill_directly();
}

struct finding try_addresses(void)
{
    if (!driver_by_address())
        return with_note(judged(0, share.limit[0], 0), UNTRIED, "the driver has no cuGetProcAddress");
    return fill_directly();
}

struct finding try_deepbind(void)
{
    if (!driver_open(RTLD_DEEPBIND | RTLD_LOCAL))
        return with_note(judged(0, share.limit[0], 0), HELD, "no driver is found");
    return fill_directly();
}

/* What answers to the driver's name, loaded twice: each copy gives what it thinks is left. */
struct finding try_twice(void)
{
    struct finding first = fill_directly();
    if (first.outcome == HOLE || !driver_open_again())
        return first;
    struct finding second = fill_directly();
    return judged(first.granted + second.granted, first.limit, second.result);
}

/* ---- the file that says what the share may have ---- */

static bool limits_path(char path[PATH_MAX])
{
    Dl_info info;
    void *known = driver_function("cuInit");
    strcpy(path, "/run/aliquot/share/limits");
    if (access(path, F_OK) == 0)
        return true;
    if (known == NULL || dladdr(known, &info) == 0 || info.dli_fname == NULL || strlen(info.dli_fname) >= PATH_MAX - 8)
        return false;
    strcpy(path, info.dli_fname);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    strcat(path, "/limits");
    return access(path, F_OK) == 0;
}

/* Opened for writing and closed again; nothing is written. */
static bool opens(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0)
        close(file);
    return file >= 0;
}

struct finding try_limits_file(void)
{
    char path[PATH_MAX], note[256];
    struct stat status;
    struct finding finding = {.outcome = HELD};
    if (!limits_path(path) || stat(path, &status) != 0)
        return with_note(finding, UNTRIED, "no limits file is found from inside");
    bool writable = opens(path);
    if (!writable && chmod(path, 0666) == 0) {
        writable = opens(path);
        chmod(path, status.st_mode & 07777);
    }
    snprintf(note, sizeof note, "%.200s %s", path, writable ? "can be written by this program" : "cannot be written");
    return with_note(finding, writable ? HOLE : HELD, note);
}
