/* Preloaded: the n-th system call (FAIL_AT) that the governor makes through libc fails with
 * FAIL_WITH. Calls of anybody else are let through. Prints nothing; after the n-th was reached,
 * failing_calls_reached() is 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

static int calls, reached;

int failing_calls_reached(void) { return reached; }

static int fails(void *caller)
{
    Dl_info info;
    const char *at = getenv("FAIL_AT"), *share = getenv("SHARE");
    if (at == NULL || share == NULL || dladdr(caller, &info) == 0 || strstr(info.dli_fname, "/lib/lib") == NULL ||
        strncmp(info.dli_fname, share, strlen(share)) != 0 || ++calls != atoi(at))
        return 0;
    reached = 1;
    errno = atoi(getenv("FAIL_WITH"));
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CALLER __builtin_return_address(0)

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return fails(CALLER) ? -1 : REAL(open)(path, flags, mode);
}

int fcntl(int descriptor, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return fails(CALLER) ? -1 : REAL(fcntl)(descriptor, command, argument);
}

void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset)
{
    return fails(CALLER) ? MAP_FAILED : REAL(mmap)(address, size, protection, flags, descriptor, offset);
}

int fstat(int descriptor, struct stat *status) { return fails(CALLER) ? -1 : REAL(fstat)(descriptor, status); }
int stat(const char *path, struct stat *status) { return fails(CALLER) ? -1 : REAL(stat)(path, status); }
ssize_t read(int descriptor, void *out, size_t size)
{
    ssize_t (*real)(int, void *, size_t) = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    return fails(CALLER) ? -1 : real(descriptor, out, size);
}
