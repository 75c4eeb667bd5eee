/* What turns.c asks of the neighbours' seats. Of turns.h only. */
#ifndef GOVERNOR_NEIGHBOURS_H
#define GOVERNOR_NEIGHBOURS_H

#include "turns.h"

/* How far who sits at `at` is, believed as far as it can be. */
uint64_t neighbours_virtual(struct turns *turns, int at);
/* What other processes of our share were charged since we last looked is charged to the share. */
void neighbours_add_siblings(struct turns *turns, uint64_t now);
/* We are back after a time without work: with what was saved up to then, but no more than a lag. */
void neighbours_catch_up(struct turns *turns, uint64_t now);
/* Whether anybody of a rank above ours, below `most`, is about. */
bool neighbours_outrank(const struct turns *turns, uint64_t most, uint64_t now);

#endif
