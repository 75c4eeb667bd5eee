#include "sharing.h"

#include <stddef.h>

#include "ledger.h"

static bool is_import(const struct entry *entry)
{
    return entry->kind == KIND_IMPORT || entry->imported;
}

/* What is exported of the entry: a pool has no bytes of its own, its memory is exported by itself. */
static uint64_t size_of(const struct entry *entry)
{
    return entry->kind == KIND_POOL ? 0 : entry->bytes;
}

uint64_t sharing_export(enum kind kind, uint64_t thing, uint64_t key, bool named)
{
    struct entry found = {0};
    book_lock();
    struct entry *entry = book_find(kind, thing);
    bool known = entry != NULL && !is_import(entry);
    if (known)
        found = *entry;
    book_unlock();
    if (!known)
        return 0;
    if (named && found.export != 0)
        return ledger_export_key(found.export - 1u);
    int export = ledger_export(key, found.device, size_of(&found), named);
    if (export < 0)
        return 0;
    book_lock();
    entry = book_find(kind, thing);
    bool still = entry != NULL && (entry->export == 0 || entry->export == export + 1);
    if (still)
        entry->export = (uint16_t)(export + 1);
    book_unlock();
    if (still)
        return key;
    ledger_withdraw((unsigned)export);
    return 0;
}

int sharing_import(uint64_t key)
{
    return key != 0 ? ledger_import(key) : -1;
}

void sharing_let_go(unsigned export)
{
    struct entry *entry;
    uint64_t at = 0;
    bool held = false;
    book_lock();
    while (!held && (entry = book_next(&at)) != NULL)
        held = is_import(entry) && entry->export == export + 1;
    book_unlock();
    if (!held)
        ledger_let_go(export);
}
