/* What a share holds of a device, in one word that every account's steps go through.
 *
 * An account is a slot, or an export (exports.h). A step of it changes its own word and `charged` of
 * the device by the same bytes, and a kill between the two must not leave them apart. So a step is
 * first written down as an intent, under a sequence number of the account; then `charged` is changed
 * in one compare-and-swap together with the word beside it, which names the account and the number; then
 * the account's own word follows. Whoever changes `charged` next first notes in the account that it was
 * seen. So it can be told of every account that died, whether its last step happened: it names itself
 * in `charged`, or somebody noted it, or it did not happen.
 *
 * No lock between processes, no scan over them, and nobody waits for anybody. The compare-and-swap is also
 * where the limit is held: of several that race, each sees what the one before took.
 *
 * Everything is in a file that the share's processes may all write: numbers in it are bounded before use,
 * and an account that knows better what it holds (slots.c) says so.
 */
#ifndef GOVERNOR_TOTAL_H
#define GOVERNOR_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#define TOTAL_NO_LIMIT UINT64_MAX

/* Account numbers: slot N is N, export N comes after all slots. */
enum { TOTAL_EXPORTS = 256 };

/* A step of `account` on `device`: its word goes from `before` to `after`. Only by who holds the account's
 * lock. False, and nothing is changed: the share would have more than `limit`. */
bool total_step(unsigned account, unsigned device, uint64_t before, uint64_t after, uint64_t limit);

/* Finish or forget the last step of an account whose process is gone and whose lock we hold. */
void total_finish(unsigned account);

/* Bytes of all accounts, those of dead processes that nobody has cleared included. */
uint64_t total_bytes(unsigned device);

/* Set right a total that is not the sum of its accounts, as only somebody's writing into the file
 * makes it. `own` is our account, of which `held` is true whatever the file says. */
void total_mend(unsigned device, unsigned own, uint64_t held);

#endif
