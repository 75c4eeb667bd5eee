/* The slots of the ledger: one a process, alive while its lock is held. Everything here is called
 * under the ledger's turn. */
#ifndef GOVERNOR_SLOTS_H
#define GOVERNOR_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the ledger's file can be opened for locks. False: refused. */
bool slots_open(bool writable);

/* Make sure this process has a slot. False: refused, all are taken or the file cannot be locked. */
bool slots_claim(void);
bool slots_claimed(void);

/* Say in the own slot which limits this process goes by; the slot is claimed. */
void slots_saw_limits(uint32_t generation);

/* In a forked child: the slot and its lock are the parent's. */
void slots_forget(void);

/* How many slots there are to look at. */
unsigned slots_in_use(void);
/* Bytes of `slot`; of the own one as this process knows them, whatever the file says. */
uint64_t slots_used(unsigned slot, unsigned device);
/* Where the kernel does not say, alive: bytes are then counted too long, never too short. Holds
 * the ledger open until slots_asked(). */
bool slots_alive(unsigned slot);
void slots_asked(void);

/* Charge the own slot what the keeper says that the driver has for this process beyond what it is charged, at
 * most `most`; or give back what it says no longer. A process that has no slot yet has nothing. */
void slots_true_up(unsigned device, uint64_t most);

/* Change the own bytes, bringing their integral up to now. False, and nothing is changed: all together
 * would have more than `limit`. */
bool slots_change_own(unsigned device, uint64_t more, uint64_t less, uint64_t limit);
/* The own slot's number, once there is one. */
unsigned slots_own(void);
/* What this process has. */
uint64_t slots_held(unsigned device);
/* Set the share's total right where somebody wrote into the file. */
void slots_mend(unsigned device);

/* `ns` more of `device`'s time was charged to this process. */
void slots_add_compute(unsigned device, uint64_t ns);

/* Clear every slot whose process is gone. */
void slots_reap(void);

/* The pid in the node's namespace of the process in `slot`, as the keeper says; 0 where it did not. */
uint64_t slots_outer_pid(unsigned slot);

/* A number of this process, never 0: the keeper makes the same of what stands in its slot. */
uint64_t slots_own_number(void);

/* The inode that names this process's pid namespace; 0 unknown. */
uint64_t slots_pid_namespace(void);

#endif
