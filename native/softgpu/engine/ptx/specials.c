#include "ir.h"

#include <string.h>

static const struct {
    const char *text;
    unsigned bits;
} specials[SPECIAL_COUNT] = {
#define SPECIAL(name, text, bits) {text, bits},
#include "specials.def"
#undef SPECIAL
};

int sg_special_named(const char *text) {
    for (int i = 0; i < SPECIAL_COUNT; i++)
        if (!strcmp(specials[i].text, text))
            return i;
    return -1;
}

unsigned sg_special_bits(int special) { return specials[special].bits; }
