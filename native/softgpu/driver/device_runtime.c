/* libcudadevrt.a, the device runtime that grid-wide synchronisation and dynamic parallelism link with.
 *
 * The archive holds machine code, and none of it is used: what it would bring of cooperative groups the
 * engine has built in (engine/machine/builtins.c). Everything else in it, launching kernels from kernels
 * above all, stays undefined, and a kernel that calls it is refused by that name when it is launched. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static const char MAGIC[8] = "!<arch>\n";
static const char MEMBER[] = "cuda_device_runtime.o/"; /* too long for a header: in the table of names */

typedef struct {
    char name[16], date[12], user[6], group[6], mode[8], size[10], end[2];
} member_header;

static size_t member_size(const member_header *header) {
    char digits[sizeof header->size + 1] = "";
    memcpy(digits, header->size, sizeof header->size);
    return (size_t)strtoul(digits, NULL, 10);
}

static bool is_table_of_names(const member_header *header) {
    return memcmp(header->name, "//              ", sizeof header->name) == 0;
}

/* An archive of that one member: others may hold functions that somebody calls. */
bool sg_is_device_runtime(const void *data, size_t size) {
    const char *archive = data;
    unsigned members = 0;
    bool named = false;
    if (size < sizeof MAGIC || memcmp(archive, MAGIC, sizeof MAGIC) != 0)
        return false;
    for (size_t at = sizeof MAGIC; at + sizeof(member_header) <= size;) {
        member_header header;
        memcpy(&header, archive + at, sizeof header);
        size_t length = member_size(&header);
        at += sizeof header;
        if (length > size - at)
            return false;
        if (is_table_of_names(&header))
            named = length >= sizeof MEMBER - 1 && memcmp(archive + at, MEMBER, sizeof MEMBER - 1) == 0;
        else
            members += memcmp(header.name, "/ ", 2) != 0; /* "/": the archive's symbol table */
        at += length + length % 2;
    }
    return named && members == 1;
}
