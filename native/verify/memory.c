/* Allocation in every direct form: fill the device, one byte over the limit first. */
#include <string.h>

#include "attempt.h"
#include "driver.h"

enum { HOST_UNTOUCHED = 0x77 };

struct finding judged(uint64_t granted, uint64_t limit, int result)
{
    enum outcome outcome = granted > limit ? HOLE : HELD;
    return (struct finding){.outcome = outcome, .granted = granted, .limit = limit, .result = result};
}

struct finding with_note(struct finding finding, enum outcome outcome, const char *note)
{
    finding.outcome = outcome;
    strncpy(finding.note, note, sizeof finding.note - 1);
    return finding;
}

uint64_t fill(allocate *one, unsigned device, int *result)
{
    uint64_t granted = 0, chunk = share.limit[device] + 1;
    unsigned refusals = 0;
    /* The smallest step: what is left then is no hole, and a card has no more than this many of them. */
    while (chunk >= MIB && granted <= 4 * share.limit[device] && refusals < 64) {
        int answer = one(chunk, &granted);
        if (answer == 0)
            continue;
        *result = answer;
        refusals++;
        if (answer != CUDA_OUT_OF_MEMORY)
            break; /* it is not given at all: smaller ones are not either */
        chunk = chunk > share.limit[device] ? share.limit[device] / 4 : chunk / 2;
    }
    return granted;
}

static int one_direct(uint64_t bytes, uint64_t *granted)
{
    device_pointer pointer = HOST_UNTOUCHED;
    int result = CALL("cuMemAlloc_v2", (device_pointer *, size_t), &pointer, bytes);
    *granted += result == 0 ? bytes : 0;
    return result;
}

uint64_t allocate_directly(unsigned device, int *result)
{
    return fill(one_direct, device, result);
}

static struct finding filled(allocate *one)
{
    int result = driver_begin(0);
    if (result != 0)
        return judged(0, share.limit[0], result);
    uint64_t granted = fill(one, 0, &result);
    return judged(granted, share.limit[0], result);
}

struct finding fill_directly(void)
{
    return filled(one_direct);
}

struct finding try_direct(void)
{
    device_pointer pointer = HOST_UNTOUCHED;
    int result = driver_begin(0);
    if (result != 0)
        return with_note(judged(0, share.limit[0], result), BROKEN, driver_says(result));
    int over = CALL("cuMemAlloc_v2", (device_pointer *, size_t), &pointer, share.limit[0] + 1);
    struct finding finding = fill_directly();
    if (finding.outcome != HELD)
        return finding;
    if (over != CUDA_OUT_OF_MEMORY || pointer != HOST_UNTOUCHED)
        return with_note(finding, BROKEN, "past the limit is not out-of-memory with the pointer untouched");
    if (finding.granted == 0)
        return with_note(finding, BROKEN, "nothing was granted, so nothing is proved");
    return finding;
}

static int one_legacy(uint64_t bytes, uint64_t *granted)
{
    unsigned pointer = HOST_UNTOUCHED, size = bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
    int result = CALL("cuMemAlloc", (unsigned *, unsigned), &pointer, size);
    *granted += result == 0 ? size : 0;
    return result;
}

struct finding try_legacy(void)
{
    return filled(one_legacy);
}

static int one_pitch(uint64_t bytes, uint64_t *granted)
{
    device_pointer pointer = HOST_UNTOUCHED;
    size_t pitch = 0, width = 1000, height = bytes / 1024 + 1;
    int result = CALL("cuMemAllocPitch_v2", (device_pointer *, size_t *, size_t, size_t, unsigned), &pointer, &pitch,
                      width, height, 4);
    *granted += result == 0 ? pitch * height : 0;
    return result;
}

struct finding try_pitch(void)
{
    return filled(one_pitch);
}

static int one_managed(uint64_t bytes, uint64_t *granted)
{
    device_pointer pointer = HOST_UNTOUCHED;
    int result = CALL("cuMemAllocManaged", (device_pointer *, size_t, unsigned), &pointer, bytes, 1);
    *granted += result == 0 ? bytes : 0;
    return result;
}

struct finding try_managed(void)
{
    return filled(one_managed);
}

enum { FORMAT_FLOAT = 0x20, SIDE = 4096 };

static int one_array(uint64_t bytes, uint64_t *granted)
{
    struct {
        size_t width, height;
        int format;
        unsigned channels;
    } shape = {SIDE, bytes / (SIDE * 16) + 1, FORMAT_FLOAT, 4};
    void *array = NULL;
    if (shape.height > 32768)
        shape.height = 32768;
    int result = CALL("cuArrayCreate_v2", (void **, const void *), &array, &shape);
    *granted += result == 0 ? shape.width * shape.height * 16 : 0;
    return result;
}

struct finding try_array(void)
{
    return filled(one_array);
}

struct shape_3d {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

static struct shape_3d shape_of(uint64_t bytes)
{
    struct shape_3d shape = {1024, 1024, bytes / (1024 * 1024 * 16) + 1, FORMAT_FLOAT, 4, 0};
    if (shape.depth > 1024)
        shape.depth = 1024;
    return shape;
}

static int one_array_3d(uint64_t bytes, uint64_t *granted)
{
    struct shape_3d shape = shape_of(bytes);
    void *array = NULL;
    int result = CALL("cuArray3DCreate_v2", (void **, const void *), &array, &shape);
    *granted += result == 0 ? shape.width * shape.height * shape.depth * 16 : 0;
    return result;
}

struct finding try_array_3d(void)
{
    return filled(one_array_3d);
}

static int one_mipmap(uint64_t bytes, uint64_t *granted)
{
    struct shape_3d shape = shape_of(bytes);
    void *array = NULL;
    int result = CALL("cuMipmappedArrayCreate", (void **, const void *, unsigned), &array, &shape, 2);
    *granted += result == 0 ? shape.width * shape.height * shape.depth * 16 : 0;
    return result;
}

struct finding try_mipmap(void)
{
    return filled(one_mipmap);
}

static int one_async(uint64_t bytes, uint64_t *granted)
{
    device_pointer pointer = HOST_UNTOUCHED;
    int result = CALL("cuMemAllocAsync", (device_pointer *, size_t, void *), &pointer, bytes, NULL);
    *granted += result == 0 ? bytes : 0;
    return result;
}

struct finding try_async(void)
{
    return filled(one_async);
}

static int one_async_thread(uint64_t bytes, uint64_t *granted)
{
    device_pointer pointer = HOST_UNTOUCHED;
    int result = CALL("cuMemAllocAsync_ptsz", (device_pointer *, size_t, void *), &pointer, bytes, NULL);
    *granted += result == 0 ? bytes : 0;
    return result;
}

struct finding try_async_thread(void)
{
    return filled(one_async_thread);
}
