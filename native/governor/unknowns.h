/* Functions that programs of the share asked for, that the driver has, and that the table of symbols lacks: written
 * once each into the ledger, for whoever wonders why a program does without. */
#ifndef GOVERNOR_UNKNOWNS_H
#define GOVERNOR_UNKNOWNS_H

/* Where the ledger has room left; the first ones stay. */
void unknowns_note(const char *name);

#endif
