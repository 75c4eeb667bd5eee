/* Memory that several processes of the share hold: who exported it, who opened it, who pays.
 *
 * The exporter pays in its slot as long as it has the memory. Goes it, by its free or by its death, while others
 * hold the memory, so the memory stays on the card, and is charged to the share as an account of its own until
 * the last of them lets go. A holder is a bit of its slot, which goes with the slot. Of memory given out as a file
 * descriptor the open file is a holder as well (descriptors.h), also in the mail and in processes that never import it.
 *
 * The table is changed under a lock of the kernel's (locks.h), which a kill opens. Everything here is called
 * under the ledger's turn, by a process with a slot.
 */
#ifndef GOVERNOR_EXPORTS_H
#define GOVERNOR_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

enum { EXPORT_NONE = -1 };

/* What this process, in `slot`, exported under a handle of that key. The export's number; EXPORT_NONE where the
 * table is full or cannot be locked. */
int exports_publish(unsigned slot, uint64_t key, unsigned device, uint64_t size, bool named);
uint64_t exports_key(unsigned export);
/* The exporter is about to be credited for it. */
void exports_withdraw(unsigned slot, unsigned export);

/* One more holder. EXPORT_NONE where nobody of this share exported it. */
int exports_hold(unsigned slot, uint64_t key);
void exports_let_go(unsigned slot, unsigned export);

/* Memory that was left in open files alone, none of which is open any more. */
void exports_sweep(void);

/* The process of `slot`, whose lock we hold, is dead. False where the table could not be locked now. */
bool exports_of_dead(unsigned slot);

/* Bytes charged for memory whose exporter is gone and that a living process or an open file holds. */
uint64_t exports_bytes(unsigned device, bool (*is_alive)(unsigned slot));

#endif
