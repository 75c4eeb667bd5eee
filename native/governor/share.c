#include "share.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "refusal.h"
#include "words.h"

#define FIXED_FOLDER "/run/aliquot/share"
/* Of a process whose user could not make the one above. His own folder, or it is not believed: /tmp is
 * everybody's. */
#define USERS_FOLDER "/tmp/aliquot-"
#define NEXT_STEP ", so this program has no share of a GPU; start it again with `aliquot run`, or see `aliquot doctor`"

struct share share;

static const aliquot_limits *limits;
/* The last values that were read whole: they stay in force should a writer die half-way. */
static _Atomic uint64_t last_memory[ALIQUOT_DEVICES_MAX];

static bool refuse(const char *path, const char *what, const char *reason)
{
    refusal_set("Aliquot: ", path, " ", what, reason != NULL ? " (" : "", reason != NULL ? reason : "",
                reason != NULL ? ")" : "", NEXT_STEP, NULL);
    return false;
}

bool share_join(char *out, size_t size, const char *folder, const char *name)
{
    size_t first = strlen(folder), second = strlen(name);
    if (first + second + 2 > size)
        return refuse(folder, "is too long a path", NULL);
    memcpy(out, folder, first);
    out[first] = '/';
    memcpy(out + first + 1, name, second + 1);
    return true;
}

/* ---- where the share is ---- */

/* The name this library was loaded by, made absolute: not resolved, for the share's `lib` folder
 * holds links into a common one. */
static bool own_path(char *out, size_t size)
{
    Dl_info info;
    if (dladdr(&share, &info) == 0 || info.dli_fname == NULL)
        return refuse("the governor", "cannot tell where it was loaded from", NULL);
    if (info.dli_fname[0] == '/') {
        if (strlen(info.dli_fname) >= size)
            return refuse(info.dli_fname, "is too long a path", NULL);
        strcpy(out, info.dli_fname);
        return true;
    }
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) == NULL)
        return refuse(info.dli_fname, "was loaded from a folder that is gone", refusal_errno());
    return share_join(out, size, here, info.dli_fname);
}

/* "/tmp/aliquot-UID/share" into `out`, where that is the user's own and has limits. */
static bool users_folder(char out[64])
{
    struct stat status;
    char limits_path[80], digits[12];
    unsigned at = sizeof digits, uid = (unsigned)getuid();
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + uid % 10);
    while ((uid /= 10) != 0);
    strcpy(out, USERS_FOLDER);
    strcat(out, &digits[at]);
    if (lstat(out, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != getuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return false;
    strcat(out, "/share");
    strcpy(limits_path, out);
    strcat(limits_path, "/limits");
    return stat(limits_path, &status) == 0;
}

bool share_find_folder(void)
{
    struct stat status;
    if (stat(FIXED_FOLDER "/limits", &status) == 0) {
        strcpy(share.folder, FIXED_FOLDER);
        return true;
    }
    char users[64];
    if (users_folder(users)) {
        strcpy(share.folder, users);
        return true;
    }
    if (!own_path(share.folder, sizeof share.folder))
        return false;
    for (int up = 0; up < 2; up++) { /* the file, then `lib` */
        char *slash = strrchr(share.folder, '/');
        if (slash == NULL || slash == share.folder)
            return refuse(share.folder, "is not in a share's folder", NULL);
        *slash = '\0';
    }
    return true;
}

/* ---- its files ---- */

static int open_file(const char *path, bool writable)
{
    return open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool share_is_ledger(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && status.st_dev == share.ledger_device &&
           status.st_ino == share.ledger_inode;
}

int share_open_ledger(bool writable)
{
    int descriptor = open_file(share.ledger_path, writable);
    if (descriptor < 0 || share_is_ledger(descriptor))
        return descriptor;
    close(descriptor);
    errno = ESTALE;
    return -1;
}

/* Map `path` and check what both files have alike. NULL: refused. */
static void *map_file(const char *path, bool writable, const char *magic, size_t size, struct stat *status)
{
    int descriptor = open_file(path, writable);
    if (descriptor < 0 || fstat(descriptor, status) != 0) {
        refuse(path, "cannot be opened", refusal_errno());
        if (descriptor >= 0)
            close(descriptor);
        return NULL;
    }
    void *map = MAP_FAILED;
    if (!S_ISREG(status->st_mode) || (uint64_t)status->st_size < size) {
        refuse(path, "is not a share's file: its kind or size is wrong", NULL);
    } else {
        map = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, descriptor, 0);
        if (map == MAP_FAILED)
            refuse(path, "cannot be mapped", refusal_errno());
    }
    close(descriptor);
    if (map == MAP_FAILED)
        return NULL;
    /* magic, version, size and minimum_reader lie alike in both. */
    const aliquot_ledger *head = map;
    if (memcmp(head->magic, magic, sizeof head->magic) != 0)
        refuse(path, "is not a share's file: its first bytes are wrong", NULL);
    else if (head->size < size || head->size > (uint64_t)status->st_size)
        refuse(path, "is not a share's file: it says another size than it has", NULL);
    else if (head->minimum_reader > ALIQUOT_VERSION)
        refuse(path, "was written by a newer Aliquot than this governor", NULL);
    else
        return map;
    munmap(map, size);
    return NULL;
}

/* The values of `device`, whole. False while a change is under way for longer than one takes. */
static bool read_memory(unsigned device, uint64_t *memory)
{
    for (int attempt = 0; attempt < 10000; attempt++) {
        uint32_t before = __atomic_load_n(&limits->sequence, __ATOMIC_ACQUIRE);
        /* Acquire: the second look at the sequence must not move before this one. */
        *memory = __atomic_load_n(&limits->devices[device].memory, __ATOMIC_ACQUIRE);
        if (before % 2 == 0 && before == __atomic_load_n(&limits->sequence, __ATOMIC_RELAXED))
            return true;
        __builtin_ia32_pause();
    }
    return false;
}

static bool take_devices(const char *path)
{
    share.devices = limits->device_count;
    if (share.devices == 0 || share.devices > ALIQUOT_DEVICES_MAX)
        return refuse(path, "names no device, or too many", NULL);
    for (unsigned device = 0; device < share.devices; device++) {
        memcpy(share.uuid[device], limits->devices[device].uuid, ALIQUOT_UUID_BYTES);
        if (share.uuid[device][0] == '\0' || share.uuid[device][ALIQUOT_UUID_BYTES - 1] != '\0')
            return refuse(path, "names a device without a UUID", NULL);
        uint64_t memory;
        if (!read_memory(device, &memory))
            return refuse(path, "was left half-changed", NULL);
        atomic_store(&last_memory[device], memory);
    }
    return true;
}

bool share_open(const char *soname, bool writable)
{
    char path[PATH_MAX + 8];
    char name[32] = "driver/";
    strcat(name, soname);
    struct stat limits_status, ledger_status;
    if (!share_find_folder() || !share_join(path, sizeof path, share.folder, "limits") ||
        !share_join(share.ledger_path, sizeof share.ledger_path, share.folder, "ledger") ||
        !share_join(share.driver_path, sizeof share.driver_path, share.folder, name))
        return false;
    limits = map_file(path, false, ALIQUOT_LIMITS_MAGIC, sizeof *limits, &limits_status);
    if (limits == NULL)
        return false;
    if ((limits_status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return refuse(path, "may be written by others than its owner", NULL);
    if (!take_devices(path))
        return false;
    share.ledger = map_file(share.ledger_path, writable, ALIQUOT_LEDGER_MAGIC, sizeof *share.ledger, &ledger_status);
    if (share.ledger == NULL)
        return false;
    /* Both were made by one hand. Which uid that is, a container under another user mapping
     * cannot know; that it is the same one, it can. */
    if (ledger_status.st_uid != limits_status.st_uid)
        return refuse(share.ledger_path, "belongs to another user than the limits", NULL);
    if (share.ledger->device_count != share.devices)
        return refuse(share.ledger_path, "is of another share: its number of devices differs", NULL);
    share.ledger_device = ledger_status.st_dev;
    share.ledger_inode = ledger_status.st_ino;
    return true;
}

/* ---- live values ---- */

uint64_t share_memory_limit(unsigned device)
{
    uint64_t memory;
    if (!read_memory(device, &memory))
        return atomic_load(&last_memory[device]);
    atomic_store_explicit(&last_memory[device], memory, memory_order_relaxed);
    return memory;
}

uint64_t share_context_bytes(unsigned device)
{
    return __atomic_load_n(&limits->devices[device].context_bytes, __ATOMIC_RELAXED);
}

uint32_t share_thousandths(unsigned device)
{
    uint32_t part = __atomic_load_n(&limits->devices[device].compute, __ATOMIC_RELAXED);
    return part == 0 ? 1 : part > 1000 ? 1000 : part;
}

uint32_t share_generation(void)
{
    return __atomic_load_n(&limits->sequence, __ATOMIC_ACQUIRE) & ~1u; /* odd: the change is not made yet */
}

/* The coarse clock: read without a system call, and as exact as ten seconds need. */
bool share_keeper_gone(void)
{
    uint64_t kept = load(&limits->devices[0].kept);
    return kept != 0 && now_coarse_ns() > add_capped(kept, ALIQUOT_KEEPER_PATIENCE_MS * UINT64_C(1000000));
}

struct share_compute share_compute(unsigned device)
{
    const aliquot_limits_device *from = &limits->devices[device];
    static _Atomic uint64_t last[ALIQUOT_DEVICES_MAX]; /* weight, policy and rank as one word */
    for (int attempt = 0; attempt < 10000; attempt++) {
        uint32_t before = __atomic_load_n(&limits->sequence, __ATOMIC_ACQUIRE);
        uint64_t weight = __atomic_load_n(&from->compute, __ATOMIC_ACQUIRE) & 0xffff;
        uint64_t policy = __atomic_load_n(&from->policy, __ATOMIC_ACQUIRE) & 0xff;
        uint64_t rank = __atomic_load_n(&from->rank, __ATOMIC_ACQUIRE) & 0xff;
        if (before % 2 == 0 && before == __atomic_load_n(&limits->sequence, __ATOMIC_RELAXED)) {
            atomic_store(&last[device], weight << 16 | policy << 8 | rank | UINT64_C(1) << 32);
            break;
        }
        __builtin_ia32_pause();
    }
    uint64_t word = atomic_load(&last[device]);
    uint32_t weight = (uint32_t)(word >> 16 & 0xffff), policy = (uint32_t)(word >> 8 & 0xff);
    return (struct share_compute){
        .weight = weight != 0 ? weight : 1,
        .policy = policy <= POLICY_PRIORITY && !share_keeper_gone() ? policy : POLICY_CAP,
        .rank = (uint32_t)(word & 0xff),
    };
}

enum { PAUSED = 1, UNKNOWN_PASSES = 2 };

bool share_paused(void)
{
    return limits != NULL && (__atomic_load_n(&limits->flags, __ATOMIC_RELAXED) & PAUSED) != 0;
}

bool share_unknown_passes(void)
{
    return (__atomic_load_n(&limits->flags, __ATOMIC_RELAXED) & UNKNOWN_PASSES) != 0;
}

uint64_t share_lease_number(void)
{
    return hash_of(limits->lease, strnlen(limits->lease, sizeof limits->lease));
}

/* ---- the devices' pages ---- */

/* Not refused where it is missing: such a share is held by its own clock alone (gate.c). */
aliquot_turns *share_open_turns(unsigned device)
{
    char path[PATH_MAX + 16], name[16] = "turns/";
    size_t length = strlen(name);
    if (device >= 10)
        name[length++] = (char)('0' + device / 10);
    name[length++] = (char)('0' + device % 10);
    name[length] = '\0';
    if (strlen(share.folder) + length + 2 > sizeof path)
        return NULL;
    strcat(strcat(strcpy(path, share.folder), "/"), name);
    struct stat status;
    int descriptor = open_file(path, true);
    if (descriptor < 0)
        return NULL;
    void *map = MAP_FAILED;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size >= sizeof(aliquot_turns))
        map = mmap(NULL, sizeof(aliquot_turns), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (map == MAP_FAILED)
        return NULL;
    const aliquot_turns *page = map;
    if (memcmp(page->magic, ALIQUOT_TURNS_MAGIC, sizeof page->magic) == 0 && page->minimum_reader <= ALIQUOT_VERSION)
        return map;
    munmap(map, sizeof(aliquot_turns));
    return NULL;
}

/* ---- identities ---- */

static bool parse_uuid(const char *text, unsigned char bytes[16])
{
    if (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0)
        text += 4;
    unsigned digits = 0;
    for (; *text != '\0'; text++) {
        if (*text == '-')
            continue;
        int value = *text >= '0' && *text <= '9' ? *text - '0'
                    : (*text | 32) >= 'a' && (*text | 32) <= 'f' ? (*text | 32) - 'a' + 10 : -1;
        if (value < 0 || digits == 32)
            return false;
        bytes[digits / 2] = (unsigned char)(digits % 2 ? bytes[digits / 2] << 4 | value : value);
        digits++;
    }
    return digits == 32;
}

int share_device_of_uuid_bytes(const unsigned char bytes[16])
{
    for (unsigned device = 0; device < share.devices; device++) {
        unsigned char own[16];
        if (parse_uuid(share.uuid[device], own) && memcmp(own, bytes, 16) == 0)
            return (int)device;
    }
    return -1;
}

int share_device_of_uuid(const char *uuid)
{
    for (unsigned device = 0; device < share.devices; device++)
        if (strcmp(share.uuid[device], uuid) == 0)
            return (int)device;
    return -1;
}
