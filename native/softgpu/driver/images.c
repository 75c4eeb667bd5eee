/* From what a program hands over as code to PTX text.
 *
 * PTX text is taken as it is, and out of a fat binary, whose layout is known from what NVIDIA's tools write and
 * from public descriptions. Machine code for real cards (ELF) cannot run here: the answer is the driver's own
 * for an image without fitting code. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"
#include "unpack.h"

#define FATBIN_MAGIC 0xBA55ED50u
#define FATBIN_WRAPPER_MAGIC 0x466243B1u
#define ELF_MAGIC 0x464C457Fu
#define ARCHIVE_MAGIC 0x72613C21u /* "!<ar" */
#define BITCODE_MAGIC 0xDEC04342u /* "BC", NVVM IR */

typedef struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t payload_bytes;
} fatbin_header;

/* One piece of code in a fat binary, as nvcc writes it. */
typedef struct {
    uint16_t kind; /* 1: PTX, 2: ELF */
    uint16_t version;
    uint32_t header_bytes;
    uint64_t payload_bytes;
    uint32_t compressed_bytes; /* 0: not compressed; the payload is a little longer, to be aligned */
    uint32_t reserved[2];
    uint32_t architecture;
    uint32_t reserved_too[2];
    uint64_t flags;
    uint64_t reserved_more;
    uint64_t plain_bytes; /* when unpacked */
} fatbin_entry;

enum { PACKED_LZ4 = 0x2000, PACKED_ZSTD = 0x8000, LARGEST_PLAIN = 1 << 30 };

_Static_assert(sizeof(fatbin_entry) == 64, "as the tools write it");

static CUresult refuse(const char *kind, const char *sentence, CUresult result, char *log, size_t log_size) {
    sg_log_unsupported("image", kind);
    snprintf(log, log_size, "%s", sentence);
    return result;
}

static CUresult copy_text(const char *from, size_t size, char **text, size_t *length) {
    while (size > 0 && from[size - 1] == '\0')
        size--;
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, from, size);
    copy[size] = '\0';
    *text = copy;
    *length = size;
    return CUDA_SUCCESS;
}

static CUresult unpack(const fatbin_entry *entry, const unsigned char *payload, char **text, size_t *length) {
    size_t size = (size_t)entry->plain_bytes;
    if (entry->compressed_bytes > entry->payload_bytes || entry->plain_bytes == 0 || entry->plain_bytes > LARGEST_PLAIN)
        return CUDA_ERROR_INVALID_IMAGE;
    char *plain = malloc(size + 1);
    if (plain == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool unpacked = (entry->flags & PACKED_LZ4 ? sg_unpack_lz4 : sg_unpack_zstd)(payload, entry->compressed_bytes,
                                                                                 (unsigned char *)plain, size);
    if (!unpacked) {
        free(plain);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    while (size > 0 && plain[size - 1] == '\0')
        size--;
    plain[size] = '\0';
    *text = plain;
    *length = size;
    return CUDA_SUCCESS;
}

static bool is_readable_ptx(const fatbin_entry *entry) {
    return entry->kind == 1 && (entry->compressed_bytes == 0 || (entry->flags & (PACKED_LZ4 | PACKED_ZSTD)) != 0);
}

/* Of the current context's device, else of the first: 10 x major + minor. */
static uint32_t capability(void) {
    CUcontext context = sg_ready() == CUDA_SUCCESS ? sg_current_or_null() : NULL;
    sg_gpu *gpu = context != NULL ? context->gpu : NULL;
    if (gpu == NULL && sg_gpu_get(0, &gpu) != CUDA_SUCCESS)
        return UINT32_MAX;
    return (uint32_t)(gpu->device->facts.compute_major * 10 + gpu->device->facts.compute_minor);
}

/* The newest that the device can have, as a driver chooses; of those that it cannot, the oldest. */
static bool is_better(const fatbin_entry *entry, const fatbin_entry *best, uint32_t limit) {
    if (entry->architecture > limit)
        return best->architecture > limit && entry->architecture < best->architecture;
    return best->architecture > limit || entry->architecture > best->architecture;
}

/* *payload: where the best PTX lies; 0 none. */
static CUresult choose(const unsigned char *image, size_t at, size_t end, fatbin_entry *best, size_t *payload) {
    uint32_t limit = capability();
    *payload = 0;
    while (at + sizeof(fatbin_entry) <= end) {
        fatbin_entry entry;
        memcpy(&entry, image + at, sizeof entry);
        size_t begin = at + entry.header_bytes;
        if (entry.header_bytes < sizeof entry || begin > end || entry.payload_bytes > end - begin)
            return CUDA_ERROR_INVALID_IMAGE;
        if (is_readable_ptx(&entry) && (*payload == 0 || is_better(&entry, best, limit))) {
            *best = entry;
            *payload = begin;
        }
        at = begin + entry.payload_bytes;
    }
    return CUDA_SUCCESS;
}

static CUresult from_fatbin(const unsigned char *image, size_t size, char **text, size_t *length, char *log,
                            size_t log_size) {
    fatbin_header header;
    fatbin_entry best;
    size_t payload;
    memcpy(&header, image, sizeof header);
    size_t end = header.header_bytes + header.payload_bytes;
    if (size != 0 && end > size)
        return CUDA_ERROR_INVALID_IMAGE;
    CUresult result = choose(image, header.header_bytes, end, &best, &payload);
    if (result != CUDA_SUCCESS)
        return result;
    if (payload == 0)
        return refuse("fatbin", "The fat binary has no PTX (nvcc: -gencode arch=...,code=compute_XX); a software GPU "
                                "cannot run machine code.",
                      CUDA_ERROR_NO_BINARY_FOR_GPU, log, log_size);
    return best.compressed_bytes == 0 ? copy_text((const char *)image + payload, best.payload_bytes, text, length)
                                      : unpack(&best, image + payload, text, length);
}

static bool looks_like_ptx(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (!isprint((unsigned char)text[i]) && !isspace((unsigned char)text[i]) && (signed char)text[i] >= 0)
            return false; /* bytes >= 0x80 occur in comments and names */
    return memmem(text, size, ".version", 8) != NULL;
}

/* Byte by byte: a text of one character has no second one to look at. `size` 0: unknown. */
static bool begins_with(const unsigned char *image, size_t size, uint32_t magic) {
    for (size_t i = 0; i < sizeof magic; i++)
        if ((size != 0 && i >= size) || image[i] != (unsigned char)(magic >> 8 * i))
            return false;
    return true;
}

static CUresult from_text(const char *image, size_t size, char **text, size_t *length, char *log, size_t log_size) {
    if (size == 0)
        size = strlen(image);
    while (size > 0 && image[size - 1] == '\0')
        size--;
    if (looks_like_ptx(image, size))
        return copy_text(image, size, text, length);
    snprintf(log, log_size, "The image is not PTX text.");
    return CUDA_ERROR_INVALID_IMAGE;
}

CUresult sg_image_ptx(const void *image, size_t size, char **text, size_t *length, char *log, size_t log_size) {
    if (begins_with(image, size, FATBIN_WRAPPER_MAGIC)) {
        struct {
            uint32_t magic, version;
            const void *data;
        } wrapper;
        memcpy(&wrapper, image, sizeof wrapper);
        return wrapper.data == NULL ? CUDA_ERROR_INVALID_IMAGE
                                    : sg_image_ptx(wrapper.data, 0, text, length, log, log_size);
    }
    if (begins_with(image, size, FATBIN_MAGIC) && (size == 0 || size >= sizeof(fatbin_header)))
        return from_fatbin(image, size, text, length, log, log_size);
    if (begins_with(image, size, ELF_MAGIC))
        return refuse("ELF", "The image is machine code (an ELF cubin); a software GPU runs PTX.",
                      CUDA_ERROR_NO_BINARY_FOR_GPU, log, log_size);
    if (begins_with(image, size, ARCHIVE_MAGIC))
        return refuse("archive", "The image is a library of machine code; a software GPU runs PTX.",
                      CUDA_ERROR_NO_BINARY_FOR_GPU, log, log_size);
    if (begins_with(image, size, BITCODE_MAGIC))
        return refuse("NVVM-IR", "The image is NVVM IR; a software GPU runs PTX.", CUDA_ERROR_INVALID_IMAGE, log,
                      log_size);
    return from_text(image, size, text, length, log, log_size);
}

CUresult sg_file_read(const char *path, char **data, size_t *size) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = fstat(file, &about) == 0 && S_ISREG(about.st_mode) ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND;
    char *content = result == CUDA_SUCCESS ? calloc((size_t)about.st_size + 1, 1) : NULL;
    size_t done = 0;
    while (content != NULL && done < (size_t)about.st_size) {
        ssize_t got = read(file, content + done, (size_t)about.st_size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    close(file);
    if (result == CUDA_SUCCESS && content == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *data = content;
    *size = done;
    return result;
}

/* Options come as a list of names and a list of values, values cast to pointers. */
void sg_jit_log(const sg_jit_options *options, bool error, const char *text) {
    int buffer_option = error ? CU_JIT_ERROR_LOG_BUFFER : CU_JIT_INFO_LOG_BUFFER;
    int size_option = error ? CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES : CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
    char *buffer = NULL;
    size_t size = 0;
    unsigned size_index = 0;
    for (unsigned i = 0; i < options->count; i++) {
        if (options->options[i] == buffer_option)
            buffer = options->values[i];
        if (options->options[i] == size_option) {
            size = (size_t)(uint32_t)(uintptr_t)options->values[i];
            size_index = i;
        }
    }
    if (buffer == NULL || size == 0)
        return;
    snprintf(buffer, size, "%s", text);
    options->values[size_index] = (void *)(uintptr_t)strlen(buffer); /* "on output, the bytes filled" */
}
