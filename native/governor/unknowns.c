#include "unknowns.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "aliquot_abi.h"
#include "share.h"
#include "words.h"

enum { FREE, BEING_WRITTEN, WRITTEN, NAME_BYTES = sizeof(((aliquot_unknown *)0)->name) };

/* A place whose writer was killed stays "being written": nobody reads it, and the next one is taken. */
static bool take(aliquot_unknown *place)
{
    uint64_t free = FREE;
    return __atomic_compare_exchange_n(&place->state, &free, BEING_WRITTEN, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void unknowns_note(const char *name)
{
    for (unsigned at = 0; at < ALIQUOT_UNKNOWNS_MAX; at++) {
        aliquot_unknown *place = &share.ledger->unknowns[at];
        if (take(place)) {
            strncpy(place->name, name, NAME_BYTES - 1);
            store(&place->state, WRITTEN);
            return;
        }
        if (load(&place->state) == WRITTEN && strncmp(place->name, name, NAME_BYTES - 1) == 0)
            return;
    }
}
