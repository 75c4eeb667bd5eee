/* Words: the dotted parts of an instruction, as numbers. Types are words too. */
#ifndef SG_PTX_WORDS_H
#define SG_PTX_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    KIND_NONE,
    KIND_UNSIGNED,
    KIND_SIGNED,
    KIND_BITS,
    KIND_FLOAT,
    KIND_PREDICATE,
    KIND_ROUND,
    KIND_SPACE,
    KIND_COMPARE,
    KIND_OPERATOR,
    KIND_VECTOR,
    KIND_PLAIN,
    KIND_ELEMENT, /* types of a matrix that no register has */
    KIND_SHAPE
} sg_kind;

typedef enum {
    W_none,
#define WORD(name, text, kind, bits) W_##name,
#include "words.def"
#undef WORD
    WORD_COUNT
} sg_word;

_Static_assert(W_subnormal < 256, "what an instruction keeps in a byte comes first in words.def");

typedef struct {
    const char *text;
    uint8_t kind;
    uint8_t bits;
} sg_word_facts;

extern const sg_word_facts sg_words[WORD_COUNT];

/* W_none where the word is not known; W_shape for `m16n8k16` and its like. */
sg_word sg_word_named(const char *text, size_t length);
/* The three numbers of such a word. False: it is none. */
bool sg_read_shape(const char *text, size_t length, uint16_t shape[3]);

static inline bool sg_is_type(sg_word word) {
    return sg_words[word].kind >= KIND_UNSIGNED && sg_words[word].kind <= KIND_PREDICATE;
}
static inline unsigned sg_bits(sg_word type) { return sg_words[type].bits; }
static inline unsigned sg_bytes(sg_word type) { return (sg_words[type].bits + 7u) / 8u; }

#endif
