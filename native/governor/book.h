/* What this process holds: every pointer, handle, mapping, pool and context, with what it was
 * charged. Open addressing in a private mapping; no allocator of the tenant's is used.
 *
 * Entries are looked at and changed under book_lock(), which is never held across a call into the
 * driver. An entry leaves the book before the driver frees the thing: once the driver has, another
 * thread may be given the same address.
 */
#ifndef GOVERNOR_BOOK_H
#define GOVERNOR_BOOK_H

#include <stdbool.h>
#include <stdint.h>

enum kind {
    KIND_FREE, /* an empty place in the table */
    KIND_MEMORY,
    KIND_ARRAY,
    KIND_MIPMAP,
    KIND_HANDLE,  /* cuMemCreate */
    KIND_MAPPING, /* cuMemMap; owner is the handle, bytes are addresses and not charged */
    KIND_IMPORT, /* a pointer to memory of another process of the share, who pays for it */
    KIND_MODULE, /* code and static data, a library's too */
    KIND_POOL,
    KIND_GRAPH, /* what one executable graph may take of the graphs' memory, by device */
    KIND_CONTEXT,
    KIND_GREEN_CONTEXT,
};

struct entry {
    uint64_t key;   /* pointer or handle */
    uint64_t bytes; /* charged; of a pool's memory: counted in the pool's `bytes` instead */
    uint64_t owner; /* context; of a mapping the handle */
    uint64_t pool;  /* of memory in a pool, and of a graph, else 0 */
    uint64_t live;  /* KIND_POOL: bytes asked of it and not freed; KIND_CONTEXT: bytes that launches took */
    uint64_t ahead; /* KIND_CONTEXT: of `bytes`, what limits allow and the driver was not seen to take yet */
    uint32_t references;
    uint16_t export; /* its number in the ledger, plus one; 0 none */
    uint8_t kind;
    uint8_t device; /* of the share */
    bool primary;   /* KIND_CONTEXT: the device's primary one */
    bool gone;      /* KIND_POOL: destroyed while memory of it lives */
    bool imported;  /* KIND_HANDLE: of another process's memory, who pays for it */
};

void book_open(void);
void book_lock(void);
void book_unlock(void);

/* Room for one more entry, before the thing is made. False: out of memory. */
bool book_has_room(void);

/* Whether `context` is in the book, and its device. False also where only a look into the book tells. */
bool book_shows_context(uint64_t context, unsigned *device);

/* The rest under book_lock(). */

/* An entry of the same kind and key is replaced: its thing is gone. */
void book_put(const struct entry *entry);
/* The entry in place, until the next book_put or book_take; NULL where there is none. */
struct entry *book_find(enum kind kind, uint64_t key);
/* Out of the book; back by book_put where the driver refused to end it. */
bool book_take(enum kind kind, uint64_t key, struct entry *out);
/* The first entry at or after *at; *at then stands behind it. NULL at the end. */
struct entry *book_next(uint64_t *at);

#endif
