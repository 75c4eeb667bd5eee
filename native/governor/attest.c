#include "attest.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "words.h"

/* The linker's name for the first byte of this library: its headers lie there, loaded with it. */
extern const unsigned char __ehdr_start[] __attribute__((visibility("hidden")));

static uint64_t big_endian(const unsigned char *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t at = 0; at < sizeof value; at++)
        value = value << 8 | (at < count ? bytes[at] : 0);
    return value;
}

/* Of one segment of notes; 0 where none of them is a build id. */
static uint64_t build_id_in(const unsigned char *at, const unsigned char *end)
{
    while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        size_t name = (note->n_namesz + 3u) & ~3u, content = (note->n_descsz + 3u) & ~3u;
        const unsigned char *text = at + sizeof *note;
        if (name > (size_t)(end - text) || content > (size_t)(end - text) - name)
            return 0;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof "GNU" && memcmp(text, "GNU", sizeof "GNU") == 0)
            return big_endian(text + name, note->n_descsz);
        at = text + name + content;
    }
    return 0;
}

static uint64_t own_build(void)
{
    const unsigned char *base = __ehdr_start;
    const ElfW(Ehdr) *header = (const void *)base;
    const ElfW(Phdr) *segments = (const void *)(base + header->e_phoff);
    uint64_t build = 0;
    for (unsigned at = 0; at < header->e_phnum && build == 0; at++)
        if (segments[at].p_type == PT_NOTE)
            build = build_id_in(base + segments[at].p_vaddr, base + segments[at].p_vaddr + segments[at].p_memsz);
    return build;
}

void attest(aliquot_slot *slot, uint32_t limits_seen)
{
    store(&slot->governor_build, own_build());
    __atomic_store_n(&slot->governor_version, GOVERNOR_VERSION, __ATOMIC_SEQ_CST);
    __atomic_store_n(&slot->enforces, ALIQUOT_ENFORCES_MEMORY | ALIQUOT_ENFORCES_COMPUTE, __ATOMIC_SEQ_CST);
    store(&slot->limits_seen, limits_seen);
}

void attest_clear(aliquot_slot *slot)
{
    store(&slot->governor_build, 0);
    __atomic_store_n(&slot->governor_version, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&slot->enforces, 0, __ATOMIC_SEQ_CST);
    store(&slot->limits_seen, 0);
}
