/* This program, started anew by itself. */
#ifndef VERIFY_PROGRAM_H
#define VERIFY_PROGRAM_H

#include <stdbool.h>

#include "attempt.h"

/* Run `attempt` in a process and an environment of its own. */
struct finding program_run(const struct attempt *attempt);

/* Execute this program, let it fill the share, and say what it got while it still has it; it ends
 * with its parent. False: it did not start. */
bool program_fill(struct finding *finding);

/* In the program so started: do that, tell `out`, and wait for `in` to close. */
int program_filled(int in, int out);

/* Delete this program's file and that of the static one beside it: from a container that has no `rm`. */
bool program_remove(void);

/* The share as arguments of this program; returns how many. */
unsigned program_arguments(char *arguments[], unsigned room);

#endif
