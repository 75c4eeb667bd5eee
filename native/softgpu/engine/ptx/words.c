#include "words.h"

#include <string.h>

const sg_word_facts sg_words[WORD_COUNT] = {
    {"", KIND_NONE, 0},
#define WORD(name, text, kind, bits) {text, KIND_##kind, bits},
#include "words.def"
#undef WORD
};

/* `m16n8k16`: three numbers of at most three digits. */
bool sg_read_shape(const char *text, size_t length, uint16_t shape[3]) {
    static const char letters[] = "mnk";
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (at == length || text[at++] != letters[i])
            return false;
        size_t start = at;
        shape[i] = 0;
        for (; at < length && at - start < 3 && text[at] >= '0' && text[at] <= '9'; at++)
            shape[i] = (uint16_t)(shape[i] * 10 + (text[at] - '0'));
        if (at == start)
            return false;
    }
    return at == length;
}

sg_word sg_word_named(const char *text, size_t length) {
    for (int word = 1; word < WORD_COUNT; word++) /* 150 short compares; a line has at most eight words */
        if (sg_words[word].text[0] == text[0] && !strncmp(sg_words[word].text, text, length) &&
            !sg_words[word].text[length])
            return (sg_word)word;
    uint16_t shape[3];
    return sg_read_shape(text, length, shape) ? W_shape : W_none;
}
