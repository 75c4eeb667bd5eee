/* Field values: the same answers as the functions give, asked for by number and several at once. A number that
 * is not in the table is not supported, in its own place of the array. */
#include "nvml.h"

typedef enum { TO_UNSIGNED, TO_LONG } width;

typedef struct {
    unsigned field;
    width width;
    nvmlReturn_t (*read)(nvmlDevice_t handle, unsigned long long *value);
} reader;

/* A reader from a function with one unsigned out-parameter. */
#define READER(name, call)                                                                                   \
    static nvmlReturn_t name(nvmlDevice_t handle, unsigned long long *value) {                               \
        unsigned first = 0, second = 0;                                                                      \
        nvmlReturn_t result = call;                                                                          \
        (void)second;                                                                                        \
        *value = first;                                                                                      \
        return result;                                                                                       \
    }
READER(ecc_current, nvmlDeviceGetEccMode(handle, &first, &second))
READER(ecc_pending, nvmlDeviceGetEccMode(handle, &second, &first))
READER(retired_single, nvmlDeviceGetRetiredPages(handle, 0, &first, NULL))
READER(retired_double, nvmlDeviceGetRetiredPages(handle, 1, &first, NULL))
READER(retired_pending, nvmlDeviceGetRetiredPagesPendingStatus(handle, &first))
READER(power, nvmlDeviceGetPowerUsage(handle, &first))
READER(power_least, nvmlDeviceGetPowerManagementLimitConstraints(handle, &first, &second))
READER(power_most, nvmlDeviceGetPowerManagementLimitConstraints(handle, &second, &first))
READER(power_limit, nvmlDeviceGetPowerManagementLimit(handle, &first))
READER(power_default, nvmlDeviceGetPowerManagementDefaultLimit(handle, &first))
READER(power_enforced, nvmlDeviceGetEnforcedPowerLimit(handle, &first))

static nvmlReturn_t remapped(nvmlDevice_t handle, unsigned which, unsigned long long *value) {
    unsigned rows[4] = {0};
    nvmlReturn_t result = nvmlDeviceGetRemappedRows(handle, &rows[0], &rows[1], &rows[2], &rows[3]);
    *value = rows[which];
    return result;
}
#define REMAPPED(name, which)                                                                                \
    static nvmlReturn_t name(nvmlDevice_t handle, unsigned long long *value) {                               \
        return remapped(handle, which, value);                                                               \
    }
REMAPPED(remapped_corrected, 0)
REMAPPED(remapped_uncorrected, 1)
REMAPPED(remapped_pending, 2)
REMAPPED(remapped_failed, 3)

/* Type 0 is corrected; counter 0 is volatile. */
#define ECC_TOTAL(name, type, counter)                                                                       \
    static nvmlReturn_t name(nvmlDevice_t handle, unsigned long long *value) {                               \
        return nvmlDeviceGetTotalEccErrors(handle, type, counter, value);                                    \
    }
ECC_TOTAL(single_volatile, 0, 0)
ECC_TOTAL(double_volatile, 1, 0)
ECC_TOTAL(single_aggregate, 0, 1)
ECC_TOTAL(double_aggregate, 1, 1)

/* Links between cards, and what was ever lost to a limit: there are none, and nothing was. */
static nvmlReturn_t none(nvmlDevice_t handle, unsigned long long *value) {
    sg_device *device;
    *value = 0;
    return sg_session_device(handle, &device);
}

static const reader readers[] = {
    {1, TO_UNSIGNED, ecc_current},
    {2, TO_UNSIGNED, ecc_pending},
    {3, TO_LONG, single_volatile},
    {4, TO_LONG, double_volatile},
    {5, TO_LONG, single_aggregate},
    {6, TO_LONG, double_aggregate},
    {11, TO_LONG, single_volatile}, /* of device memory, where all of them are */
    {12, TO_LONG, double_volatile},
    {22, TO_LONG, single_aggregate},
    {23, TO_LONG, double_aggregate},
    {29, TO_UNSIGNED, retired_single},
    {30, TO_UNSIGNED, retired_double},
    {31, TO_UNSIGNED, retired_pending},
    {74, TO_LONG, none}, /* PERF_POLICY_POWER ... */
    {75, TO_LONG, none},
    {76, TO_LONG, none},
    {77, TO_LONG, none},
    {78, TO_LONG, none},
    {79, TO_LONG, none},
    {80, TO_LONG, none},
    {81, TO_LONG, none}, /* ... TOTAL_BASE_CLOCKS */
    {83, TO_LONG, nvmlDeviceGetTotalEnergyConsumption},
    {91, TO_UNSIGNED, none}, /* NVLINK_LINK_COUNT */
    {142, TO_UNSIGNED, remapped_corrected},
    {143, TO_UNSIGNED, remapped_uncorrected},
    {144, TO_UNSIGNED, remapped_pending},
    {145, TO_UNSIGNED, remapped_failed},
    {170, TO_UNSIGNED, none}, /* C2C_LINK_COUNT */
    {185, TO_UNSIGNED, power}, /* average */
    {186, TO_UNSIGNED, power}, /* at this moment: the model knows no shorter one than a second */
    {187, TO_UNSIGNED, power_least},
    {188, TO_UNSIGNED, power_most},
    {189, TO_UNSIGNED, power_default},
    {190, TO_UNSIGNED, power_enforced},
    {192, TO_UNSIGNED, power_limit},
};

static void read_one(nvmlDevice_t handle, nvmlFieldValue_t *field) {
    unsigned long long value = 0, began = sg_microseconds_now();
    field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        if (readers[i].field != field->fieldId)
            continue;
        field->nvmlReturn = readers[i].read(handle, &value);
        field->valueType = readers[i].width == TO_LONG ? SG_VALUE_UNSIGNED_LONG_LONG : SG_VALUE_UNSIGNED_INT;
        field->value = (nvmlValue_t){.ullVal = value}; /* little-endian: the low half is uiVal */
    }
    field->timestamp = (long long)sg_microseconds_now();
    field->latencyUsec = field->timestamp - (long long)began;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t *fields) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, fields, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (count < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++)
        read_one(handle, &fields[i]);
    return NVML_SUCCESS;
}
