/* How busy: of a share, what its own processes used, and 100 % is the share.
 *
 * The driver samples by process; what it says of the device is of all tenants. Where it does not know
 * our processes (it names others than this pid namespace does), it is what the share was charged between
 * two looks; and where that is not known either, nothing is said: a zero would be a lie that a scheduler
 * acts on. What it counts for the device alone is not answered.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "governor.h"
#include "ledger.h"
#include "nvml_api.h"
#include "share.h"
#include "surface.h"
#include "words.h"

enum { PROCESSES_MAX = 1024, SAMPLES_FOR_US = 1000000 };

struct use {
    unsigned multiprocessors, memory, encoder, decoder; /* percent of the device */
    bool engines_known;                                 /* the last two */
};

unsigned nvml_percent_of_share(unsigned device, unsigned percent)
{
    unsigned long long part = (unsigned long long)percent * 1000 / share_thousandths(device);
    return part > 100 ? 100 : (unsigned)part;
}

static unsigned long long microseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* The newest sample of each of our processes, added up. */
static struct use sum_of(struct utilisation_sample *samples, unsigned count, const struct ledger_process *processes,
                         unsigned ours)
{
    struct use sum = {.engines_known = true};
    for (unsigned process = 0; process < ours; process++) {
        const struct utilisation_sample *newest = NULL;
        for (unsigned at = 0; at < count; at++)
            if (samples[at].pid == processes[process].named &&
                (newest == NULL || samples[at].time >= newest->time))
                newest = &samples[at];
        if (newest == NULL)
            continue;
        sum.multiprocessors += newest->multiprocessors;
        sum.memory += newest->memory;
        sum.encoder += newest->encoder;
        sum.decoder += newest->decoder;
    }
    return sum;
}

/* ---- where the driver does not know us: what the share was charged ---- */

enum { SHORTEST_NS = 100000000 };

static struct charged {
    uint64_t at, nanoseconds; /* of the device's time, when last looked */
    unsigned percent;
    bool known;
} charged[ALIQUOT_DEVICES_MAX];
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

/* Between two looks; the first one knows nothing yet. How much of it was memory's is not told apart. */
static nvmlReturn_t charged_use(unsigned device, struct use *use)
{
    struct charged *last = &charged[device];
    /* Never waited for: in a forked child nobody may be left to let it go. */
    if (pthread_mutex_trylock(&looking) != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    uint64_t now = now_ns(), total = load(&share.ledger->devices[device].compute), since = now - last->at;
    if (last->at == 0 || since >= SHORTEST_NS) {
        last->known = last->at != 0 && total >= last->nanoseconds;
        uint64_t busy = last->known ? total - last->nanoseconds : 0;
        last->percent = busy >= since ? 100 : (unsigned)((busy * 100 + since / 2) / since);
        last->at = now;
        last->nanoseconds = total;
    }
    *use = (struct use){.multiprocessors = last->percent, .memory = last->percent};
    nvmlReturn_t result = last->known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_unlock(&looking);
    return result;
}

/* NOT_SUPPORTED where it is not known. */
static nvmlReturn_t own_use(nvmlDevice_t device, struct use *use, unsigned *index)
{
    typedef nvmlReturn_t sample(nvmlDevice_t, void *, unsigned *, unsigned long long);
    struct ledger_process processes[ALIQUOT_SLOTS_MAX];
    struct utilisation_sample samples[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    int found = nvml_index_of(device);
    if (found < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = (unsigned)found;
    *use = (struct use){.engines_known = true};
    unsigned ours = ledger_processes(*index, processes, ALIQUOT_SLOTS_MAX);
    if (ours == 0) /* nobody's, or of other pid namespaces */
        return ledger_used(*index) == 0 ? NVML_SUCCESS : charged_use(*index, use);
    if (ours > ALIQUOT_SLOTS_MAX || !nvml_name_as_driver(device, processes, ours))
        return charged_use(*index, use);
    nvmlReturn_t result = REAL(nvmlDeviceGetProcessUtilization, sample *)(device, samples, &count,
                                                                          microseconds_now() - SAMPLES_FOR_US);
    if (result == NVML_ERROR_NOT_FOUND)
        return NVML_SUCCESS; /* nobody was busy */
    if (result == NVML_SUCCESS)
        *use = sum_of(samples, count < PROCESSES_MAX ? count : PROCESSES_MAX, processes, ours);
    return result == NVML_SUCCESS ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

struct rates {
    unsigned gpu, memory;
};

EXPORTED nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct rates *rates)
{
    struct use use;
    unsigned index;
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    nvmlReturn_t result = REAL(nvmlDeviceGetUtilizationRates, nvmlReturn_t (*)(nvmlDevice_t, void *))(device, rates);
    if (result != NVML_SUCCESS || rates == NULL)
        return result;
    result = own_use(device, &use, &index);
    if (result == NVML_SUCCESS)
        *rates = (struct rates){nvml_percent_of_share(index, use.multiprocessors),
                                nvml_percent_of_share(index, use.memory)};
    else
        *rates = (struct rates){0}; /* the card's own was in there */
    return result;
}

/* Of the engines that are not cut into shares, percent of the engine. */
#define ENGINE(name, field)                                                                        \
    EXPORTED nvmlReturn_t name(nvmlDevice_t device, unsigned *percent, unsigned *period)           \
    {                                                                                              \
        typedef nvmlReturn_t get_engine(nvmlDevice_t, unsigned *, unsigned *);                     \
        struct use use;                                                                            \
        unsigned index;                                                                            \
        if (!governor_start())                                                                     \
            return NVML_ERROR_NOT_READY;                                                           \
        nvmlReturn_t result = REAL(name, get_engine *)(device, percent, period);                   \
        if (result != NVML_SUCCESS || percent == NULL)                                             \
            return result;                                                                         \
        result = own_use(device, &use, &index);                                                    \
        if (result == NVML_SUCCESS && !use.engines_known)                                          \
            result = NVML_ERROR_NOT_SUPPORTED;                                                     \
        *percent = result != NVML_SUCCESS ? 0 : use.field > 100 ? 100 : use.field;                 \
        return result;                                                                             \
    }

ENGINE(nvmlDeviceGetEncoderUtilization, encoder)
ENGINE(nvmlDeviceGetDecoderUtilization, decoder)

/* ---- what is counted for the device alone ---- */

enum { LOWEST_USE = 1, HIGHEST_USE = 4, JPEG_USE = 8, OPTICAL_FLOW_USE = 9 }; /* nvmlSamplingType_t */

EXPORTED nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int kind, unsigned long long since, void *value_kind,
                                           unsigned *count, void *samples)
{
    typedef nvmlReturn_t get_samples(nvmlDevice_t, int, unsigned long long, void *, unsigned *, void *);
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    if ((kind >= LOWEST_USE && kind <= HIGHEST_USE) || kind == JPEG_USE || kind == OPTICAL_FLOW_USE)
        return NVML_ERROR_NOT_SUPPORTED;
    return REAL(nvmlDeviceGetSamples, get_samples *)(device, kind, since, value_kind, count, samples);
}

struct metrics_support { /* nvmlGpmSupport_t */
    unsigned version, supported;
};

EXPORTED nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, struct metrics_support *support)
{
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    nvmlReturn_t result = REAL(nvmlGpmQueryDeviceSupport, nvmlReturn_t (*)(nvmlDevice_t, void *))(device, support);
    if (result == NVML_SUCCESS && support != NULL)
        support->supported = 0;
    return result;
}

#define OF_THE_DEVICE_ALONE(name)                                                                  \
    EXPORTED nvmlReturn_t name(void)                                                               \
    {                                                                                              \
        return governor_start() ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_NOT_READY;                 \
    }

OF_THE_DEVICE_ALONE(nvmlDeviceGetConfComputeProtectedMemoryUsage)
OF_THE_DEVICE_ALONE(nvmlDeviceGetJpgUtilization)
OF_THE_DEVICE_ALONE(nvmlDeviceGetOfaUtilization)
OF_THE_DEVICE_ALONE(nvmlDeviceGetDynamicPstatesInfo)
OF_THE_DEVICE_ALONE(nvmlDeviceGetBAR1MemoryInfo)
OF_THE_DEVICE_ALONE(nvmlDeviceGetEncoderStats)
OF_THE_DEVICE_ALONE(nvmlDeviceGetFBCStats)
OF_THE_DEVICE_ALONE(nvmlDevicePerfMetricsGetSamples_v1)
OF_THE_DEVICE_ALONE(nvmlDeviceGetVgpuUtilization)
OF_THE_DEVICE_ALONE(nvmlDeviceGetVgpuInstancesUtilizationInfo)
OF_THE_DEVICE_ALONE(nvmlGpmSampleGet)
OF_THE_DEVICE_ALONE(nvmlGpmMigSampleGet)
