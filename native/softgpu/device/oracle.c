/* What each process truly had of a device: for tests, and for who explains a figure. It only reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_layout.h"

sg_model *sg_model_look(sg_device *device) {
    sg_model *model = malloc(sizeof *model);
    if (model == NULL)
        return NULL;
    while (!sg_model_copy_in(device, sg_model_published(device), model, SG_NO_SLOT))
        ;
    if (device->facts.time == SG_TIME_SCALED && sg_monotonic_ns() > model->now_ns)
        sg_model_advance(model, &device->facts, sg_monotonic_ns());
    return model;
}

static sg_account account_of(const sg_ledger *ledger, int32_t pid, bool living) {
    sg_account account = {
        .pid = pid,
        .living = living,
        .compute_ns = ledger->compute_ns,
        .copy_ns = ledger->copy_ns,
        .kernels = ledger->kernels,
        .copies = ledger->copies,
        .bytes = ledger->bytes,
        .copied = ledger->copied,
    };
    memcpy(account.name, ledger->name, sizeof account.name);
    account.name[sizeof account.name - 1] = '\0';
    return account;
}

static void read_modelled(sg_device *device, const sg_model *model, sg_busy_report *report) {
    report->now_ns = model->now_ns;
    report->compute_ns = model->compute_ns;
    report->switching_ns = model->switching_ns;
    report->switches = model->switches;
    report->preemptions = model->preemptions;
    for (uint32_t i = 0; i < model->member_count; i++) {
        const sg_member *member = &model->members[i];
        bool living = sg_member_alive(device, member);
        report->accounts[report->count++] =
            account_of(&member->ledger, living ? sg_slot_pid(device, (int)member->slot) : member->ledger.pid, living);
    }
    uint32_t kept = model->past_count < SG_MODEL_PAST ? model->past_count : SG_MODEL_PAST;
    for (uint32_t i = 1; i <= kept; i++) {
        const sg_ledger *past = &model->past[(model->past_count - i) % SG_MODEL_PAST];
        report->accounts[report->count++] = account_of(past, past->pid, false);
    }
}

/* What is not charged yet of the turn that somebody has now. */
static uint64_t running_ns(sg_device *device, int slot, uint64_t now_ns) {
    uint64_t since = sg_running_since(device, slot);
    return since == 0 || since >= now_ns ? 0 : now_ns - since;
}

static int read_real(sg_device *device, sg_busy_report *report) {
    sg_process *processes = calloc(SG_MAXIMUM_PROCESSES, sizeof *processes);
    if (processes == NULL)
        return -ENOMEM;
    report->now_ns = sg_monotonic_ns();
    report->compute_ns = sg_busy_ns(device) + running_ns(device, -1, report->now_ns);
    report->switches = atomic_load(&device->state->switches);
    report->preemptions = atomic_load(&device->state->preemptions);
    report->count = sg_processes(device, processes, SG_MAXIMUM_PROCESSES);
    for (int i = 0; i < report->count; i++) {
        sg_account *account = &report->accounts[i];
        *account = (sg_account){.pid = processes[i].pid, .living = true, .compute_ns = processes[i].busy_ns + running_ns(device, processes[i].slot, report->now_ns),
                                .kernels = processes[i].launches};
        memcpy(account->name, processes[i].name, sizeof account->name);
    }
    free(processes);
    return 0;
}

int sg_busy_read(sg_device *device, sg_busy_report *report) {
    memset(report, 0, sizeof *report);
    report->time = device->facts.time;
    report->slice_ns = (uint64_t)device->facts.time_slice_ns;
    if (!sg_model_used(device))
        return read_real(device, report);
    sg_model *model = sg_model_look(device);
    if (model == NULL)
        return -ENOMEM;
    read_modelled(device, model, report);
    free(model);
    return 0;
}
