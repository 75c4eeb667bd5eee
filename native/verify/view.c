/* What a program is shown and what it may set: nothing outside the share. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attempt.h"
#include "driver.h"

/* ---- devices ---- */

static bool is_of_share(const unsigned char uuid[16])
{
    char text[64];
    snprintf(text, sizeof text, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", uuid[0],
             uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8], uuid[9], uuid[10], uuid[11],
             uuid[12], uuid[13], uuid[14], uuid[15]);
    for (unsigned device = 0; device < share.devices; device++)
        if (strstr(share.uuid[device], text) != NULL)
            return true;
    return false;
}

struct finding try_devices(void)
{
    struct finding finding = {.outcome = HELD};
    int count = 0;
    if (driver_function("cuInit") == NULL)
        return with_note(finding, HELD, "no driver is found");
    finding.result = CALL("cuInit", (unsigned), 0);
    if (finding.result == 0)
        finding.result = CALL("cuDeviceGetCount", (int *), &count);
    unsigned foreign = 0;
    for (int at = 0; finding.result == 0 && at < count; at++) {
        unsigned char uuid[16];
        if (CALL("cuDeviceGetUuid", (void *, int), uuid, at) == 0)
            foreign += !is_of_share(uuid);
    }
    char note[128];
    snprintf(note, sizeof note, "%d of %u devices seen, %u that are not the share's", count, share.devices, foreign);
    return with_note(finding, foreign > 0 || (unsigned)count > share.devices ? HOLE : HELD, note);
}

/* ---- settings of the device ---- */

/* Asked with arguments that no driver takes: one that answers "invalid" would have done it. */
static const char *const settings[] = {
    "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetPersistenceMode",      "nvmlDeviceSetComputeMode",
    "nvmlDeviceSetGpuLockedClocks",      "nvmlDeviceResetGpuLockedClocks",    "nvmlDeviceSetMemoryLockedClocks",
    "nvmlDeviceSetApplicationsClocks",   "nvmlDeviceResetApplicationsClocks", "nvmlDeviceSetEccMode",
    "nvmlDeviceClearEccErrorCounts",     "nvmlDeviceSetMigMode",              "nvmlDeviceSetAccountingMode",
    "nvmlDeviceClearAccountingPids",     "nvmlDeviceSetFanSpeed_v2",          "nvmlDeviceSetAPIRestriction",
    "nvmlDeviceSetDriverModel",          "nvmlDeviceCreateGpuInstance",       "nvmlGpuInstanceDestroy",
};

enum { NVML_NO_PERMISSION = 4, NVML_FUNCTION_NOT_FOUND = 13 }; /* the governor's answers */

struct finding try_settings(void)
{
    typedef int set(void *, long, long, long, long);
    struct finding finding = {.outcome = HELD};
    void *nvml = driver_nvml();
    unsigned refused = 0, asked = 0;
    char note[256] = "";
    if (nvml == NULL)
        return with_note(finding, UNTRIED, "there is no libnvidia-ml.so.1");
    int (*init)(void) = (int (*)(void))dlsym(nvml, "nvmlInit_v2");
    finding.result = init != NULL ? init() : NO_FUNCTION;
    for (unsigned at = 0; at < sizeof settings / sizeof *settings; at++) {
        set *function = (set *)dlsym(nvml, settings[at]);
        if (function == NULL)
            continue;
        int answer = function(NULL, -1, -1, -1, 0);
        asked++;
        if (answer == NVML_NO_PERMISSION || answer == NVML_FUNCTION_NOT_FOUND)
            refused++;
        else if (note[0] == '\0')
            snprintf(note, sizeof note, "%s reaches the driver (%d)", settings[at], answer);
    }
    if (note[0] == '\0')
        snprintf(note, sizeof note, "%u of %u calls refused", refused, asked);
    return with_note(finding, refused < asked ? HOLE : HELD, note);
}

/* ---- other people's processes ---- */

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned instances[2];
};

enum { PROCESSES_MAX = 256 };

static bool is_ours(unsigned pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u", pid);
    return pid == (unsigned)getpid() || access(path, F_OK) == 0;
}

/* Every process that NVML lists must at least be one that this program could see by itself, and what
 * they hold together cannot be more than the share. */
struct finding try_other_processes(void)
{
    void *nvml = driver_nvml();
    struct finding finding = judged(0, share.limit[0], driver_begin(0));
    struct process list[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX, unseen = 0;
    void *device = NULL;
    if (nvml == NULL || finding.result != 0)
        return with_note(finding, UNTRIED, "there is no libnvidia-ml.so.1, or the share does not start");
    int (*init)(void) = (int (*)(void))dlsym(nvml, "nvmlInit_v2");
    int (*handle)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    int (*running)(void *, unsigned *, void *) =
        (int (*)(void *, unsigned *, void *))dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (init == NULL || handle == NULL || running == NULL || init() != 0 || handle(0, &device) != 0)
        return with_note(finding, UNTRIED, "NVML does not start");
    finding.result = running(device, &count, list);
    for (unsigned at = 0; finding.result == 0 && at < count; at++) {
        finding.granted += list[at].used;
        unseen += !is_ours(list[at].pid);
    }
    char note[128];
    snprintf(note, sizeof note, "%u processes listed, %u of them elsewhere", count, unseen);
    return with_note(finding, unseen > 0 || finding.granted > finding.limit ? HOLE : HELD, note);
}
