/* A launch stands still in the middle, because others want the device, and goes on where it was.
 *
 * Every worker looks at backward branches and before it runs the warps of a block. Who sees that the launch has
 * to stand still waits, and so do the others when they come there; the last one gives the device away, and all go
 * on when it is back. A worker stands still between two instructions, in its own thread, so that nothing of the
 * launch has to be saved. */
#include "machine.h"

void sg_join_workers(sg_grid *grid) {
    pthread_mutex_lock(&grid->lock);
    while (atomic_load(&grid->pausing))
        pthread_cond_wait(&grid->resumed, &grid->lock);
    grid->active++;
    pthread_mutex_unlock(&grid->lock);
}

/* The others may have waited for this one only. */
void sg_leave_workers(sg_grid *grid) {
    pthread_mutex_lock(&grid->lock);
    grid->active--;
    if (atomic_load(&grid->pausing))
        pthread_cond_broadcast(&grid->resumed);
    pthread_mutex_unlock(&grid->lock);
}

/* Under the lock, which it lets go meanwhile. Those that stood still run from the moment at which `pauses` is
 * counted on, whenever they wake. */
static void give_way(sg_grid *grid) {
    const sg_preemption *preemption = &grid->launch->preemption;
    grid->away = true;
    pthread_mutex_unlock(&grid->lock);
    preemption->give_way(preemption->context);
    pthread_mutex_lock(&grid->lock);
    grid->away = false;
    grid->parked = 0;
    grid->pauses++;
    atomic_store(&grid->pausing, false);
    pthread_cond_broadcast(&grid->resumed);
}

void sg_pause(sg_grid *grid) {
    const sg_preemption *preemption = &grid->launch->preemption;
    pthread_mutex_lock(&grid->lock);
    uint64_t pause = grid->pauses;
    /* Again, under the lock: another worker may have given way since this one looked. */
    bool due = atomic_load(&grid->pausing) || preemption->due(preemption->context);
    if (due) {
        atomic_store(&grid->pausing, true);
        grid->parked++;
    }
    while (due && grid->pauses == pause)
        if (grid->parked == grid->active && !grid->away)
            give_way(grid);
        else
            pthread_cond_wait(&grid->resumed, &grid->lock);
    pthread_mutex_unlock(&grid->lock);
}

/* The clock alone tells that the time may be over: the launch did not have the device all the while. */
bool sg_out_of_time(sg_grid *grid) {
    const sg_launch *launch = grid->launch;
    uint64_t deadline = atomic_load_explicit(&grid->deadline_ns, memory_order_relaxed), now;
    if (!deadline || (now = sg_now_ns()) <= deadline)
        return false;
    uint64_t held = launch->preemption.held_ns ? launch->preemption.held_ns(launch->preemption.context)
                                               : launch->timeout_ns;
    if (held >= launch->timeout_ns)
        return true;
    atomic_store_explicit(&grid->deadline_ns, now + launch->timeout_ns - held, memory_order_relaxed);
    return false;
}
