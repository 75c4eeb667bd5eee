/* The budget: what all software GPUs of one folder may take of the machine's memory.
 *
 * Held is what is truly there: the blocks of each device's arena, which a kill cannot make wrong, and the
 * page-locked memory of each living process. A sum kept beside it would drift. Who commits a chunk looks
 * afterwards and gives it back where that was too much: without any lock the budget is never exceeded for
 * longer than that takes; two at once may both be refused the last chunk.
 *
 * The arena lies in the device's own folder. On a disk its pages are page cache, which the kernel writes back
 * before it runs out of memory, so there the budget keeps the machine from thrashing; on tmpfs they can only
 * be swapped, and it keeps the machine from the kernel's killer. It is the same budget for both: half of what
 * would be available without us. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "layout.h"
#include "machine_memory.h"

enum { PATH_SIZE = 4400, FILE_SIZE = PATH_SIZE + 64 };
#define FRESH_NS UINT64_C(100000000) /* how long what the machine has is not asked for again */

typedef struct {
    uint64_t arenas, host;
    bool in_memory; /* an arena lies on tmpfs */
} held;

static uint64_t arena_bytes(const char *folder, bool *in_memory) {
    char path[FILE_SIZE];
    struct stat about;
    struct statfs system;
    snprintf(path, sizeof path, "%s/arena", folder);
    if (stat(path, &about) != 0)
        return 0;
    *in_memory = *in_memory || (statfs(path, &system) == 0 && system.f_type == TMPFS_MAGIC);
    /* Whole chunks: the blocks in which a file system notes where they are, are counted as well. */
    return (uint64_t)about.st_blocks * 512 / SG_CHUNK_BYTES * SG_CHUNK_BYTES;
}

/* The page-locked memory of the living processes of a device, by a look at its file. */
static uint64_t host_bytes(const char *folder) {
    char path[FILE_SIZE];
    uint64_t bytes[SG_MAXIMUM_PROCESSES], sum = 0;
    snprintf(path, sizeof path, "%s/state", folder);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    if (pread(file, bytes, sizeof bytes, offsetof(sg_state, host_bytes)) == (ssize_t)sizeof bytes)
        for (int i = 0; i < SG_MAXIMUM_PROCESSES; i++)
            if (bytes[i] != 0 && sg_lock_held_elsewhere(file, SG_LOCK_SLOTS + i))
                sum += bytes[i];
    close(file);
    return sum;
}

static void devices_folder(const sg_device *device, char *folder) {
    snprintf(folder, sizeof device->folder, "%s", device->folder);
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
}

static held look(const char *folder) {
    held found = {0, 0, false};
    struct dirent *entry;
    DIR *stream = opendir(folder);
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[PATH_SIZE];
        if (entry->d_name[0] == '.')
            continue;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof path - 8)
            continue;
        found.arenas += arena_bytes(path, &found.in_memory);
        found.host += host_bytes(path);
    }
    if (stream != NULL)
        closedir(stream);
    return found;
}

/* "8589934592", "8G", "512M", "512MiB"; and a line end, for a file. */
static bool parse_bytes(const char *text, uint64_t *bytes) {
    static const char units[] = "KMGT";
    char *end;
    if (*text < '0' || *text > '9') /* strtoull takes "-1" */
        return false;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
    if (unit != NULL)
        end += strncmp(end + 1, "iB", 2) == 0 ? 3 : 1;
    if (errno != 0 || end[strspn(end, " \t\r\n")] != '\0')
        return false;
    *bytes = number > UINT64_MAX >> shift ? UINT64_MAX : number << shift;
    return true;
}

typedef enum { DEFAULT, CONFIGURED, NONSENSE } setting;

/* The variable, else the file. An empty one is none. */
static setting configured(const sg_device *device, const char *folder, uint64_t *bytes) {
    char path[FILE_SIZE], text[64], complaint[256];
    const char *name = "ALIQUOT_SOFTGPU_MEMORY_BUDGET", *value = getenv(name);
    if (value == NULL || *value == '\0') {
        name = "the file memory-budget";
        snprintf(path, sizeof path, "%s/memory-budget", folder);
        value = sg_file_text(path, text, sizeof text) > 0 ? text : "";
    }
    if (value[strspn(value, " \t\r\n")] == '\0')
        return DEFAULT;
    if (parse_bytes(value, bytes))
        return CONFIGURED;
    snprintf(complaint, sizeof complaint, "%s says '%.*s', which is no number of bytes such as 8589934592, 512M or 8G", name,
             (int)(strcspn(value, "\n") < 60 ? strcspn(value, "\n") : 60), value);
    sg_log_once(device, "memory-budget", complaint);
    return NONSENSE;
}

bool sg_budget_understood(const sg_device *device) {
    char folder[sizeof device->folder];
    uint64_t bytes;
    devices_folder(device, folder);
    return configured(device, folder, &bytes) != NONSENSE;
}

static uint64_t by_machine(const held *now) {
    sg_machine_memory memory;
    if (!sg_machine_memory_read("", &memory))
        return UINT64_MAX; /* no /proc: nothing is known */
    if (memory.exhausted)
        return 0;
    uint64_t without_us = memory.available + now->host + (now->in_memory ? now->arenas : 0);
    return (without_us < memory.limit ? without_us : memory.limit) / 2;
}

static uint64_t budget(const sg_device *device, const char *folder, const held *now) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t asked_ns, bytes;
    uint64_t result;
    if (configured(device, folder, &result) == CONFIGURED)
        return result;
    /* Nobody waits: a fork may have copied the lock in any state. */
    if (pthread_mutex_trylock(&lock) != 0)
        return by_machine(now);
    uint64_t time = sg_monotonic_ns();
    if (asked_ns == 0 || time - asked_ns > FRESH_NS) {
        bytes = by_machine(now);
        asked_ns = time;
    }
    result = bytes;
    pthread_mutex_unlock(&lock);
    return result;
}

static bool kept(const sg_device *device, const char *folder, uint64_t more) {
    held now = look(folder);
    uint64_t sum = now.arenas + now.host, limit = budget(device, folder, &now);
    return sum <= limit && more <= limit - sum;
}

/* Memory of processes that were killed on another device still counts until somebody looks there. */
static void repair_all(const char *folder) {
    sg_device *devices = calloc(SG_MAXIMUM_DEVICES, sizeof *devices);
    int count = devices != NULL ? sg_inventory_read(folder, devices, SG_MAXIMUM_DEVICES) : 0;
    for (int i = 0; i < count; i++)
        if (sg_state_open(&devices[i], SG_READER_PATIENCE_NS) == 0) {
            (void)sg_used_bytes(&devices[i]);
            sg_state_close(&devices[i]);
        }
    free(devices);
}

bool sg_budget_allows(sg_device *device, uint64_t more) {
    char folder[sizeof device->folder];
    devices_folder(device, folder);
    if (kept(device, folder, more))
        return true;
    (void)sg_used_bytes(device);
    repair_all(folder);
    if (kept(device, folder, more))
        return true;
    sg_log_once(device, "memory", "the machine's budget for software GPUs is used up");
    return false;
}

int sg_host_memory_take(sg_device *device, uint64_t bytes) {
    if (!sg_budget_allows(device, bytes))
        return -ENOMEM;
    if (device->state != NULL && device->slot != SG_NO_SLOT)
        atomic_fetch_add(&device->state->host_bytes[device->slot], bytes);
    return 0;
}

void sg_host_memory_give(sg_device *device, uint64_t bytes) {
    if (device->state == NULL || device->slot == SG_NO_SLOT)
        return;
    _Atomic uint64_t *mine = &device->state->host_bytes[device->slot];
    uint64_t now = atomic_load(mine);
    /* Not what an earlier life of this process on the device took. */
    while (!atomic_compare_exchange_weak(mine, &now, now > bytes ? now - bytes : 0)) {
    }
}
