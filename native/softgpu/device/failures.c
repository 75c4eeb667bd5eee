/* Reading `failures`: see failures.h. The grammar is that of src/aliquot/softgpu/failing.py. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "failures.h"
#include "layout.h"

#define LOOK_NS UINT64_C(20000000)
enum { LARGEST_FILE = 65536 };

_Static_assert(offsetof(struct sg_state, failures_changed) == 16, "src/aliquot/softgpu/failing.py writes there");

/* What this process knows of one device's file. */
struct sg_failing {
    pthread_mutex_t lock;
    _Atomic uint32_t seen;     /* the shared word when it was read ... */
    _Atomic uint64_t looked_ns; /* ... and when the file was last looked at, by the coarse clock */
    _Atomic bool any;
    _Atomic int branch;        /* now.branch, for who asks nothing else */
    uint64_t modified_ns, size, inode;
    uint64_t allocations;      /* since the file changed */
    sg_failures now;
};

/* By NVIDIA's release notes of CUDA, and those of the PTX ISA. */
static const sg_driver_branch branches[] = {
    {470, 11040, 74}, {510, 11060, 76}, {515, 11070, 77}, {520, 11080, 78}, {525, 12000, 80}, {530, 12010, 81},
    {535, 12020, 82}, {545, 12030, 83}, {550, 12040, 84}, {555, 12050, 85}, {560, 12060, 85}, {565, 12070, 86},
    {570, 12080, 87}, {575, 12090, 88}, {580, 13000, 90}, {590, 13010, 91}, {595, 13020, 92},
    {615, SG_CUDA_VERSION, 95},
};

const sg_driver_branch *sg_driver_branch_of(int branch) {
    for (size_t i = 0; i < sizeof branches / sizeof *branches; i++)
        if (branches[i].branch == branch)
            return &branches[i];
    return NULL;
}

int sg_cuda_version_of_branch(int branch) {
    const sg_driver_branch *found = sg_driver_branch_of(branch);
    return found != NULL ? found->cuda_version : 0;
}

/* ---- one line ---- */

static bool number_of(const char *text, uint64_t limit, uint64_t *number) {
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *number <= limit;
}

static bool allocation(const char *value, sg_failures *to) {
    char text[24];
    size_t length = strlen(value);
    if (length == 0 || length >= sizeof text)
        return false;
    memcpy(text, value, length + 1);
    to->allocation_and_later = text[length - 1] == '+';
    if (to->allocation_and_later)
        text[length - 1] = '\0';
    return number_of(text, UINT32_MAX, &to->allocation) && to->allocation > 0;
}

static bool factor(const char *value, sg_failures *to) {
    char *end;
    double times = strtod(value, &end);
    if (end == value || *end != '\0' || !(times >= 1) || times > 1e6)
        return false;
    to->slow_ppm = (uint64_t)(times * 1e6 + 0.5);
    return true;
}

static bool event(sg_failures *to, int kind, uint64_t value, uint64_t serial) {
    if (to->event_count == SG_FAILING_EVENTS)
        return false;
    sg_failing_event *added = &to->events[to->event_count++];
    *added = (sg_failing_event){.value = value, .serial = serial};
    added->kind = kind;
    return true;
}

static bool memory_error(const char *value, uint64_t serial, sg_failures *to) {
    uint64_t count = 1;
    const char *colon = strchr(value, ':');
    size_t length = colon != NULL ? (size_t)(colon - value) : strlen(value);
    if (colon != NULL && (!number_of(colon + 1, UINT32_MAX, &count) || count == 0))
        return false;
    if (length == strlen("corrected") && memcmp(value, "corrected", length) == 0)
        return event(to, SG_EVENT_CORRECTED, count, serial);
    if (length == strlen("uncorrected") && memcmp(value, "uncorrected", length) == 0)
        return event(to, SG_EVENT_UNCORRECTED, count, serial);
    return false;
}

static bool branch(const char *value, sg_failures *to) {
    uint64_t number;
    if (!number_of(value, 9999, &number) || sg_cuda_version_of_branch((int)number) == 0)
        return false;
    to->branch = (int)number;
    return true;
}

static bool missing(const char *value, sg_failures *to) {
    static const char *const parts[SG_NVML_PARTS] = {"accounting", "clocks",    "ecc",         "fields",   "pcie",
                                                     "power",      "processes", "temperature", "topology", "usage"};
    for (int i = 0; i < SG_NVML_PARTS; i++)
        if (strcmp(value, parts[i]) == 0) {
            to->without |= 1u << i;
            return true;
        }
    return false;
}

static bool apply(const char *name, const char *value, uint64_t serial, sg_failures *to) {
    uint64_t number;
    if (strcmp(name, "lost") == 0)
        return value == NULL && (to->lost = true, true);
    if (strcmp(name, "hang") == 0)
        return value == NULL && (to->hang = true, true);
    if (value == NULL)
        return false;
    if (strcmp(name, "alloc") == 0)
        return allocation(value, to);
    if (strcmp(name, "slow") == 0)
        return factor(value, to);
    if (strcmp(name, "xid") == 0)
        return number_of(value, 999, &number) && number > 0 && event(to, SG_EVENT_XID, number, serial);
    if (strcmp(name, "ecc") == 0)
        return memory_error(value, serial, to);
    if (strcmp(name, "driver") == 0)
        return branch(value, to);
    return strcmp(name, "without") == 0 && missing(value, to);
}

/* NAME[=VALUE] [serial=N] */
static bool read_line(char *line, uint64_t serial, sg_failures *to) {
    char *rest, *name = strtok_r(line, " \t\r", &rest), *mark = strtok_r(NULL, " \t\r", &rest);
    if (name == NULL || *name == '#')
        return true;
    if (mark != NULL && (strncmp(mark, "serial=", 7) != 0 || !number_of(mark + 7, UINT64_MAX - 1, &serial)))
        return false;
    char *value = strchr(name, '=');
    if (value != NULL)
        *value++ = '\0';
    return apply(name, value, serial, to);
}

/* ---- the file ---- */

static void read_text(const sg_device *device, char *text, uint64_t serial, sg_failures *to) {
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char named[128];
        snprintf(named, sizeof named, "%.120s", line);
        if (!read_line(line, serial, to))
            sg_log_once(device, "failures", named);
    }
}

static void read_file(const sg_device *device, const char *path, uint64_t serial, sg_failures *to) {
    char *text = malloc(LARGEST_FILE + 1);
    if (text != NULL && sg_file_text(path, text, LARGEST_FILE + 1) > 0)
        read_text(device, text, serial, to);
    free(text);
}

/* Once for all processes: who moves the shared number on to an event's reports it. */
static void report(sg_device *device, const sg_failures *failures) {
    static const sg_incident_kind kinds[] = {[SG_EVENT_XID] = SG_INCIDENT_XID,
                                             [SG_EVENT_CORRECTED] = SG_INCIDENT_CORRECTED,
                                             [SG_EVENT_UNCORRECTED] = SG_INCIDENT_UNCORRECTED};
    for (int i = 0; i < failures->event_count && device->state != NULL; i++) {
        const sg_failing_event *it = &failures->events[i];
        uint64_t before = atomic_load(&device->state->failures_reported);
        while (before < it->serial && !atomic_compare_exchange_weak(&device->state->failures_reported, &before, it->serial))
            ;
        if (before < it->serial)
            sg_incident_report(device, kinds[it->kind], it->value);
    }
}

/* Under the lock. */
static void look(sg_device *device, struct sg_failing *failing) {
    char path[4200];
    struct stat about = {0};
    snprintf(path, sizeof path, "%s/failures", device->folder);
    bool there = stat(path, &about) == 0;
    uint64_t modified = there ? (uint64_t)about.st_mtim.tv_sec * 1000000000u + (uint64_t)about.st_mtim.tv_nsec : 0;
    uint64_t size = there ? (uint64_t)about.st_size : 0, inode = there ? about.st_ino : 0;
    if (modified != failing->modified_ns || size != failing->size || inode != failing->inode) {
        failing->now = (sg_failures){.slow_ppm = 1000000};
        failing->allocations = 0;
        if (size > 0)
            read_file(device, path, modified, &failing->now);
        failing->modified_ns = modified;
        failing->size = size;
        failing->inode = inode;
        atomic_store(&failing->branch, failing->now.branch);
        atomic_store(&failing->any, size > 0);
    }
    report(device, &failing->now);
}

static uint64_t coarse_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct sg_failing *failing_of(sg_device *device) {
    struct sg_failing *known = atomic_load(&device->failing), *made;
    if (known != NULL || (made = calloc(1, sizeof *made)) == NULL)
        return known;
    pthread_mutex_init(&made->lock, NULL);
    made->now.slow_ppm = 1000000;
    atomic_store(&made->seen, UINT32_MAX);
    if (atomic_compare_exchange_strong(&device->failing, &known, made))
        return made;
    free(made);
    return known;
}

/* Was the file looked at since the command last wrote it, and within LOOK_NS? */
static bool is_fresh(const sg_device *device, struct sg_failing *failing) {
    uint32_t word = device->state != NULL ? atomic_load(&device->state->failures_changed) : UINT32_MAX;
    uint64_t now = coarse_ns();
    if (device->state != NULL && word == atomic_load(&failing->seen) &&
        now - atomic_load(&failing->looked_ns) < LOOK_NS)
        return true;
    atomic_store(&failing->seen, word);
    atomic_store(&failing->looked_ns, now);
    return false;
}

/* Of an opened device the word alone; of another, which has none, that it was looked at within LOOK_NS. */
static bool is_recent(const sg_device *device, struct sg_failing *failing, uint64_t *now) {
    if (device->state != NULL)
        return atomic_load(&device->state->failures_changed) == atomic_load(&failing->seen);
    if (*now == 0)
        *now = coarse_ns();
    return *now - atomic_load(&failing->looked_ns) < LOOK_NS;
}

bool sg_failures_any(sg_device *device, sg_failures *failures) {
    struct sg_failing *failing = failing_of(device);
    if (failing == NULL)
        return false;
    if (is_fresh(device, failing) && !atomic_load(&failing->any))
        return false;
    pthread_mutex_lock(&failing->lock);
    look(device, failing);
    bool any = atomic_load(&failing->any);
    if (any)
        *failures = failing->now;
    pthread_mutex_unlock(&failing->lock);
    return any;
}

void sg_failures_now(sg_device *device, sg_failures *failures) {
    if (!sg_failures_any(device, failures))
        *failures = (sg_failures){.slow_ppm = 1000000};
}

int sg_oldest_branch(sg_device *devices, int count, bool cheap) {
    uint64_t now = 0;
    int oldest = 0;
    for (int i = 0; i < count; i++) {
        struct sg_failing *failing = failing_of(&devices[i]);
        if (failing == NULL)
            continue;
        if (!(cheap && is_recent(&devices[i], failing, &now)) && !is_fresh(&devices[i], failing)) {
            pthread_mutex_lock(&failing->lock);
            look(&devices[i], failing);
            pthread_mutex_unlock(&failing->lock);
        }
        int branch = atomic_load(&failing->branch);
        oldest = oldest == 0 || (branch != 0 && branch < oldest) ? branch : oldest;
    }
    return oldest;
}

uint64_t sg_failures_newest(const sg_failures *failures) {
    uint64_t newest = 0;
    for (int i = 0; i < failures->event_count; i++)
        newest = failures->events[i].serial > newest ? failures->events[i].serial : newest;
    return newest;
}

bool sg_failures_allocation(sg_device *device) {
    sg_failures now;
    if (!sg_failures_any(device, &now) || now.allocation == 0)
        return false;
    struct sg_failing *failing = atomic_load(&device->failing);
    pthread_mutex_lock(&failing->lock);
    uint64_t number = ++failing->allocations;
    pthread_mutex_unlock(&failing->lock);
    return number == now.allocation || (now.allocation_and_later && number > now.allocation);
}
