/* CUDA_VISIBLE_DEVICES within a share. */
#ifndef GOVERNOR_VISIBLE_H
#define GOVERNOR_VISIBLE_H

#include "aliquot_abi.h"

#define VISIBLE_BYTES (sizeof "CUDA_VISIBLE_DEVICES=" + ALIQUOT_DEVICES_MAX * (ALIQUOT_UUID_BYTES + 1))

/* Write `CUDA_VISIBLE_DEVICES=` and the UUIDs that `asked` selects within the share.
 *
 * `asked` is the tenant's value: NULL selects all, in the share's order. Else a list of positions
 * in the share and of UUID prefixes, read as NVIDIA documents it: the first entry that names nothing
 * ends the list, and a device named twice empties it. */
void visible_devices(char out[VISIBLE_BYTES], const char *asked);

#endif
