/* The driver as a program of a tenant finds it: by its name, at run time. */
#ifndef VERIFY_DRIVER_H
#define VERIFY_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_SUPPORTED = 801,
    NO_FUNCTION = -1, /* of ours: the driver has no function of that name */
};

typedef unsigned long long device_pointer;

/* Open libcuda.so.1 with these flags of dlopen, on top of RTLD_NOW. False: none is found. */
bool driver_open(int flags);
/* The same through a link map of its own: a second copy of whatever answers to the name. */
bool driver_open_again(void);
/* Look functions up through cuGetProcAddress from now on, as CUDA's runtime does. */
bool driver_by_address(void);
void *driver_function(const char *name);
/* libnvidia-ml.so.1 beside it; NULL where there is none. */
void *driver_nvml(void);

/* cuInit, and the primary context of `device` made current. */
int driver_begin(int device);
/* The driver's words for a result; "" where it has none. */
const char *driver_says(int result);

/* Call by name: CALL("cuMemFree_v2", (device_pointer), pointer). NO_FUNCTION where it is not there. */
#define CALL(name, types, ...)                                                                     \
    (driver_function(name) != NULL ? ((int (*) types)driver_function(name))(__VA_ARGS__) : NO_FUNCTION)

#endif
