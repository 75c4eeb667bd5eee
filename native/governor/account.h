/* The steps that every accounted function takes around its driver call: the intent is charged
 * before, undone where the driver fails, and written into the book where it succeeds. */
#ifndef GOVERNOR_ACCOUNT_H
#define GOVERNOR_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "book.h"
#include "cuda_api.h"

/* Charge `bytes`, taking back what our own pools keep idle where they do not fit otherwise.
 * CUDA_ERROR_OUT_OF_MEMORY at the limit, and one `denied` more. */
CUresult account_charge(unsigned device, uint64_t bytes);
void account_release(unsigned device, uint64_t bytes);

/* The current context and its device. A context that came into being behind our back (export
 * tables retain the primary one) is charged here, when first seen. */
CUresult account_place(uint64_t *context, unsigned *device);

/* Begin an allocation of `kind` where the current thread stands. */
CUresult account_begin(struct entry *entry, enum kind kind, uint64_t bytes);
/* The same on a device named by the caller, outside any context. */
CUresult account_begin_on(struct entry *entry, enum kind kind, uint64_t bytes, int device);
/* What the driver said of it: `key` is the pointer or handle where it succeeded. */
CUresult account_end(struct entry *entry, CUresult result, uint64_t key);
/* The true size, once it is known. False: it does not fit; the entry still has the old one. */
bool account_correct(struct entry *entry, uint64_t bytes);

/* Before the driver frees it; false where the book does not know it and nothing is to be done. */
bool account_take(enum kind kind, uint64_t key, struct entry *entry);
/* What the driver said. `known` is what account_take said. */
CUresult account_gave(bool known, const struct entry *entry, CUresult result);

/* Everything that `context` owned is gone, and so is the context itself unless `keep`. */
void account_drop_context(uint64_t context, bool keep);

/* a × b, or 2^64-1 where that does not fit: no share has so much. */
uint64_t account_product(uint64_t a, uint64_t b);

#endif
