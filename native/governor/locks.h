/* The write locks on the slots' first bytes: a slot is alive while somebody holds its lock.
 *
 * Such a lock (OFD) belongs to an open file description and ends with the last thing that refers to
 * that: a file descriptor or a mapping. This process's lock hangs on a mapping, and no descriptor
 * stays open. A descriptor would be a number in a table that is the program's: one that closes all
 * its numbers (closefrom, a daemon's start) would end the lock, and one that reuses the number would
 * have its own file closed by us. A child has the mapping of nobody (MADV_DONTFORK), so it keeps no
 * dead parent's slot alive, not even one made without fork()'s handlers; exec and death unmap it.
 *
 * Where a mapping does not carry the lock (overlayfs of some kernels maps another file than was
 * opened; it is tried each time), a descriptor is kept after all, looked at before each use, and the
 * lock taken anew where the program closed it.
 *
 * Everything here is called under the ledger's turn.
 */
#ifndef GOVERNOR_LOCKS_H
#define GOVERNOR_LOCKS_H

#include <stdbool.h>

/* Whether the ledger can be opened; errno where not. */
bool locks_open(bool writable);

enum lock {
    LOCK_MINE,
    LOCK_OTHERS, /* somebody else holds it */
    LOCK_FAILED, /* with errno */
};

/* Beside the slots' locks, numbered as the slot after the last: that of the table of exports. */
enum { LOCK_EXPORTS = 256 };

/* Asking works on a description that the first call opens and locks_end() closes. */
enum lock locks_take(unsigned slot);
void locks_drop(unsigned slot);
/* Where the kernel does not say, true: bytes are then counted too long, never too short. */
bool locks_taken(unsigned slot);
void locks_end(void);

/* Make the lock just taken last as long as this program, or lose it. Ends the asking. */
enum lock locks_keep(unsigned slot);
/* Whether the kept lock still holds; false where it had to hang on a descriptor that is lost. */
bool locks_kept(unsigned slot);

/* In a forked child: what is kept is the parent's. */
void locks_forget(void);

#endif
