#include "../engine.h"
#include <stdio.h>
sg_status sg_link(const char *const *texts, const size_t *lengths, size_t count, char *log, size_t log_size,
                  char **merged, size_t *merged_length) {
    (void)texts, (void)lengths, (void)count, (void)merged, (void)merged_length;
    snprintf(log, log_size, "linking is not there yet");
    return SG_UNSUPPORTED;
}
