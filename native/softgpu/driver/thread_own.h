/* What a thread has of its own, behind one pointer in thread-local memory.
 *
 * Only pointers and flags may lie in thread-local memory itself: it must fit the few hundred bytes that every thread
 * has set aside for libraries loaded later, for the initial-exec model finds variables nowhere else. The other models
 * ask the loader for a variable's place, and the loader of a static program that opens us is not the one they ask
 * (glibc 2.36): it answers with a wild address. */
#ifndef SG_THREAD_OWN_H
#define SG_THREAD_OWN_H

#include <stddef.h>

/* `*place`, made as zeros of `size` bytes where it is NULL, and freed when the thread ends. NULL: out of memory. */
void *sg_thread_own(void **place, size_t size);

#endif
