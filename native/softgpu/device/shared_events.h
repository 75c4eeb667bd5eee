/* Events that several processes record and wait for, in the state of their device.
 *
 * A record is one call that records the event; 0 is none, as of an event never recorded, and has passed. */
#ifndef SG_SHARED_EVENTS_H
#define SG_SHARED_EVENTS_H

#include "model.h"

/* An event that this process holds. -ENOMEM: as many as there can be. */
int sg_shared_event_make(sg_device *device, unsigned *index, uint64_t *secret);
/* Hold another process's. -ENOENT: no such event, or none any more; -EALREADY: it is this one's. */
int sg_shared_event_join(sg_device *device, unsigned index, uint64_t secret);
/* Hold it no more; as often as made and joined. Waits for nobody. */
void sg_shared_event_leave(sg_device *device, unsigned index);

/* What makes a wait end early. */
typedef struct {
    bool (*is)(const void *of);
    const void *of;
} sg_given_up;

/* The event means this new record from now on. Waits where SG_EVENT_RECORDS of them are not over yet; -ECANCELED
 * where that was given up. */
int sg_shared_event_begin(sg_device *device, unsigned index, sg_given_up given_up, uint64_t *record);
/* All work before the record is done; `sequence` of its operation in model time, 0 where there is none. */
void sg_shared_event_finish(sg_device *device, unsigned index, uint64_t record, uint64_t sequence);

/* What the event means now. */
uint64_t sg_shared_event_newest(sg_device *device, unsigned index);
/* Finished, or begun by a process that is no more. */
bool sg_shared_event_passed(sg_device *device, unsigned index, uint64_t record);
/* Until it has passed or is given up. Without an end else: what waits for it needs the work before it. */
void sg_shared_event_await(sg_device *device, unsigned index, uint64_t record, sg_given_up given_up);
/* Of a record that has passed: when it ends in model time. */
sg_shared_end sg_shared_event_end(sg_device *device, unsigned index, uint64_t record);

#endif
