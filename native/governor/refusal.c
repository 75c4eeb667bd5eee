#include "refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static char sentence[1024];
static atomic_int phase; /* 0 none, 1 being written, 2 readable */

void refusal_set(const char *first, ...)
{
    int expected = 0;
    if (!atomic_compare_exchange_strong(&phase, &expected, 1))
        return;
    size_t length = 0;
    va_list parts;
    va_start(parts, first);
    for (const char *part = first; part != NULL; part = va_arg(parts, const char *))
        while (*part != '\0' && length < sizeof sentence - 1)
            sentence[length++] = *part++;
    va_end(parts);
    sentence[length] = '\0';
    atomic_store(&phase, 2);
}

const char *refusal_sentence(void)
{
    return atomic_load(&phase) == 2 ? sentence : NULL;
}

const char *refusal_errno(void)
{
    static char text[128]; /* two failing threads may mix their words; the cause is the same */
    return strerror_r(errno, text, sizeof text);
}
