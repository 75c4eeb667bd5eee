/* A tenant's program: what it finds under the driver's usual names, one fact a line.
 *
 *   tenant nvml      devices, their UUIDs and memory
 *   tenant cuda      memory of the first device, an allocation within it, one past it, and a copy
 *   tenant serve     answers each line of stdin: `total`; `take BYTES`; `launch`, once the kernel has ended
 *
 * Without CUDA's headers: the few functions are declared here, and found as every CUDA program
 * finds them, by dlopen of the soname. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library(const char *soname)
{
    void *handle = dlopen(soname, RTLD_NOW);
    if (handle == NULL) {
        printf("%s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void *function(void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    if (found == NULL) {
        printf("no %s\n", name);
        exit(2);
    }
    return found;
}

static int look_nvml(void)
{
    void *nvml = library("libnvidia-ml.so.1");
    int (*init)(void) = function(nvml, "nvmlInit_v2");
    int (*count)(unsigned *) = function(nvml, "nvmlDeviceGetCount_v2");
    int (*device)(unsigned, void **) = function(nvml, "nvmlDeviceGetHandleByIndex_v2");
    int (*uuid)(void *, char *, unsigned) = function(nvml, "nvmlDeviceGetUUID");
    int (*memory)(void *, uint64_t[3]) = function(nvml, "nvmlDeviceGetMemoryInfo");
    const char *(*error)(int) = function(nvml, "nvmlErrorString");
    unsigned devices = 0;
    int status = init();
    if (status == 0)
        status = count(&devices);
    if (status != 0) {
        printf("nvml %s\n", error(status));
        return 1;
    }
    printf("devices %u\n", devices);
    for (unsigned index = 0; index < devices; index++) {
        void *handle;
        char name[96];
        uint64_t info[3];
        if (device(index, &handle) != 0 || uuid(handle, name, sizeof name) != 0 || memory(handle, info) != 0)
            return 1;
        printf("uuid %s\ntotal %llu\n", name, (unsigned long long)info[0]);
    }
    return 0;
}

static void *cuda;
static int (*error_name)(int, const char **);

static int said(const char *what, int status)
{
    const char *name = "?";
    error_name(status, &name);
    printf("%s %s\n", what, name);
    return status;
}

static int look_cuda(void)
{
    cuda = library("libcuda.so.1");
    error_name = function(cuda, "cuGetErrorName");
    int (*error_string)(int, const char **) = function(cuda, "cuGetErrorString");
    int (*init)(unsigned) = function(cuda, "cuInit");
    int (*count)(int *) = function(cuda, "cuDeviceGetCount");
    int (*device)(int *, int) = function(cuda, "cuDeviceGet");
    int (*retain)(void **, int) = function(cuda, "cuDevicePrimaryCtxRetain");
    int (*current)(void *) = function(cuda, "cuCtxSetCurrent");
    int (*memory)(size_t *, size_t *) = function(cuda, "cuMemGetInfo_v2");
    int (*allocate)(uint64_t *, size_t) = function(cuda, "cuMemAlloc_v2");
    int (*put)(uint64_t, const void *, size_t) = function(cuda, "cuMemcpyHtoD_v2");
    int (*get)(void *, uint64_t, size_t) = function(cuda, "cuMemcpyDtoH_v2");
    int status = init(0), devices = 0, first = 0;
    if (status != 0) {
        const char *text = "?";
        error_string(status, &text);
        said("init", status);
        printf("%s\n", text);
        return 1;
    }
    void *context = NULL;
    size_t free_bytes = 0, total = 0;
    if (said("count", count(&devices)) || said("device", device(&first, 0)) || said("context", retain(&context, first)) ||
        said("current", current(context)) || said("memory", memory(&free_bytes, &total)))
        return 1;
    printf("devices %d\ntotal %zu\n", devices, total);
    uint64_t place = 0, past = 0;
    said("past", allocate(&past, free_bytes + (1 << 20)));
    if (said("within", allocate(&place, 1 << 20)))
        return 1;
    char sent[] = "through the device", got[sizeof sent] = "";
    if (said("put", put(place, sent, sizeof sent)) || said("get", get(got, place, sizeof got)))
        return 1;
    printf("%s\n", got);
    return 0;
}

static const char EMPTY[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";

static int launch(void)
{
    int (*load)(void **, const void *) = function(cuda, "cuModuleLoadData");
    int (*find)(void **, void *, const char *) = function(cuda, "cuModuleGetFunction");
    int (*start)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                 void **) = function(cuda, "cuLaunchKernel");
    int (*wait)(void) = function(cuda, "cuCtxSynchronize");
    static void *kernel;
    void *module;
    int status = 0;
    if (kernel == NULL && (status = load(&module, EMPTY)) == 0)
        status = find(&kernel, module, "empty");
    if (status == 0 && (status = start(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)) == 0)
        status = wait();
    return status;
}

static int serve(void)
{
    cuda = library("libcuda.so.1");
    int (*init)(unsigned) = function(cuda, "cuInit");
    int (*retain)(void **, int) = function(cuda, "cuDevicePrimaryCtxRetain");
    int (*current)(void *) = function(cuda, "cuCtxSetCurrent");
    int (*memory)(size_t *, size_t *) = function(cuda, "cuMemGetInfo_v2");
    int (*allocate)(uint64_t *, size_t) = function(cuda, "cuMemAlloc_v2");
    void *context = NULL;
    if (init(0) != 0 || retain(&context, 0) != 0 || current(context) != 0)
        return 1;
    char line[64];
    size_t free_bytes, total;
    uint64_t place;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strncmp(line, "take ", 5) == 0)
            printf("%d\n", allocate(&place, strtoull(line + 5, NULL, 10)));
        else if (strncmp(line, "launch", 6) == 0)
            printf("%d\n", launch());
        else
            printf("%zu\n", memory(&free_bytes, &total) == 0 ? total : 0);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    return argc == 2 && strcmp(argv[1], "nvml") == 0 ? look_nvml() : look_cuda();
}
