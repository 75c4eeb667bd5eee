/* The life of a governor in one process: not started, then ready or closed, for ever. */
#ifndef GOVERNOR_H
#define GOVERNOR_H

#include <stdbool.h>

/* Find the share, open its files and the driver, fill the table. The first call does it, under a
 * lock; later ones are one load. False: the share cannot start, every function answers so, and
 * refusal_sentence() says why. */
bool governor_start(void);

/* Close a share that had started: something was found that must not be. */
void governor_close(void);

#endif
