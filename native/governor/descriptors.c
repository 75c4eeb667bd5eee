#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Past what a file system or a driver itself locks, and below the largest offset. */
#define FIRST_KEY (UINT64_C(1) << 61)

uint64_t descriptors_new_key(void)
{
    uint64_t drawn;
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
        return 0;
    return FIRST_KEY | (drawn & (FIRST_KEY - 1));
}

/* ---- lines of /proc that list locks: "… FIRST LAST" at each line's end ---- */

enum { LINE_BYTES = 256 };

/* The number of the lock's first byte where the line is one of ours, else 0: both numbers are the same, and a key. */
static uint64_t key_of_line(const char *line, size_t length)
{
    uint64_t numbers[2] = {0, 0};
    for (int which = 1; which >= 0; which--) {
        uint64_t place = 1;
        while (length > 0 && line[length - 1] == ' ')
            length--;
        for (; length > 0 && line[length - 1] >= '0' && line[length - 1] <= '9'; length--, place *= 10)
            numbers[which] += (uint64_t)(line[length - 1] - '0') * place;
    }
    bool ours = numbers[0] == numbers[1] && numbers[0] >= FIRST_KEY && numbers[0] < 2 * FIRST_KEY;
    return ours ? numbers[0] : 0;
}

/* The first key in the file at `path` that is `wanted`, or any where that is 0; 0 none. *read: the file was read. */
static uint64_t find_key(const char *path, uint64_t wanted, bool *read_all)
{
    char text[4096], line[LINE_BYTES];
    size_t length = 0;
    uint64_t found = 0;
    int saved = errno, file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    while (found == 0 && file >= 0 && (got = read(file, text, sizeof text)) > 0)
        for (ssize_t at = 0; at < got && found == 0; at++) {
            if (text[at] != '\n') {
                if (length < LINE_BYTES)
                    line[length++] = text[at];
                continue;
            }
            uint64_t key = key_of_line(line, length);
            length = 0;
            if (key != 0 && (wanted == 0 || key == wanted))
                found = key;
        }
    if (file >= 0)
        close(file);
    *read_all = file >= 0 && got >= 0;
    errno = saved;
    return found;
}

/* ---- the name ---- */

uint64_t descriptors_key(int descriptor)
{
    char path[40] = "/proc/self/fdinfo/", digits[12];
    size_t at = sizeof digits;
    bool read_all;
    if (descriptor < 0)
        return 0;
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + descriptor % 10);
    while ((descriptor /= 10) != 0);
    strcat(path, &digits[at]);
    return find_key(path, 0, &read_all);
}

bool descriptors_open(uint64_t key)
{
    bool read_all;
    return find_key("/proc/locks", key, &read_all) == key || !read_all;
}

bool descriptors_name(int descriptor, uint64_t key)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)key, .l_len = 1};
    bool read_all;
    return key != 0 && fcntl(descriptor, F_OFD_SETLK, &lock) == 0 && descriptors_key(descriptor) == key &&
           find_key("/proc/locks", key, &read_all) == key;
}
