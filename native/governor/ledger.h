/* What the share's processes have, in the file they all map.
 *
 * Every process owns one slot and writes its own bytes there; the limit is held at the total of all slots,
 * which changes with a slot as one step (total.h), so no crash can leave either wrong: a dead slot's
 * lock is gone with its process, and whoever next needs room clears it. For its own slot a process
 * believes what it remembers and not the file, which all others may write.
 */
#ifndef GOVERNOR_LEDGER_H
#define GOVERNOR_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum charge { CHARGED, OVER_LIMIT, NO_SLOT };

/* Once, after share_open. */
bool ledger_open(bool writable);

/* Make sure this process has a slot. False: refused, all are taken or the file cannot be locked. */
bool ledger_claim(void);

enum charge ledger_charge(unsigned device, uint64_t bytes);
/* Bytes that the driver has taken already: also past the limit, and the share then gets no more. */
void ledger_charge_taken(unsigned device, uint64_t bytes);
void ledger_release(unsigned device, uint64_t bytes);
/* An allocation was turned away at the limit. */
void ledger_denied(unsigned device);

/* Memory of this process that others of the share may open by a handle of that key, which is the name of an open file
 * (descriptors.h) where `named`; the export's number, or -1. Withdrawn before the process is credited for it (exports.h). */
int ledger_export(uint64_t key, unsigned device, uint64_t size, bool named);
uint64_t ledger_export_key(unsigned export);
void ledger_withdraw(unsigned export);
/* Memory that another process of the share exported; -1 where none did. */
int ledger_import(uint64_t key);
void ledger_let_go(unsigned export);

/* `ns` of `device`'s time were charged to this process. */
void ledger_computed(unsigned device, uint64_t ns);

/* Bytes of all live processes. */
uint64_t ledger_used(unsigned device);

/* A number of this process that the share's keeper can tell from its slot. */
uint64_t ledger_own_number(void);

struct ledger_process {
    pid_t pid;
    pid_t outer;    /* in the node's pid namespace; 0 where the keeper did not say */
    unsigned named; /* by the driver (nvml_names.c) */
    uint64_t used;
};

/* The live processes of this pid namespace that hold bytes of `device`; how many there are, of
 * which at most `room` are written. */
unsigned ledger_processes(unsigned device, struct ledger_process *out, unsigned room);

#endif
