/* Whose turn it is on a device in real mode. Only device/ includes this.
 *
 * The turn has a number, in `state.turn`: sg_turn_word. Who has the turn holds the byte of that number locked,
 * so that a kill frees it. It gives it away by letting go of the byte, and it is taken away by counting the
 * number on: whoever had it sees that at its next look, and stands in line anew. So there is one holder at any
 * time, whatever became of the one before: killed, stopped, frozen, or behind a descriptor that its program
 * closed.
 *
 * A process keeps the turn when its kernel has ended and its slice has not, as a card goes on with the same
 * context while that has work: its next kernel is then a compare-and-swap away. For SG_TURN_KEEP_NS
 * the others wait for that, then they take it away. */
#ifndef SG_TURNS_H
#define SG_TURNS_H

#include "layout.h"

/* For how long a turn is kept for the next kernel of the same process while others wait. From the end of a kernel
 * to the beginning of the next one pass 10 us in a program that does nothing else, 50 in Python. */
#define SG_TURN_KEEP_NS UINT64_C(200000)

/* `kept`: no kernel of its holder runs. */
static inline uint64_t sg_turn_word(uint64_t number, bool kept) {
    return number << 1 | kept;
}
static inline bool sg_turn_word_kept(uint64_t word) {
    return word & 1;
}
static inline uint64_t sg_turn_word_number(uint64_t word) {
    return word >> 1;
}
static inline int sg_turn_byte(uint64_t number) {
    return SG_LOCK_TURN + (int)(number % SG_LOCK_NUMBERS);
}
static inline bool sg_turn_is_held(const sg_device *device, int file) {
    return sg_lock_held_elsewhere(file, sg_turn_byte(sg_turn_word_number(atomic_load(&device->state->turn))));
}

/* ---- line.c ---- */

/* Stands in line until the turn is ours, and says so in device->turn. A negative errno where there is no line
 * to stand in. */
int sg_line_wait(sg_device *device);
/* Does somebody sleep who wants a turn? Cheap, and sometimes true when nobody does any more. */
bool sg_line_sleeps(const sg_state *state);
/* Is that so? */
bool sg_line_waits(sg_device *device);
/* Something changed that who waits has to see. */
void sg_line_announce(sg_state *state);

/* ---- turns.c ---- */

/* The time from `began_ns` to now was the slot's, if nobody else has charged it yet. */
void sg_turn_charge(sg_device *device, int slot, uint64_t began_ns);

#endif
