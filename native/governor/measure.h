/* What a batch of launches is charged, from what its two events say and what is known besides. Pure. */
#ifndef GOVERNOR_MEASURE_H
#define GOVERNOR_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

struct measure {
    uint64_t span;      /* ns between its events, less what belonged to the batch before it */
    uint64_t predicted; /* the sum of its launches; of an unknown one what was assumed */
    uint64_t issuing;   /* ns of the clock from its first launch to its end event's recording */
    uint64_t others;    /* ns charged to neighbours between its launch and now: guests, and what came late */
    uint64_t lead;      /* ns of it in which the device should still have been busy with a neighbour's last work */
    unsigned launches;
    bool measured;      /* both events told their time */
    bool known;         /* all of its launches had an estimate */
    bool solo;          /* one launch, its events right around it */
    bool first;         /* of its turn: the device changed hands in it */
    bool disturbed;     /* a neighbour had the device at some other time in between */
};

struct verdict {
    uint64_t charge;
    bool exact;         /* the charge is what the work took, as it was measured */
    bool learn;         /* the charge is what this launch costs, or the best that is known of it */
    bool rough;         /* though the device changed hands in it */
    bool drift;         /* the charge over the prediction says how far costs have drifted */
};

struct verdict measure_judge(const struct measure *measure);

#endif
