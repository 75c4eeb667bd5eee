/* The `device` file: what a software GPU is. Written once by Python, read here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

typedef struct {
    const char *key;
    size_t offset;
    enum { FIELD_INT, FIELD_BYTES } kind;
    bool required;
} field;

#define INT_FIELD(name, required) {#name, offsetof(sg_facts, name), FIELD_INT, required}
#define BYTES_FIELD(name, required) {#name, offsetof(sg_facts, name), FIELD_BYTES, required}

static const field fields[] = {
    BYTES_FIELD(memory_bytes, true),
    BYTES_FIELD(memory_reserved_bytes, false),
    BYTES_FIELD(context_bytes, false),
    INT_FIELD(compute_major, true),
    INT_FIELD(compute_minor, true),
    INT_FIELD(multiprocessors, true),
    INT_FIELD(clock_khz, false),
    INT_FIELD(memory_clock_khz, false),
    INT_FIELD(bus_width_bits, false),
    INT_FIELD(l2_bytes, false),
    INT_FIELD(shared_per_block_bytes, true),
    INT_FIELD(shared_per_block_optin_bytes, false),
    INT_FIELD(shared_per_multiprocessor_bytes, false),
    INT_FIELD(registers_per_block, true),
    INT_FIELD(threads_per_multiprocessor, true),
    INT_FIELD(blocks_per_multiprocessor, false),
    INT_FIELD(power_limit_mw, false),
    INT_FIELD(fp32_lanes_per_multiprocessor, false),
    INT_FIELD(host_link_mb_per_s, false),
    INT_FIELD(launch_ns, false),
    INT_FIELD(time_scale_ppm, false),
    INT_FIELD(time_slice_ns, false),
    INT_FIELD(switch_ns, false),
    INT_FIELD(preemption_ns, false),
    INT_FIELD(power_limit_min_mw, false),
    INT_FIELD(power_idle_mw, false),
    INT_FIELD(slowdown_celsius, false),
    INT_FIELD(shutdown_celsius, false),
    INT_FIELD(fans, false),
    INT_FIELD(ecc, false),
    INT_FIELD(mig_instances, false),
    INT_FIELD(pci_device_id, false),
    INT_FIELD(pcie_generation, false),
    INT_FIELD(pcie_width, false),
    BYTES_FIELD(bar1_bytes, false),
    BYTES_FIELD(module_bytes, false),
    INT_FIELD(local_threads, false),
    INT_FIELD(kernel_timeout_ms, false),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };
_Static_assert(FIELD_COUNT + 2 <= 64, "one bit of `seen` each");

static bool parse_number(const char *text, uint64_t limit, uint64_t *number) {
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || parsed > limit)
        return false;
    *number = parsed;
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_uuid(const char *text, sg_facts *facts) {
    const char *digits = strncmp(text, "GPU-", 4) == 0 ? text + 4 : text;
    int count = 0;
    if (strlen(digits) != 36)
        return false;
    for (const char *c = digits; *c; c++) {
        int value = hex_digit(*c);
        if (*c == '-')
            continue;
        if (value < 0 || count == 32)
            return false;
        unsigned char *byte = &facts->uuid_bytes[count / 2];
        *byte = (unsigned char)(count % 2 ? *byte | value : value << 4);
        count++;
    }
    snprintf(facts->uuid, sizeof facts->uuid, "GPU-%.36s", digits);
    return count == 32;
}

/* 00000000:3B:00.0, or the short form 0000:3b:00.0 of lspci. */
static bool parse_pci(const char *text, sg_facts *facts) {
    unsigned domain, bus, device, function;
    if (sscanf(text, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
        return false;
    facts->pci_domain = domain;
    facts->pci_bus = bus;
    facts->pci_device = device;
    return true;
}

static bool parse_time(const char *text, sg_time *time) {
    static const char *const names[] = {[SG_TIME_REAL] = "real", [SG_TIME_SCALED] = "scaled", [SG_TIME_VIRTUAL] = "virtual"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *time = (sg_time)i;
            return true;
        }
    return false;
}

static bool store_field(sg_facts *facts, const field *f, const char *value) {
    uint64_t number;
    char *place = (char *)facts + f->offset;
    if (!parse_number(value, f->kind == FIELD_INT ? INT32_MAX : INT64_MAX, &number))
        return false;
    if (f->kind == FIELD_INT)
        *(int *)place = (int)number;
    else
        *(uint64_t *)place = number;
    return true;
}

enum { SEEN_UUID = FIELD_COUNT, SEEN_PCI = FIELD_COUNT + 1 };

static bool store(sg_facts *facts, const char *key, const char *value, uint64_t *seen) {
    if (strcmp(key, "uuid") == 0) {
        *seen |= UINT64_C(1) << SEEN_UUID;
        return parse_uuid(value, facts);
    }
    if (strcmp(key, "pci_id") == 0) {
        *seen |= UINT64_C(1) << SEEN_PCI;
        return parse_pci(value, facts);
    }
    if (strcmp(key, "name") == 0) {
        snprintf(facts->name, sizeof facts->name, "%s", value);
        return true;
    }
    if (strcmp(key, "time") == 0)
        return parse_time(value, &facts->time);
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(key, fields[i].key) == 0) {
            *seen |= UINT64_C(1) << i;
            return store_field(facts, &fields[i], value);
        }
    return true; /* a key of a later version */
}

static bool parse_line(char *line, sg_facts *facts, uint64_t *seen) {
    line += strspn(line, " \t");
    line[strcspn(line, "\r")] = '\0';
    if (*line == '#' || *line == '\0')
        return true;
    char *value = line + strcspn(line, " \t");
    if (*value != '\0')
        *value++ = '\0';
    value += strspn(value, " \t");
    for (size_t end = strlen(value); end > 0 && (value[end - 1] == ' ' || value[end - 1] == '\t'); end--)
        value[end - 1] = '\0';
    return store(facts, line, value, seen);
}

static void replace_zero(int *figure, int value) {
    if (*figure == 0)
        *figure = value;
}

/* A device made before a figure was known is timed by these. The slice is what cards without MPS use; what a
 * change of processes and a preemption cost are the figures of our simulation of compute turns. */
static void fill_time_defaults(sg_facts *facts) {
    replace_zero(&facts->fp32_lanes_per_multiprocessor, 64);
    replace_zero(&facts->host_link_mb_per_s, 12000);
    replace_zero(&facts->launch_ns, 2500);
    replace_zero(&facts->time_scale_ppm, 1000000);
    replace_zero(&facts->time_slice_ns, 2000000);
    replace_zero(&facts->switch_ns, 35000);
    replace_zero(&facts->preemption_ns, 75000);
}

static void fill_defaults(sg_facts *facts) {
    if (facts->shared_per_block_optin_bytes < facts->shared_per_block_bytes)
        facts->shared_per_block_optin_bytes = facts->shared_per_block_bytes;
    if (facts->shared_per_multiprocessor_bytes == 0)
        facts->shared_per_multiprocessor_bytes = facts->shared_per_block_optin_bytes;
    if (facts->blocks_per_multiprocessor == 0)
        facts->blocks_per_multiprocessor = 16;
    if (facts->clock_khz == 0)
        facts->clock_khz = 1000000;
    fill_time_defaults(facts);
}

int sg_facts_parse(const char *text, size_t length, sg_facts *facts) {
    uint64_t seen = 0;
    char line[512];
    memset(facts, 0, sizeof *facts);
    facts->ecc = -1;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t size = end ? (size_t)(end - (text + at)) : length - at;
        snprintf(line, sizeof line, "%.*s", (int)(size < sizeof line ? size : sizeof line - 1), text + at);
        if (!parse_line(line, facts, &seen))
            return -EINVAL;
        at += size + 1;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (fields[i].required && !(seen & UINT64_C(1) << i))
            return -EINVAL;
    if (!(seen & UINT64_C(1) << SEEN_UUID) || !(seen & UINT64_C(1) << SEEN_PCI) || facts->multiprocessors == 0)
        return -EINVAL;
    if (sg_capacity_bytes(facts) == 0)
        return -EINVAL;
    fill_defaults(facts);
    return 0;
}

uint64_t sg_capacity_bytes(const sg_facts *facts) {
    if (facts->memory_bytes <= facts->memory_reserved_bytes)
        return 0;
    return (facts->memory_bytes - facts->memory_reserved_bytes) / SG_CHUNK_BYTES * SG_CHUNK_BYTES;
}

/* Devices of one name, as cards of one kind in one machine; GeForce cards cannot. */
bool sg_facts_can_be_peers(const sg_facts *one, const sg_facts *other) {
    return strcmp(one->name, other->name) == 0 && strstr(one->name, "GeForce") == NULL;
}
