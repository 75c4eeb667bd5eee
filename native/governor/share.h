/* The share's folder: what the tenant may have (limits), what it has (ledger), whose driver.
 *
 * Nothing here comes from the environment: the folder is /run/aliquot/share, or /tmp/aliquot-UID/share
 * where that is the user's own, or the parent of the folder that this library was loaded from.
 */
#ifndef GOVERNOR_SHARE_H
#define GOVERNOR_SHARE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aliquot_abi.h"

#define SHARE_NO_LIMIT UINT64_MAX

struct share {
    char folder[PATH_MAX];
    char ledger_path[PATH_MAX + 8];
    char driver_path[PATH_MAX + 32];
    aliquot_ledger *ledger;
    dev_t ledger_device; /* of the file that is mapped */
    ino_t ledger_inode;
    unsigned devices;
    char uuid[ALIQUOT_DEVICES_MAX][ALIQUOT_UUID_BYTES];
};

extern struct share share;

/* Set share.folder. Opens and maps nothing. False: refused. */
bool share_find_folder(void);

/* "FOLDER/NAME". False: too long, refused. */
bool share_join(char *out, size_t size, const char *folder, const char *name);

/* Find, check and map. `soname` is the driver library to be opened later. False: refused. */
bool share_open(const char *soname, bool writable);

/* The ledger once more, as a description of its own for locks; -1 with errno where it cannot be. */
int share_open_ledger(bool writable);
/* Whether that number is (still) the ledger: the numbers are the program's, to close and reuse. */
bool share_is_ledger(int descriptor);

/* Live values of `device` (< share.devices): a change of the limits file is seen at once. */
uint64_t share_memory_limit(unsigned device);
uint64_t share_context_bytes(unsigned device);
/* Thousandths of the device's time that are the share's; at least 1. */
uint32_t share_thousandths(unsigned device);
/* Which values these are: even, and larger after every change of the file. */
uint32_t share_generation(void);

enum share_policy { POLICY_FAIR = 0, POLICY_CAP = 1, POLICY_PRIORITY = 2 };
struct share_compute {
    uint32_t weight; /* thousandths of the device's time, at least 1 */
    uint32_t policy; /* enum share_policy; what is not one of them is a cap */
    uint32_t rank;
};
/* Where the keeper is gone (share_keeper_gone) what the limits say stays, but every policy is a cap. */
struct share_compute share_compute(unsigned device);
/* Whether the share's keeper has not looked for ALIQUOT_KEEPER_PATIENCE_MS. False where none is expected, as in
 * the limits that an older Aliquot wrote. */
bool share_keeper_gone(void);
/* Whether launches are to wait, by the live word of the limits file; false before share_open. */
bool share_paused(void);
/* Whether functions that the table of symbols lacks reach the driver all the same. */
bool share_unknown_passes(void);
/* A number for the lease, the same in all its processes and never 0. */
uint64_t share_lease_number(void);

/* The page of `device` that all its shares have in common, or NULL where it is not there or not one. */
aliquot_turns *share_open_turns(unsigned device);

/* The device of `uuid` written as GPU-… or MIG-…, or as 16 bytes; -1 where the share has none. */
int share_device_of_uuid(const char *uuid);
int share_device_of_uuid_bytes(const unsigned char bytes[16]);

#endif
