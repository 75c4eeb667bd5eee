#include "words.h"

#include <string.h>

const sg_word_facts sg_words[WORD_COUNT] = {
    {"", KIND_NONE, 0},
#define WORD(name, text, kind, bits) {text, KIND_##kind, bits},
#include "words.def"
#undef WORD
};

sg_word sg_word_named(const char *text, size_t length) {
    for (int word = 1; word < WORD_COUNT; word++) /* 150 short compares; a line has at most eight words */
        if (sg_words[word].text[0] == text[0] && !strncmp(sg_words[word].text, text, length) &&
            !sg_words[word].text[length])
            return (sg_word)word;
    return W_none;
}
