#include "driver.h"

#include <dlfcn.h>
#include <string.h>

#define SONAME "libcuda.so.1"
#define NEWEST_VERSION 13000 /* what we ask cuGetProcAddress for: functions as that release has them */

static void *library;
static void *(*by_address)(const char *name);

bool driver_open(int flags)
{
    library = dlopen(SONAME, RTLD_NOW | flags);
    by_address = NULL;
    return library != NULL;
}

bool driver_open_again(void)
{
#ifdef VERIFY_STATIC
    return false; /* a static program has one namespace */
#else
    library = dlmopen(LM_ID_NEWLM, SONAME, RTLD_NOW);
    by_address = NULL;
    return library != NULL;
#endif
}

static void *through_address(const char *name)
{
    typedef int get(const char *, void **, int, uint64_t, int *);
    char base[64];
    void *found = NULL;
    get *address = (get *)dlsym(library, "cuGetProcAddress_v2");
    size_t length = strcspn(name, "_");
    if (address == NULL || length >= sizeof base)
        return NULL;
    memcpy(base, name, length);
    base[length] = '\0';
    return address(base, &found, NEWEST_VERSION, 0, NULL) == 0 ? found : NULL;
}

bool driver_by_address(void)
{
    by_address = through_address;
    return through_address("cuInit") != NULL;
}

void *driver_function(const char *name)
{
    if (library == NULL)
        return NULL;
    return by_address != NULL ? by_address(name) : dlsym(library, name);
}

void *driver_nvml(void)
{
    return dlopen("libnvidia-ml.so.1", RTLD_NOW);
}

int driver_begin(int device)
{
    void *context = NULL;
    int result = CALL("cuInit", (unsigned), 0);
    if (result == 0)
        result = CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device);
    return result == 0 ? CALL("cuCtxSetCurrent", (void *), context) : result;
}

const char *driver_says(int result)
{
    const char *text = NULL;
    if (result == NO_FUNCTION)
        return "no such function";
    return CALL("cuGetErrorString", (int, const char **), result, &text) == 0 && text != NULL ? text : "";
}
