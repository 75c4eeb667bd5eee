/* The descriptors of `state` and `arena`, in a process that is not ours.
 *
 * A program may close every descriptor it does not know (closefrom, a daemon's first act) and open its
 * own files at the same numbers. So a remembered number is looked at before each use: only a number that
 * still names the file we opened is used or closed. Any other belongs to the program, and the file is
 * opened anew. Punching a hole into whatever has our old number would destroy the program's data.
 *
 * Losing the number loses no lock: the mapping of the state keeps the open file itself alive, and with it
 * the lock that says we live. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"

/* Device and inode do not tell our open file from the one that the other library of this process opened
 * of the same file. The file offset does: nothing here reads or writes by it, so it carries a mark. */
static off_t mark_of(const sg_file *file) {
    return (off_t)((uintptr_t)file >> 3);
}

static bool still_ours(const sg_file *file) {
    struct stat about;
    return file->number >= 0 && fstat(file->number, &about) == 0 && about.st_dev == file->device &&
           about.st_ino == file->inode && lseek(file->number, 0, SEEK_CUR) == mark_of(file);
}

static int open_anew(const char *folder, const char *name, sg_file *file) {
    char path[4200];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int number = open(path, O_RDWR | O_CLOEXEC);
    if (number < 0)
        return -errno;
    if (fstat(number, &about) != 0 || lseek(number, mark_of(file), SEEK_SET) < 0) {
        int error = -errno;
        close(number);
        return error;
    }
    /* Another file under the name: the device was removed and made again, and what we have mapped is not
     * part of the new one. */
    if (file->inode != 0 && (about.st_dev != file->device || about.st_ino != file->inode)) {
        close(number);
        return -ENOENT;
    }
    *file = (sg_file){.number = number, .device = about.st_dev, .inode = about.st_ino};
    return number;
}

void sg_file_close(sg_file *file) {
    if (still_ours(file))
        close(file->number);
    *file = SG_NO_FILE;
}

ssize_t sg_file_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    text[length < 0 ? 0 : length] = '\0';
    return length;
}

static const char *behind_key(const char *line, const char *key) {
    size_t length = key != NULL ? strlen(key) : 0;
    if (key == NULL)
        return line;
    bool is = strncmp(line, key, length) == 0 && line[length] != '\0' && strchr(" :\t", line[length]) != NULL;
    return is ? line + length + 1 : NULL;
}

static bool number_at(const char **at, uint64_t *number) {
    char *end;
    const char *digits = *at + strspn(*at, ": \t");
    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    *number = strtoull(digits, &end, 10);
    *at = end;
    return errno == 0 && strchr(" \t\n", *end) != NULL;
}

int sg_file_numbers(const char *path, const char *key, uint64_t *numbers, int room) {
    char *line = NULL;
    const char *at = NULL;
    size_t size = 0;
    int count = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && at == NULL && getline(&line, &size, file) > 0)
        if ((at = behind_key(line, key)) != NULL)
            while (count < room && number_at(&at, &numbers[count]))
                count++;
    free(line);
    if (file != NULL)
        fclose(file);
    return count;
}

int sg_state_file(sg_device *device) {
    pthread_mutex_lock(&device->files);
    bool kept = still_ours(&device->state_file);
    int number = kept ? device->state_file.number : open_anew(device->folder, "state", &device->state_file);
    if (!kept && number >= 0 && device->state != NULL)
        device->state_reopened = true;
    pthread_mutex_unlock(&device->files);
    return number;
}

int sg_arena_file(sg_device *device) {
    pthread_mutex_lock(&device->files);
    sg_file *file = &device->arena_file;
    int number = still_ours(file) ? file->number : open_anew(device->folder, "arena", file);
    pthread_mutex_unlock(&device->files);
    return number;
}
