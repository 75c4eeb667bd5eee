/* Textures and surfaces. What a fetch gives is what the CUDA programming guide says of texture fetching:
 * filtering weights have 8 bits of fraction, coordinates outside are brought in texel by texel. */
#include "halves.h"
#include "machine.h"

#include <math.h>

#define HANDLER_FOR(name) \
    void sg_run_##name(sg_warp *warp, const sg_insn *insn); \
    void sg_run_##name(sg_warp *warp, const sg_insn *insn)

enum { OUTSIDE_TRAP, OUTSIDE_CLAMP, OUTSIDE_ZERO };
enum { DIMENSIONS = 3, LAYERED = 4 }; /* in what an instruction says of the shape */

/* The same handle in all lanes is asked for once. */
typedef struct {
    uint64_t handle;
    bool known;
    sg_texture texture;
} last_texture;

static const void *column(const sg_warp *warp, const sg_insn *insn, unsigned n) {
    return warp->base[insn->operand[n] & 1] + insn->operand[n];
}

static uint32_t word_of(const sg_warp *warp, const sg_insn *insn, unsigned n, unsigned lane) {
    return ((const uint32_t *)column(warp, insn, n))[lane];
}

static void set_word(const sg_warp *warp, const sg_insn *insn, unsigned n, unsigned lane, uint32_t value) {
    ((uint32_t *)((unsigned char *)warp->base[0] + insn->operand[n]))[lane] = value;
}

static unsigned shape_of(const sg_texture *t) {
    return t->dimensions | (t->layers != 0 ? LAYERED : 0);
}

/* `shape` 0: any. */
static const sg_texture *find_texture(sg_warp *warp, const sg_insn *insn, unsigned lane, bool surface, unsigned shape,
                                      last_texture *last) {
    const sg_memory *memory = warp->block->grid->launch->memory;
    uint64_t handle = ((const uint64_t *)column(warp, insn, 4))[lane] + (uint64_t)insn->immediate;
    if (!last->known || last->handle != handle) {
        last->handle = handle;
        last->known = memory->texture && memory->texture(memory->context, handle, surface, &last->texture);
    }
    if (!last->known) {
        sg_fault_lane(warp, insn, lane, SG_ILLEGAL_ADDRESS, handle, "0x%llx is no %s object of this context",
                    (unsigned long long)handle, surface ? "surface" : "texture");
        return NULL;
    }
    unsigned has = shape_of(&last->texture);
    if (shape && has != shape) {
        sg_fault_lane(warp, insn, lane, SG_ILLEGAL_ADDRESS, handle, "an access in %u dimensions%s to what has %u%s",
                      shape & DIMENSIONS, shape & LAYERED ? " and a layer" : "", has & DIMENSIONS,
                      has & LAYERED ? " and layers" : "");
        return NULL;
    }
    return &last->texture;
}

/* ---- texels ---- */

/* A texel's channel as 32 bits: an integer, or the bits of a float. */
static uint32_t channel(const sg_texture *t, const unsigned char *texel, unsigned c) {
    const unsigned char *at = texel + (size_t)c * t->channel_bytes;
    uint16_t half;
    uint32_t word;
    switch (t->channel_bytes) {
    case 1: return t->kind == SG_TEXEL_SIGNED ? (uint32_t)(int32_t)(int8_t)*at : *at;
    case 2:
        memcpy(&half, at, sizeof half);
        if (t->kind == SG_TEXEL_FLOAT) {
            float value = sg_float_of_f16(half);
            memcpy(&word, &value, sizeof word);
            return word;
        }
        return t->kind == SG_TEXEL_SIGNED ? (uint32_t)(int32_t)(int16_t)half : half;
    default: memcpy(&word, at, sizeof word); return word;
    }
}

static float normalized(const sg_texture *t, uint32_t value) {
    if (t->kind == SG_TEXEL_UNSIGNED)
        return (float)value / (t->channel_bytes == 1 ? 255.0f : 65535.0f);
    float scaled = (float)(int32_t)value / (t->channel_bytes == 1 ? 127.0f : 32767.0f);
    return scaled < -1.0f ? -1.0f : scaled;
}

/* The index of a texel along one dimension; false: outside, where the border is. */
static bool bring_in(const sg_texture *t, unsigned dimension, int64_t *index) {
    int64_t size = (int64_t)t->size[dimension], at = *index;
    if (at >= 0 && at < size)
        return true;
    switch (t->address[dimension]) {
    case SG_ADDRESS_WRAP: *index = (at % size + size) % size; return true;
    case SG_ADDRESS_MIRROR:
        at = (at % (2 * size) + 2 * size) % (2 * size);
        *index = at < size ? at : 2 * size - 1 - at;
        return true;
    case SG_ADDRESS_CLAMP: *index = at < 0 ? 0 : size - 1; return true;
    default: return false;
    }
}

/* NULL: the border. */
static const unsigned char *texel_at(const sg_texture *t, const int64_t *index) {
    int64_t at[3] = {index[0], index[1], index[2]};
    for (unsigned d = 0; d < t->dimensions; d++)
        if (!bring_in(t, d, &at[d]))
            return NULL;
    return t->bytes + (uint64_t)at[2] * t->slice + (uint64_t)at[1] * t->pitch +
           (uint64_t)at[0] * t->channels * t->channel_bytes;
}

static void read_texel(const sg_texture *t, const int64_t *index, uint32_t *out) {
    const unsigned char *texel = texel_at(t, index);
    for (unsigned c = 0; c < 4; c++) {
        float value;
        if (texel == NULL) {
            if (t->kind == SG_TEXEL_FLOAT || t->normalized_read)
                memcpy(&out[c], &t->border[c], sizeof out[c]);
            else
                out[c] = t->kind == SG_TEXEL_SIGNED ? (uint32_t)(int32_t)t->border[c] : (uint32_t)t->border[c];
            continue;
        }
        out[c] = c < t->channels ? channel(t, texel, c) : 0;
        if (t->normalized_read) {
            value = normalized(t, out[c]);
            memcpy(&out[c], &value, sizeof value);
        }
    }
}

/* ---- fetches ---- */

/* Where a coordinate lies among the texels. */
static float scaled(const sg_texture *t, unsigned dimension, float x) {
    if (!t->normalized_coordinates)
        return x;
    float fraction = x - floorf(x);
    if (t->address[dimension] == SG_ADDRESS_WRAP)
        x = fraction;
    else if (t->address[dimension] == SG_ADDRESS_MIRROR)
        x = fmodf(floorf(x), 2.0f) == 0.0f ? fraction : 1.0f - fraction;
    return x * (float)t->size[dimension];
}

/* NaN and what no integer holds are far outside. */
static int64_t to_index(float x) {
    if (!(x > -1e9f))
        return -1000000000;
    return x < 1e9f ? (int64_t)x : 1000000000;
}

/* 1.8 fixed point: a weight of 1 is exact. */
static float weight(float x, float floor_x) { return floorf((x - floor_x) * 256.0f + 0.5f) / 256.0f; }

static void fetch_linear(const sg_texture *t, const float *x, uint32_t *out) {
    int64_t first[3] = {0, 0, 0};
    float alpha[3] = {0, 0, 0}, sum[4] = {0, 0, 0, 0};
    for (unsigned d = 0; d < t->dimensions; d++) {
        float centred = scaled(t, d, x[d]) - 0.5f, low = floorf(centred);
        first[d] = to_index(low);
        alpha[d] = weight(centred, low);
    }
    for (unsigned corner = 0; corner < 1u << t->dimensions; corner++) {
        int64_t index[3] = {0, 0, 0};
        uint32_t texel[4];
        float share = 1.0f;
        for (unsigned d = 0; d < t->dimensions; d++) {
            index[d] = first[d] + (corner >> d & 1);
            share *= corner >> d & 1 ? alpha[d] : 1.0f - alpha[d];
        }
        read_texel(t, index, texel);
        for (unsigned c = 0; c < 4 && share != 0.0f; c++) {
            float value;
            memcpy(&value, &texel[c], sizeof value);
            sum[c] += share * value;
        }
    }
    memcpy(out, sum, sizeof sum);
}

static void fetch_nearest(const sg_texture *t, const float *x, uint32_t *out) {
    int64_t index[3] = {0, 0, 0};
    for (unsigned d = 0; d < t->dimensions; d++)
        index[d] = to_index(floorf(scaled(t, d, x[d])));
    read_texel(t, index, out);
}

/* One layer of many, the last one where there are not as many. */
static sg_texture layer_of(const sg_texture *t, uint32_t layer) {
    sg_texture one = *t;
    one.bytes += (layer < t->layers ? layer : t->layers - 1) * t->slice;
    return one;
}

/* flags: the shape; variant: whether the coordinates are floats. */
HANDLER_FOR(texture) {
    last_texture last = {0};
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left), dimensions = insn->flags & DIMENSIONS;
        const sg_texture *t = find_texture(warp, insn, lane, false, insn->flags, &last);
        sg_texture layer;
        uint32_t out[4];
        float x[3] = {0, 0, 0};
        int64_t index[3] = {0, 0, 0};
        if (!t)
            return;
        if (t->layers != 0) {
            layer = layer_of(t, word_of(warp, insn, 7, lane));
            t = &layer;
        }
        for (unsigned d = 0; d < dimensions; d++) {
            uint32_t value = word_of(warp, insn, 5 + d, lane);
            memcpy(&x[d], &value, sizeof x[d]);
            index[d] = (int32_t)value;
        }
        if (!insn->variant)
            read_texel(t, index, out);
        else if (t->linear)
            fetch_linear(t, x, out);
        else
            fetch_nearest(t, x, out);
        for (unsigned c = 0; c < 4; c++)
            set_word(warp, insn, c, lane, out[c]);
    }
}

/* variant: 0 width, 1 height, 2 depth, 3 layers; flags: 1 of a surface. */
HANDLER_FOR(texture_size) {
    last_texture last = {0};
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        const sg_texture *t = find_texture(warp, insn, lane, insn->flags & 1, 0, &last);
        if (!t)
            return;
        uint64_t size = insn->variant == 3 ? t->layers : insn->variant < t->dimensions ? t->size[insn->variant] : 0;
        set_word(warp, insn, 0, lane, (uint32_t)size);
    }
}

/* ---- surfaces: bytes of an array ---- */

/* Where `size` bytes of a surface are; NULL: nowhere, after a fault (`*fault`) or because it does not matter. */
static unsigned char *surface_place(sg_warp *warp, const sg_insn *insn, const sg_texture *t, unsigned lane, unsigned size,
                                    bool *fault) {
    int64_t at[3] = {0, 0, 0}, row = (int64_t)t->size[0] * t->channels * t->channel_bytes;
    bool outside = false;
    for (unsigned d = 0; d < 3; d++) {
        bool is_layer = d == 2 && t->layers != 0;
        if (d >= t->dimensions && !is_layer)
            continue;
        int64_t bound = d == 0 ? row - (int64_t)size : (int64_t)(is_layer ? t->layers : t->size[d]) - 1;
        at[d] = (int32_t)word_of(warp, insn, 5 + d, lane);
        bool beyond = at[d] < 0 || at[d] > bound;
        outside = outside || beyond;
        if (beyond && insn->variant == OUTSIDE_CLAMP)
            at[d] = at[d] < 0 || bound < 0 ? 0 : bound;
    }
    *fault = true;
    if (at[0] % (int64_t)size != 0) {
        sg_fault_lane(warp, insn, lane, SG_MISALIGNED, (uint64_t)at[0], "%u bytes of a surface at byte %lld of a row", size,
                    (long long)at[0]);
        return NULL;
    }
    if ((outside && insn->variant == OUTSIDE_TRAP) || row < (int64_t)size) {
        sg_fault_lane(warp, insn, lane, SG_ILLEGAL_ADDRESS, (uint64_t)at[0], "byte %lld, row %lld is outside the surface",
                    (long long)at[0], (long long)at[1]);
        return NULL;
    }
    *fault = false;
    if (outside && insn->variant == OUTSIDE_ZERO)
        return NULL;
    return t->bytes + (uint64_t)at[2] * t->slice + (uint64_t)at[1] * t->pitch + (uint64_t)at[0];
}

static void load_component(const sg_warp *warp, const sg_insn *insn, unsigned k, unsigned lane, const unsigned char *from,
                           unsigned size) {
    uint64_t value = 0;
    if (from)
        memcpy(&value, from + (size_t)k * size, size);
    if (size == 8)
        ((uint64_t *)((unsigned char *)warp->base[0] + insn->operand[k]))[lane] = value;
    else
        set_word(warp, insn, k, lane, (uint32_t)value);
}

static void store_component(const sg_warp *warp, const sg_insn *insn, unsigned k, unsigned lane, unsigned char *to,
                            unsigned size) {
    uint64_t value = size == 8 ? ((const uint64_t *)column(warp, insn, k))[lane] : word_of(warp, insn, k, lane);
    memcpy(to + (size_t)k * size, &value, size);
}

/* flags: the shape, and from bit 4 the bytes of a component; variant: OUTSIDE_*. */
static void access_surface(sg_warp *warp, const sg_insn *insn, bool store) {
    last_texture last = {0};
    unsigned size = insn->flags >> 4, shape = insn->flags & 15;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        bool fault;
        const sg_texture *t = find_texture(warp, insn, lane, true, shape, &last);
        if (!t)
            return;
        unsigned char *place = surface_place(warp, insn, t, lane, size * insn->count, &fault);
        if (fault)
            return;
        for (unsigned k = 0; k < insn->count; k++)
            if (!store)
                load_component(warp, insn, k, lane, place, size);
            else if (place)
                store_component(warp, insn, k, lane, place, size);
    }
}

HANDLER_FOR(surface_load) { access_surface(warp, insn, false); }
HANDLER_FOR(surface_store) { access_surface(warp, insn, true); }
