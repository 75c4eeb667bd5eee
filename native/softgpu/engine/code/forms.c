#include "forms.h"

#include "lower.h"

#include <string.h>

static const sg_form forms[] = {
#define FORM(opcode, words, operands, lowering, handler) {opcode, words, operands, sg_lower_##lowering, H_##handler},
#include "forms.def"
#undef FORM
};

/* Opcodes of the PTX ISA that the table does not run yet: with these the answer is "not
 * supported", with any other name "no PTX". */
static const char *const known[] = {
    "tld4", "sured", "multimem", "tensormap", "istypep", "alloca", "stacksave",
    "stackrestore", "vadd", "vsub", "vabsdiff", "vmin",
    "vmax", "vshl", "vshr", "vmad", "vset", "tcgen05", "clusterlaunchcontrol"};

static bool is_alternative(const char *item, size_t length, const char *word) {
    size_t wanted = strlen(word);
    for (const char *end = item + length; item < end;) {
        const char *bar = memchr(item, '|', (size_t)(end - item));
        const char *stop = bar ? bar : end;
        if ((size_t)(stop - item) == wanted && !memcmp(item, word, wanted))
            return true;
        item = stop + 1;
    }
    return false;
}

/* Assemblers take the words of an access in many orders, and compilers use that: both
 * atom.acquire.gpu.add.u32 and atom.add.acquire.gpu.u32 come out of NVRTC. No word is in two
 * places of these patterns, so each can be looked for anywhere. */
static bool takes_any_order(const char *opcode) {
    static const char *const opcodes[] = {"ld", "st", "atom", "red"};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (!strcmp(opcodes[i], opcode))
            return true;
    return false;
}

/* The index of a word not yet taken that is one of the item's alternatives; -1: none. */
static int find_alternative(const char *item, size_t length, const sg_instruction *instruction, uint32_t taken, size_t first,
                            size_t last) {
    for (size_t i = first; i < last; i++)
        if (!(taken >> i & 1) && is_alternative(item, length, sg_words[instruction->words[i]].text))
            return (int)i;
    return -1;
}

static bool words_match(const char *pattern, const sg_instruction *instruction) {
    size_t count = instruction->word_count, at = 0;
    bool any_order = takes_any_order(instruction->opcode);
    uint32_t taken = 0;
    while (*pattern) {
        size_t length = strcspn(pattern, " ");
        bool optional = length && pattern[length - 1] == '?';
        size_t item = optional ? length - 1 : length, next = at < count ? at + 1 : at;
        int found = find_alternative(pattern, item, instruction, taken, any_order ? 0 : at, any_order ? count : next);
        if (found >= 0)
            taken |= 1u << found, at++;
        else if (!optional && length)
            return false;
        pattern += length;
        pattern += strspn(pattern, " ");
    }
    return at == count;
}

static void read_word(sg_attributes *attributes, sg_word word) {
    switch (sg_words[word].kind) {
    case KIND_ROUND: attributes->round = word; return;
    case KIND_SPACE: attributes->space = word; return;
    case KIND_COMPARE: attributes->compare = word; return;
    case KIND_OPERATOR: attributes->operation = word; return;
    case KIND_VECTOR: attributes->vector = sg_words[word].bits; return;
    default: break;
    }
    if ((sg_is_type(word) || sg_words[word].kind == KIND_ELEMENT) && attributes->type_count < 4)
        attributes->type[attributes->type_count++] = word;
    attributes->ftz |= word == W_ftz;
    attributes->sat |= word == W_sat;
    attributes->relu |= word == W_relu;
    attributes->nan |= word == W_NaN;
}

const sg_form *sg_match_form(const sg_instruction *instruction, sg_attributes *attributes) {
    if (instruction->unknown)
        return NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i].opcode, instruction->opcode) || !words_match(forms[i].words, instruction))
            continue;
        memset(attributes, 0, sizeof *attributes);
        attributes->vector = 1;
        for (size_t w = 0; w < instruction->word_count; w++)
            read_word(attributes, instruction->words[w]);
        return &forms[i];
    }
    return NULL;
}

bool sg_opcode_exists(const char *opcode) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].opcode, opcode))
            return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i], opcode))
            return true;
    return false;
}

bool sg_has_word(const sg_instruction *instruction, sg_word word) {
    for (size_t i = 0; i < instruction->word_count; i++)
        if (instruction->words[i] == word)
            return true;
    return false;
}

const sg_form *sg_form_at(size_t index) { return index < sizeof forms / sizeof *forms ? &forms[index] : NULL; }
