/* vprintf: a C format and its arguments packed in memory, each at its natural alignment;
 * integers as passed by C, floats as doubles. */
#include "machine.h"

#include <stdio.h>

typedef struct {
    char text[4096]; /* longer lines are cut */
    size_t used;
} line;

typedef struct {
    sg_warp *warp;
    const sg_insn *insn;
    unsigned lane;
    uint64_t at; /* of the next argument */
    bool failed;
} reader;

static uint64_t next_argument(reader *from, unsigned size) {
    from->at = (from->at + size - 1) & ~(uint64_t)(size - 1);
    const unsigned char *bytes = sg_reach_lane(from->warp, from->insn, from->lane, SPACE_GENERIC, from->at, size, false);
    uint64_t value = 0;
    if (!bytes) {
        from->failed = true;
        return 0;
    }
    memcpy(&value, bytes, size);
    from->at += size;
    return value;
}

static void append(line *to, const char *bytes, size_t length) {
    size_t room = sizeof to->text - to->used;
    length = length < room ? length : room;
    memcpy(to->text + to->used, bytes, length);
    to->used += length;
}

/* One conversion `%...c`: `flags` holds what stands between, without the length letters.
 * Every number fits: width and precision are cut to three digits. */
typedef struct {
    char flags[24];
    size_t used;
    int longs; /* of `l`, with `z`, `j`, `t` as two */
    int shorts;
} conversion;

static void keep(conversion *c, char flag) {
    if (c->used < sizeof c->flags - 4)
        c->flags[c->used++] = flag;
}

static void append_integer(line *to, const conversion *c, char letter, uint64_t bits) {
    char format[32], text[1100];
    snprintf(format, sizeof format, "%%%.*sll%c", (int)c->used, c->flags, letter);
    bool is_signed = letter == 'd' || letter == 'i';
    long long value = (long long)bits;
    if (!c->longs)
        value = is_signed ? (long long)(int32_t)bits : (long long)(uint32_t)bits;
    if (c->shorts == 1)
        value = is_signed ? (long long)(int16_t)bits : (long long)(uint16_t)bits;
    if (c->shorts >= 2)
        value = is_signed ? (long long)(int8_t)bits : (long long)(uint8_t)bits;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int length = snprintf(text, sizeof text, format, value);
#pragma GCC diagnostic pop
    append(to, text, length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static void append_real(line *to, const conversion *c, char letter, uint64_t bits) {
    char format[32], text[2000];
    double value;
    memcpy(&value, &bits, sizeof value);
    snprintf(format, sizeof format, "%%%.*s%c", (int)c->used, c->flags, letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int length = snprintf(text, sizeof text, format, value);
#pragma GCC diagnostic pop
    append(to, text, length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static void append_text(reader *from, line *to, const conversion *c, uint64_t address) {
    size_t available = 0;
    const char *text = address ? sg_reach_text(from->warp, from->lane, address, &available) : NULL;
    size_t length = text ? strnlen(text, available < sizeof to->text ? available : sizeof to->text) : 0;
    if (!text)
        append(to, "(null)", 6);
    else if (!c->used)
        append(to, text, length);
    else {
        char format[32], copy[1024], padded[2048]; /* longer texts with a width are cut */
        length = length < sizeof copy - 1 ? length : sizeof copy - 1;
        memcpy(copy, text, length);
        copy[length] = 0;
        snprintf(format, sizeof format, "%%%.*ss", (int)c->used, c->flags);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        int written = snprintf(padded, sizeof padded, format, copy);
#pragma GCC diagnostic pop
        append(to, padded, written < 0 ? 0 : (size_t)written < sizeof padded ? (size_t)written : sizeof padded - 1);
    }
}

static void convert(reader *from, line *to, const conversion *c, char letter) {
    char byte;
    switch (letter) {
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
        append_integer(to, c, letter, next_argument(from, c->longs ? 8 : 4));
        break;
    case 'c':
        byte = (char)next_argument(from, 4);
        append(to, &byte, 1);
        break;
    case 'p': {
        conversion pointer = {.flags = "#", .used = 1, .longs = 2};
        append_integer(to, &pointer, 'x', next_argument(from, 8));
        break;
    }
    case 's':
        append_text(from, to, c, next_argument(from, 8));
        break;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
        append_real(to, c, letter, next_argument(from, 8));
        break;
    default:
        append(to, &letter, 1);
    }
}

/* Reads flags, width, precision and length from `format` on; returns what follows. */
static size_t read_conversion(reader *from, const char *format, size_t at, size_t length, conversion *c) {
    int digits = 0;
    for (; at < length; at++) {
        char letter = format[at];
        if (letter == '*') {
            char number[12];
            int width = (int)next_argument(from, 4);
            int written = snprintf(number, sizeof number, "%d", width > 999 ? 999 : width < -999 ? -999 : width);
            for (int i = 0; i < written; i++)
                keep(c, number[i]);
        } else if (letter >= '0' && letter <= '9') {
            if (digits++ < 3)
                keep(c, letter);
        } else if (letter && strchr("-+ #.", letter)) {
            digits = 0;
            keep(c, letter);
        } else if (letter && strchr("lzjt", letter)) {
            c->longs += letter == 'l' ? 1 : 2;
        } else if (letter == 'h') {
            c->shorts++;
        } else {
            break;
        }
    }
    return at;
}

int sg_print(sg_warp *warp, const sg_insn *insn, unsigned lane, uint64_t format_address, uint64_t arguments) {
    const sg_launch *launch = warp->block->grid->launch;
    size_t available = 0;
    const char *format = sg_reach_text(warp, lane, format_address, &available);
    if (!format) {
        sg_fault_lane(warp, insn, lane, SG_ILLEGAL_ADDRESS, format_address, "vprintf: no format at 0x%llx",
                      (unsigned long long)format_address);
        return -1;
    }
    size_t length = strnlen(format, available);
    reader from = {warp, insn, lane, arguments, false};
    line to = {.used = 0};
    int conversions = 0;
    for (size_t at = 0; at < length && !from.failed; at++) {
        if (format[at] != '%') {
            append(&to, &format[at], 1);
            continue;
        }
        conversion c = {.used = 0};
        at = read_conversion(&from, format, at + 1, length, &c);
        if (at < length && !from.failed) {
            convert(&from, &to, &c, format[at]);
            conversions += format[at] != '%';
        }
    }
    if (from.failed)
        return -1;
    if (launch->print)
        launch->print(launch->print_context, to.text, to.used);
    return conversions;
}
