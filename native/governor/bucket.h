/* The ceiling of a share: GPU time at its rate, and what was saved up for a little.
 *
 * One word, in the ledger, so that all processes of the share draw on it: the moment up to which the share
 * has spent what it may. Spending moves it on by the time that earns as much. Pure but for that word. */
#ifndef GOVERNOR_BUCKET_H
#define GOVERNOR_BUCKET_H

#include <stdint.h>

/* Spend `ns` of GPU time (or give back, below 0) at `weight` thousandths of the device. */
void bucket_spend(uint64_t *ready, int64_t ns, uint32_t weight, uint64_t now);

/* 0: the share may launch. Else when it may, if nothing is given back before: `more` nanoseconds of GPU time
 * have been earned by then, so that who was stopped once does not run launch by launch. */
uint64_t bucket_wait(const uint64_t *ready, uint64_t more, uint32_t weight, uint64_t now);

#endif
