/* cuInit: the driver starts with the share's devices in view and no others. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"
#include "cuda_api.h"
#include "cuda_devices.h"
#include "gate.h"
#include "governor.h"
#include "ledger.h"
#include "share.h"
#include "surface.h"
#include "visible.h"

extern char **environ;

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool started;

static void in_child(void)
{
    pthread_mutex_init(&starting, NULL); /* whoever was starting is not in the child */
}

/* The environment with one variable replaced, as a new array over the old strings. setenv was
 * rejected: it moves and rewrites what another thread may be reading. */
static char **environment_with(char **old, char *assignment)
{
    size_t count = 0, name = (size_t)(strchr(assignment, '=') - assignment) + 1;
    while (old != NULL && old[count] != NULL)
        count++;
    char **copy = calloc(count + 2, sizeof *copy);
    if (copy == NULL)
        return NULL;
    size_t kept = 0;
    for (size_t at = 0; at < count; at++)
        if (strncmp(old[at], assignment, name) != 0)
            copy[kept++] = old[at];
    copy[kept] = assignment;
    return copy;
}

/* Back to `before`. Where somebody's setenv has copied our array meanwhile, only our entry in the
 * copy goes: out where there was none, else back to the old string. */
static void restore_environment(char **before, char **during, char *assignment, char *value)
{
    if (environ == during) {
        environ = before;
        return;
    }
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        if (*entry == assignment && value != NULL)
            *entry = value - strlen("CUDA_VISIBLE_DEVICES=");
        else if (*entry == assignment)
            for (char **next = entry; (*next = *(next + 1)) != NULL; next++)
                ;
}

/* A driver reads CUDA_VISIBLE_DEVICES once, in its first cuInit. The tenant's own value only ever
 * narrows the share, and is back in place when we return. */
static CUresult start_driver(unsigned flags)
{
    static char assignment[VISIBLE_BYTES]; /* stays valid for a thread that read the swapped array */
    char *asked = getenv("CUDA_VISIBLE_DEVICES");
    visible_devices(assignment, asked);
    static char **during; /* never freed: another thread may be reading it; at most one a failed start */
    char **before = environ;
    during = environment_with(before, assignment);
    if (during == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    environ = during;
    CUresult result = REAL(cuInit, CUresult (*)(unsigned))(flags);
    restore_environment(before, during, assignment, asked);
    return result;
}

EXPORTED CUresult cuInit(unsigned flags)
{
    static bool watching_forks;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (atomic_load_explicit(&started, memory_order_acquire))
        return REAL(cuInit, CUresult (*)(unsigned))(flags);
    pthread_mutex_lock(&starting);
    if (!watching_forks) {
        watching_forks = true;
        pthread_atfork(NULL, NULL, in_child);
        book_open();
        gates_open();
    }
    CUresult result = atomic_load(&started) ? REAL(cuInit, CUresult (*)(unsigned))(flags) : start_driver(flags);
    if (result == CUDA_SUCCESS && (!devices_learn() || !ledger_claim()))
        result = CUDA_ERROR_SYSTEM_NOT_READY;
    if (result == CUDA_SUCCESS)
        atomic_store_explicit(&started, true, memory_order_release);
    pthread_mutex_unlock(&starting);
    return result;
}
