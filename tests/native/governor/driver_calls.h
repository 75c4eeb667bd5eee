/* A driver's library opened by its path, and calls that must succeed. */
#ifndef DRIVER_CALLS_H
#define DRIVER_CALLS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *opened(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(69);
    }
    return library;
}

static inline void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(70);
    }
    return found;
}

static inline void must(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(71);
    }
}

#endif
