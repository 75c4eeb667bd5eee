/* Who holds the clock up: threads that run, by what the model knows, and perhaps never call again.
 *
 * The dead are taken out at once. Who is stopped (SIGSTOP, a debugger) is passed by after LOOK_NS, and who
 * uses no CPU time for IDLE_NS: it sits in a wait that is not ours, or its cgroup is frozen. Who computes is
 * waited for as long as it does: that is what virtual time promises. Passed by means absent: the clock goes
 * on without it until its next call. A process of another pid namespace that we cannot see counts as idle. */
#include <stdio.h>
#include <unistd.h>

#include "clock.h"

#define LOOK_NS UINT64_C(100000000)
#define IDLE_NS UINT64_C(1000000000)

/* Of a thread of ours, else of a whole process: what is seen of another's threads is not numbered alike. */
static bool cpu_ticks(const sg_device *device, const sg_member *member, uint64_t thread, uint64_t *ticks,
                      bool *stopped) {
    char path[64];
    uint64_t start;
    if (member->slot == (uint32_t)device->slot) {
        snprintf(path, sizeof path, "/proc/self/task/%llu/stat", (unsigned long long)thread);
        return sg_read_stat(path, &start, ticks, stopped);
    }
    snprintf(path, sizeof path, "/proc/%d/stat", sg_slot_pid(device, (int)member->slot));
    return sg_read_stat(path, &start, ticks, stopped) && start == member->ledger.start_ticks;
}

/* True when nobody should wait for it any more. */
static bool is_idle(const sg_device *device, const sg_member *member, uint64_t thread, sg_watched *seen) {
    uint64_t now = sg_monotonic_ns(), ticks = 0;
    uint64_t submitted = member->first + member->count;
    bool stopped = false;
    if (seen->thread != thread || seen->incarnation != member->incarnation || seen->submitted != submitted) {
        *seen = (sg_watched){.incarnation = member->incarnation, .thread = thread, .submitted = submitted,
                             .since_ns = now, .looked_ns = now};
        (void)cpu_ticks(device, member, thread, &seen->cpu_ticks, &stopped);
        return false;
    }
    if (now - seen->looked_ns < LOOK_NS)
        return false;
    seen->looked_ns = now;
    bool visible = cpu_ticks(device, member, thread, &ticks, &stopped);
    if (visible && !stopped && ticks != seen->cpu_ticks) {
        seen->cpu_ticks = ticks;
        seen->since_ns = now;
    }
    return (visible && stopped) || now - seen->since_ns >= IDLE_NS;
}

static bool take_out_dead(sg_device *device, sg_model *model) {
    bool any = false;
    for (uint32_t i = model->member_count; i-- > 0;)
        if (model->members[i].slot != (uint32_t)device->slot && !sg_member_alive(device, &model->members[i])) {
            sg_model_dismiss(model, (int)i);
            any = true;
        }
    return any;
}

bool sg_watch_look(sg_device *device, sg_watch *watch) {
    struct sg_clock *clock = device->clock;
    bool changed;
    do {
        int error;
        if (sg_step_begin(device, &error) == NULL)
            return false;
        changed = take_out_dead(device, &clock->model);
        for (uint32_t i = 0; i < clock->model.thread_count; i++) {
            sg_thread *thread = &clock->model.threads[i];
            if (thread->state != SG_THREAD_RUNS)
                watch->others[i] = (sg_watched){0};
            else if (is_idle(device, &clock->model.members[thread->member], thread->thread, &watch->others[i])) {
                thread->state = SG_THREAD_ABSENT;
                changed = true;
            }
        }
        if (!changed) {
            clock->intact = false;
            return false;
        }
    } while (!sg_step_end(device));
    return true;
}
