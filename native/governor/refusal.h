/* Why this share does not work: one sentence for whoever asks for the error's text. */
#ifndef GOVERNOR_REFUSAL_H
#define GOVERNOR_REFUSAL_H

/* Join the strings up to a NULL. The first refusal stays: it is the cause of any later one. */
void refusal_set(const char *first, ...) __attribute__((sentinel));
/* The sentence; NULL where there is none. */
const char *refusal_sentence(void);
/* errno in words, for one of refusal_set's strings. */
const char *refusal_errno(void);

#endif
