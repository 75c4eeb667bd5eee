#include "pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* OpenMP was rejected: its threads spin between launches, and on a loaded machine that took twenty times
 * as long as the kernel. A thread for each launch costs 50 us and the host's page faults. */
enum { IDLE_SECONDS = 10 };

typedef struct {
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t work;
    sg_job *jobs;         /* that still want helpers */
    unsigned threads, idle;
    unsigned promised;    /* helpers that jobs still want */
    pid_t owner;
} pool;

static _Atomic(pool *) current;

/* The pool of this process. Behind a fork the child has its parent's pool without the threads, and
 * perhaps with its lock held: it makes a new one and never looks at the old. A handler of
 * pthread_atfork could not tell a vfork or a raw clone. */
static pool *own_pool(void) {
    pool *found = atomic_load(&current), *mine;
    pid_t self = getpid();
    if (found && found->owner == self)
        return found;
    if (!(mine = calloc(1, sizeof *mine)))
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&mine->work, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&mine->lock, NULL);
    mine->owner = self;
    if (atomic_compare_exchange_strong(&current, &found, mine))
        return mine;
    free(mine); /* another thread of this process was faster */
    return found;
}

/* ---- helpers ---- */

static sg_job *open_job(pool *p) {
    sg_job **at = &p->jobs;
    while (*at && !(*at)->open)
        at = &(*at)->next;
    return *at;
}

static void help(pool *p, sg_job *job) {
    sg_worker worker;
    unsigned number = ++job->taken;
    job->open--;
    p->promised--;
    p->idle--;
    job->working++;
    pthread_mutex_unlock(&p->lock);
    bool opened = sg_open_worker(&worker, job->grid, number);
    if (opened) {
        sg_join_workers(job->grid);
        sg_work(&worker);
        sg_leave_workers(job->grid);
    } else {
        atomic_store(&job->grid->stopping, job->grid->launch->cooperative);
    }
    pthread_mutex_lock(&p->lock);
    sg_report(job->result, &worker);
    job->failed |= !opened;
    pthread_mutex_unlock(&p->lock);
    sg_close_worker(&worker); /* before the launch returns: its memory is the next one's */
    pthread_mutex_lock(&p->lock);
    p->idle++;
    job->working--;
    pthread_cond_signal(&job->changed);
}

static bool wait_for_work(pool *p) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    return pthread_cond_timedwait(&p->work, &p->lock, &until) != ETIMEDOUT || open_job(p);
}

static void *serve(void *argument) {
    pool *p = argument;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        sg_job *job = open_job(p);
        if (job)
            help(p, job);
        else if (!wait_for_work(p))
            break;
    }
    p->threads--;
    p->idle--;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are the tenant's: none is delivered to a thread of ours. */
static bool add_thread(pool *p) {
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = !pthread_create(&thread, &attributes, serve, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    p->threads += made;
    p->idle += made;
    return made;
}

/* ---- launches ---- */

/* Several launches share the threads that one may have; only where all of a launch's must run at once
 * are there more. */
static bool provide(pool *p, unsigned count, bool all) {
    while (p->idle < p->promised + count && (all || p->threads < count))
        if (!add_thread(p))
            break;
    return p->idle >= p->promised + count;
}

bool sg_call_helpers(sg_job *job, sg_grid *grid, sg_result *result, unsigned count, bool all) {
    *job = (sg_job){.grid = grid, .result = result};
    pthread_cond_init(&job->changed, NULL);
    pool *p = own_pool();
    if (!p)
        return !all;
    pthread_mutex_lock(&p->lock);
    bool enough = provide(p, count, all);
    if (enough || !all) {
        job->open = count;
        p->promised += count;
        job->next = p->jobs;
        p->jobs = job;
        pthread_cond_broadcast(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return enough || !all;
}

static void forget(pool *p, sg_job *job) {
    sg_job **at = &p->jobs;
    while (*at && *at != job)
        at = &(*at)->next;
    if (*at)
        *at = job->next;
    p->promised -= job->open;
    job->open = 0;
}

void sg_dismiss_helpers(sg_job *job, bool all) {
    pool *p = own_pool();
    if (p) {
        pthread_mutex_lock(&p->lock);
        while (all && job->open)
            pthread_cond_wait(&job->changed, &p->lock);
        forget(p, job);
        while (job->working)
            pthread_cond_wait(&job->changed, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
    pthread_cond_destroy(&job->changed);
}
