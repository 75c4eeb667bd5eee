/* The engine as a small library for tests: a device of one reserved range of addresses, in
 * which tests allocate, and a launch that fills in what the driver layer would. */
#include "code/forms.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_ALLOCATIONS = 256 };

typedef struct {
    sg_range ranges[MOST_ALLOCATIONS];
    size_t count;
    uint64_t next; /* address of the next allocation */
    char printed[1 << 16];
    size_t printed_length;
    uint64_t commits;
    bool refuse_commits;
} device;

EXPORT device *device_open(void) {
    device *d = calloc(1, sizeof *d);
    d->next = (uint64_t)0x700000000000;
    return d;
}

EXPORT void device_close(device *d) {
    for (size_t i = 0; i < d->count; i++)
        free(d->ranges[i].host);
    free(d);
}

/* Exactly `size` bytes are mapped; the next allocation is at least 2 MiB away. */
EXPORT uint64_t device_allocate(device *d, size_t size) {
    if (d->count == MOST_ALLOCATIONS)
        return 0;
    if (size > (size_t)1 << 30) /* texts made by fuzzing ask for a TiB */
        return 0;
    unsigned char *host = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!host)
        return 0;
    memset(host, 0, (size + 255) / 256 * 256);
    uint64_t address = d->next;
    d->ranges[d->count++] = (sg_range){address, address + size, host};
    d->next += (size + ((uint64_t)2 << 20) - 1) / ((uint64_t)2 << 20) * ((uint64_t)2 << 20) + ((uint64_t)2 << 20);
    return address;
}

static bool find(void *context, uint64_t address, sg_range *range) {
    const device *d = context;
    for (size_t i = 0; i < d->count; i++)
        if (address >= d->ranges[i].first && address < d->ranges[i].last) {
            *range = d->ranges[i];
            return true;
        }
    return false;
}

static sg_status commit(void *context, uint64_t address) {
    device *d = context;
    (void)address;
    __atomic_fetch_add(&d->commits, 1, __ATOMIC_RELAXED);
    return d->refuse_commits ? SG_NO_MEMORY : SG_OK;
}

EXPORT void device_refuse_commits(device *d, bool refuse) { d->refuse_commits = refuse; }
EXPORT uint64_t device_commits(const device *d) { return d->commits; }

EXPORT bool device_write(device *d, uint64_t address, const void *bytes, size_t size) {
    sg_range range;
    if (!find(d, address, &range) || range.last - address < size)
        return false;
    memcpy(range.host + (address - range.first), bytes, size);
    return true;
}

EXPORT bool device_read(device *d, uint64_t address, void *bytes, size_t size) {
    sg_range range;
    if (!find(d, address, &range) || range.last - address < size)
        return false;
    memcpy(bytes, range.host + (address - range.first), size);
    return true;
}

static void print(void *context, const char *text, size_t length) {
    device *d = context;
    size_t room = sizeof d->printed - d->printed_length;
    length = length < room ? length : room;
    memcpy(d->printed + d->printed_length, text, length);
    d->printed_length += length;
}

EXPORT size_t device_printed(device *d, char *out, size_t size) {
    size_t length = d->printed_length < size ? d->printed_length : size;
    memcpy(out, d->printed, length);
    d->printed_length = 0;
    return length;
}

EXPORT bool engine_level(const char *level) { return sg_choose_level(level); }

/* forms.def, row by row: false behind its end. */
EXPORT bool engine_form(size_t index, const char **opcode, const char **words) {
    const sg_form *form = sg_form_at(index);
    if (!form)
        return false;
    *opcode = form->opcode;
    *words = form->words;
    return true;
}

/* ---- modules ---- */

EXPORT int module_open(const char *ptx, size_t length, char *log, size_t log_size, sg_module **module) {
    return sg_module_create(ptx, length, log, log_size, module);
}

/* What the driver does after loading: memory for every variable, its address, its bytes. */
EXPORT void module_place(sg_module *module, device *d) {
    size_t count = sg_module_variable_count(module);
    uint64_t *addresses = calloc(count + 1, sizeof *addresses);
    for (size_t i = 0; i < count; i++) {
        addresses[i] = device_allocate(d, sg_module_variable(module, i).size);
        sg_module_bind(module, i, addresses[i]);
    }
    for (size_t i = 0; i < count; i++) {
        size_t size = sg_module_variable(module, i).size;
        if (!addresses[i])
            continue;
        unsigned char *image = malloc(size + 1);
        sg_module_image(module, i, image);
        device_write(d, addresses[i], image, size);
        free(image);
    }
    free(addresses);
}

EXPORT void module_close(sg_module *module) { sg_module_destroy(module); }
EXPORT size_t module_kernel_count(const sg_module *module) { return sg_module_kernel_count(module); }
EXPORT const sg_kernel *module_kernel(const sg_module *module, size_t index) { return sg_module_kernel(module, index); }
EXPORT const sg_kernel *module_kernel_named(const sg_module *module, const char *name) {
    return sg_module_kernel_named(module, name);
}
EXPORT void kernel_describe(const sg_kernel *kernel, sg_kernel_info *info) { *info = sg_kernel_describe(kernel); }
EXPORT bool kernel_parameter(const sg_kernel *kernel, size_t index, size_t *offset, size_t *size) {
    return sg_kernel_parameter(kernel, index, offset, size);
}

EXPORT int texts_link(const char *const *texts, const size_t *lengths, size_t count, char *log, size_t log_size,
                      char **merged, size_t *merged_length) {
    return sg_link(texts, lengths, count, log, log_size, merged, merged_length);
}
EXPORT void text_free(char *text) { free(text); }

typedef struct {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    uint32_t worker_threads;
    uint64_t timeout_ns;
    int32_t cooperative;
} launch_options;

EXPORT int kernel_run(const sg_kernel *kernel, device *d, const launch_options *options, const unsigned char *parameters,
                      sg_result *result) {
    sg_memory memory = {d, find, commit, NULL};
    sg_launch launch = {.dynamic_shared_bytes = options->dynamic_shared_bytes,
                        .parameters = parameters,
                        .memory = &memory,
                        .cooperative = options->cooperative,
                        .multiprocessors = 4,
                        .clock_hz = 1410000000,
                        .timeout_ns = options->timeout_ns,
                        .worker_threads = options->worker_threads,
                        .print = print,
                        .print_context = d};
    memcpy(launch.grid, options->grid, sizeof launch.grid);
    memcpy(launch.block, options->block, sizeof launch.block);
    return (int)sg_run(kernel, &launch, result);
}
