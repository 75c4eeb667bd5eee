/* A name on an open file: who got the descriptor from another process reads there what it is.
 *
 * A driver gives memory out as a file descriptor that says nothing of whose memory it is. A lock of the kernel's hangs
 * on the open file itself, goes with it through sockets and forks, and ends with the last descriptor of it: so a lock
 * far behind every file's end, on the byte whose number is the key, is the name. No process needs to live for it, and
 * /proc/locks tells whether anybody still has the file open. */
#ifndef GOVERNOR_DESCRIPTORS_H
#define GOVERNOR_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* A key that nobody else has; 0 where the kernel gives no random number. */
uint64_t descriptors_new_key(void);

/* Name the open file. False: it takes no such name, or nobody could read it here. */
bool descriptors_name(int descriptor, uint64_t key);
/* The key that it was given; 0 none. */
uint64_t descriptors_key(int descriptor);
/* Whether an open file of that name is left anywhere. True where it cannot be known. */
bool descriptors_open(uint64_t key);

#endif
