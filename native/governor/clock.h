/* The clock that turns are kept by, and waiting for it.
 *
 * Over a software GPU in virtual time it is the device's own, which stands still while anybody runs; over
 * everything else CLOCK_MONOTONIC, which all processes of a machine have in common. */
#ifndef GOVERNOR_CLOCK_H
#define GOVERNOR_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Once, when the driver is open: look whether it has a clock of its own. */
void clock_open(void);

uint64_t clock_now(void);

/* Whether nobody can wake a waiter, for time passes only while all wait for it. */
bool clock_is_virtual(void);

/* Sleep until `until` at the latest, less if `*wake` is no longer `seen` or somebody wakes it. NULL: nobody
 * does. In virtual time, where nobody can be woken, who could be sleeps for at most CLOCK_GLANCE at a time. */
void clock_wait(uint64_t until, uint32_t *wake, uint32_t seen);
/* Wake who waits at `wake`, in whichever process. */
void clock_wake(uint32_t *wake);

/* Sleep for something that no clock of a device brings about: a little, in real time. */
void clock_idle(void);

enum { CLOCK_GLANCE = 50000 };

#endif
