/* What of the book other processes of the share may open, and what of theirs is open here: the book's side of
 * exports.h. */
#ifndef GOVERNOR_SHARING_H
#define GOVERNOR_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "book.h"

/* The thing of that kind and key may be opened by a handle of `key`, which lives by itself as a descriptor where `named`.
 * Of something exported before: under the key that it has. The key; 0 where it could not be written down, so that the
 * handle is good for nothing in this share. */
uint64_t sharing_export(enum kind kind, uint64_t thing, uint64_t key, bool named);

/* One more holder of what another process exported under `key`; its number, or -1 where none of this share did. */
int sharing_import(uint64_t key);
/* An import of that number failed or ended: held no more, unless by another import of the same. */
void sharing_let_go(unsigned export);

#endif
