/* A libnvidia-ml.so.1 that does what a script says, for tests of broken drivers and odd cards.
 *
 * The script is `nvml.script` beside the library's file and is read at every nvmlInit, so that
 * two copies in two folders are two machines in one process. Its lines, in order:
 *
 *   driver VERSION | cuda NUMBER
 *   fail FUNCTION CODE [CARD]       FUNCTION returns CODE, for all cards or that one
 *   words CODE TEXT                 what nvmlErrorString says
 *   card                            begins a card; the following lines are of it
 *   name TEXT | uuid TEXT | bus TEXT
 *   KEY NUMBER                      total reserved used major minor cores sms busy temperature mig
 *                                   number ecc remap-pending remap-failed retired recovery
 *   compute|graphics|mps PID BYTES  a process; BYTES -1: not told
 *   sample PID PERCENT AGE_MS       of its utilisation
 *   growing COUNT                   the next COUNT reads of a list find that it has grown
 *
 * A number that no line gives: the function answers NOT_SUPPORTED.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { CARDS = 16, KEYS = 20, PROCESSES = 64, FAILS = 64 };
enum { COMPUTE, GRAPHICS, MPS, LISTS };

static const char *const key_names[] = {"total", "reserved", "used", "major", "minor", "cores", "sms",
                                        "busy", "temperature", "mig", "number", "ecc", "remap-pending",
                                        "remap-failed", "retired", "recovery", NULL};
enum { TOTAL, RESERVED, USED, MAJOR, MINOR, CORES, SMS, BUSY, TEMPERATURE, MIG, NUMBER, ECC, REMAP_PENDING,
       REMAP_FAILED, RETIRED, RECOVERY };

typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process;
typedef struct { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; } sample;
typedef struct {
    char name[96], uuid[96], bus[32];
    long long value[KEYS];
    process processes[LISTS][PROCESSES];
    unsigned process_count[LISTS];
    sample samples[PROCESSES];
    unsigned sample_count;
    int growing;
} card;
typedef struct { char function[64]; int code, card; } fail;

static card cards[CARDS];
static int card_count;
static fail fails[FAILS];
static int fail_count;
static char driver[80], words[1024][160];
static int cuda;

static long long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static card *new_card(void) {
    card *added = &cards[card_count++];
    memset(added, 0, sizeof *added);
    for (int i = 0; i < KEYS; i++)
        added->value[i] = -1;
    return added;
}

static void read_process(card *to, int list, const char *text) {
    process *added = &to->processes[list][to->process_count[list]++];
    long long bytes = 0;
    sscanf(text, "%u %lld", &added->pid, &bytes);
    added->used = (unsigned long long)bytes;
}

static void read_card_line(card *to, const char *key, const char *text) {
    long long age;
    if (strcmp(key, "name") == 0)
        snprintf(to->name, sizeof to->name, "%.95s", text);
    else if (strcmp(key, "uuid") == 0)
        snprintf(to->uuid, sizeof to->uuid, "%.95s", text);
    else if (strcmp(key, "bus") == 0)
        snprintf(to->bus, sizeof to->bus, "%.31s", text);
    else if (strcmp(key, "compute") == 0)
        read_process(to, COMPUTE, text);
    else if (strcmp(key, "graphics") == 0)
        read_process(to, GRAPHICS, text);
    else if (strcmp(key, "mps") == 0)
        read_process(to, MPS, text);
    else if (strcmp(key, "growing") == 0)
        to->growing = atoi(text);
    else if (strcmp(key, "sample") == 0) {
        sample *added = &to->samples[to->sample_count++];
        sscanf(text, "%u %u %lld", &added->pid, &added->sm, &age);
        added->at = (unsigned long long)(microseconds() - age * 1000);
    }
    for (int i = 0; key_names[i] != NULL; i++)
        if (strcmp(key, key_names[i]) == 0)
            to->value[i] = atoll(text);
}

static void read_line(char *line) {
    char *text = line + strcspn(line, " ");
    int code;
    if (*text != '\0')
        *text++ = '\0';
    if (strcmp(line, "driver") == 0)
        snprintf(driver, sizeof driver, "%.79s", text);
    else if (strcmp(line, "cuda") == 0)
        cuda = atoi(text);
    else if (strcmp(line, "fail") == 0) {
        fail *added = &fails[fail_count++];
        added->card = -1;
        sscanf(text, "%63s %d %d", added->function, &added->code, &added->card);
    } else if (strcmp(line, "words") == 0) {
        code = atoi(text);
        snprintf(words[code % 1024], sizeof words[0], "%.159s", text + strcspn(text, " ") + 1);
    } else if (strcmp(line, "card") == 0)
        new_card();
    else if (card_count > 0)
        read_card_line(&cards[card_count - 1], line, text);
}

static void read_script(void) {
    Dl_info info;
    char path[4200], line[160];
    card_count = fail_count = cuda = 0;
    driver[0] = '\0';
    memset(words, 0, sizeof words);
    dladdr((void *)read_script, &info);
    snprintf(path, sizeof path, "%.*s/nvml.script", (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        read_line(line);
    }
    if (file != NULL)
        fclose(file);
}

static int failing(const char *function, const card *of) {
    for (int i = 0; i < fail_count; i++)
        if (strcmp(fails[i].function, function) == 0 && (fails[i].card < 0 || of == &cards[fails[i].card]))
            return fails[i].code;
    return SUCCESS;
}

#define FAIL_IF_SCRIPTED(of)                   \
    do {                                       \
        int scripted = failing(__func__, of);  \
        if (scripted != SUCCESS)               \
            return scripted;                   \
    } while (0)

static int number(const card *of, int key, unsigned *out) {
    if (of->value[key] < 0)
        return NOT_SUPPORTED;
    *out = (unsigned)of->value[key];
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; read_script(); FAIL_IF_SCRIPTED(NULL); return SUCCESS; }
int nvmlShutdown(void) { FAIL_IF_SCRIPTED(NULL); return SUCCESS; }
const char *nvmlErrorString(int code) {
    const char *scripted = words[code < 0 ? 0 : code % 1024];
    return *scripted ? scripted : "fake error";
}

static int copy_text(const char *from, char *to, unsigned size) {
    if (strlen(from) + 1 > size)
        return INSUFFICIENT_SIZE;
    strcpy(to, from);
    return SUCCESS;
}
int nvmlSystemGetDriverVersion(char *to, unsigned size) { FAIL_IF_SCRIPTED(NULL); return copy_text(driver, to, size); }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { FAIL_IF_SCRIPTED(NULL); *to = cuda; return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *to) { FAIL_IF_SCRIPTED(NULL); *to = (unsigned)card_count; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, card **to) {
    if (index >= (unsigned)card_count)
        return INVALID;
    FAIL_IF_SCRIPTED(&cards[index]);
    *to = &cards[index];
    return SUCCESS;
}
int nvmlDeviceGetName(card *of, char *to, unsigned size) { FAIL_IF_SCRIPTED(of); return copy_text(of->name, to, size); }
int nvmlDeviceGetUUID(card *of, char *to, unsigned size) { FAIL_IF_SCRIPTED(of); return copy_text(of->uuid, to, size); }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci;
int nvmlDeviceGetPciInfo_v3(card *of, pci *to) {
    FAIL_IF_SCRIPTED(of);
    memset(to, 0, sizeof *to);
    return copy_text(of->bus, to->bus_id, sizeof to->bus_id);
}

typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
int nvmlDeviceGetMemoryInfo(card *of, memory_v1 *to) {
    FAIL_IF_SCRIPTED(of);
    if (of->value[TOTAL] < 0)
        return NOT_SUPPORTED;
    to->total = (unsigned long long)of->value[TOTAL];
    to->used = (unsigned long long)(of->value[USED] + of->value[RESERVED]);
    to->free = to->total - to->used;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(card *of, memory_v2 *to) {
    FAIL_IF_SCRIPTED(of);
    if (of->value[TOTAL] < 0)
        return NOT_SUPPORTED;
    if (to->version != (sizeof *to | 2u << 24))
        return 25;
    to->total = (unsigned long long)of->value[TOTAL];
    to->reserved = (unsigned long long)of->value[RESERVED];
    to->used = (unsigned long long)of->value[USED];
    to->free = to->total - to->reserved - to->used;
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(card *of, int *major, int *minor) {
    FAIL_IF_SCRIPTED(of);
    *minor = (int)of->value[MINOR];
    return number(of, MAJOR, (unsigned *)major);
}

typedef struct { unsigned sms, engines[5], slices[2]; unsigned long long megabytes; } attributes;
int nvmlDeviceGetAttributes_v2(card *of, attributes *to) {
    FAIL_IF_SCRIPTED(of);
    memset(to, 0, sizeof *to);
    return number(of, SMS, &to->sms);
}
int nvmlDeviceGetNumGpuCores(card *of, unsigned *to) { FAIL_IF_SCRIPTED(of); return number(of, CORES, to); }
int nvmlDeviceGetUtilizationRates(card *of, unsigned to[2]) { FAIL_IF_SCRIPTED(of); to[1] = 0; return number(of, BUSY, to); }
int nvmlDeviceGetTemperature(card *of, int sensor, unsigned *to) { (void)sensor; FAIL_IF_SCRIPTED(of); return number(of, TEMPERATURE, to); }
int nvmlDeviceGetMigMode(card *of, unsigned *now, unsigned *next) { FAIL_IF_SCRIPTED(of); *next = 0; return number(of, MIG, now); }
int nvmlDeviceGetMinorNumber(card *of, unsigned *to) { FAIL_IF_SCRIPTED(of); return number(of, NUMBER, to); }
int nvmlDeviceGetTotalEccErrors(card *of, int type, int counter, unsigned long long *to) {
    unsigned count = 0;
    FAIL_IF_SCRIPTED(of);
    if (type != 1 || counter != 0) /* uncorrected, volatile */
        return INVALID;
    int result = number(of, ECC, &count);
    *to = count;
    return result;
}
int nvmlDeviceGetRemappedRows(card *of, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    FAIL_IF_SCRIPTED(of);
    *corrected = *uncorrected = 0;
    int result = number(of, REMAP_PENDING, pending);
    return result != SUCCESS ? result : number(of, REMAP_FAILED, failed);
}
int nvmlDeviceGetRetiredPagesPendingStatus(card *of, unsigned *to) { FAIL_IF_SCRIPTED(of); return number(of, RETIRED, to); }

typedef struct {
    unsigned id, scope;
    long long at, latency;
    int type, result;
    union { unsigned number; unsigned long long room; } value;
} field;
int nvmlDeviceGetFieldValues(card *of, int count, field *values) {
    FAIL_IF_SCRIPTED(of);
    for (int i = 0; i < count; i++)
        values[i].result = values[i].id == 230 ? number(of, RECOVERY, &values[i].value.number) : NOT_SUPPORTED;
    return SUCCESS;
}

static int list(card *of, int which, unsigned *count, process *to) {
    unsigned there = of->process_count[which];
    if (to != NULL && of->growing > 0) {
        of->growing--;
        there = *count + 1;
    }
    if (there > *count) {
        *count = there;
        return INSUFFICIENT_SIZE;
    }
    memcpy(to, of->processes[which], there * sizeof *to);
    *count = there;
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(card *of, unsigned *count, process *to) { FAIL_IF_SCRIPTED(of); return list(of, COMPUTE, count, to); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(card *of, unsigned *count, process *to) { FAIL_IF_SCRIPTED(of); return list(of, GRAPHICS, count, to); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(card *of, unsigned *count, process *to) { FAIL_IF_SCRIPTED(of); return list(of, MPS, count, to); }
int nvmlDeviceGetProcessUtilization(card *of, sample *to, unsigned *count, unsigned long long since) {
    unsigned found = 0;
    FAIL_IF_SCRIPTED(of);
    for (unsigned i = 0; i < of->sample_count; i++) {
        if (of->samples[i].at < since)
            continue;
        if (to != NULL && found < *count)
            to[found] = of->samples[i];
        found++;
    }
    int enough = to != NULL && found <= *count;
    *count = found;
    return found == 0 ? NOT_FOUND : enough ? SUCCESS : INSUFFICIENT_SIZE;
}
