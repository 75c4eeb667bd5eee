/* The slots of the ledger: one a process, alive while its lock is held. Everything here is called
 * under the ledger's turn. */
#ifndef GOVERNOR_SLOTS_H
#define GOVERNOR_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/* Open the ledger's file for locks. False: refused. */
bool slots_open(bool writable);

/* Make sure this process has a slot. False: refused, all are taken or the file cannot be locked. */
bool slots_claim(void);
bool slots_claimed(void);

/* In a forked child: the slot and its lock are the parent's. */
void slots_forget(void);

/* How many slots there are to look at. */
unsigned slots_in_use(void);
/* Where the kernel does not say, alive: bytes are then counted too long, never too short. */
bool slots_alive(unsigned slot);

/* Change the own slot's bytes, bringing their integral up to now. */
void slots_change_own(unsigned device, uint64_t more, uint64_t less);

/* Clear every slot whose process is gone. */
void slots_reap(void);

/* The inode that names this process's pid namespace; 0 unknown. */
uint64_t slots_pid_namespace(void);

#endif
