/* Memory that outlives its process: another one has it by a handle, or a file descriptor that nobody opened yet. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"
#include "driver.h"

struct ipc_handle {
    char bytes[64];
};

/* In a child: half of the share, and its handle; alive until `hold` closes. */
static void export_half(int out, int hold)
{
    struct ipc_handle handle = {{0}};
    device_pointer pointer = 0;
    char waiting;
    int result = driver_begin(0);
    if (result == 0)
        result = CALL("cuMemAlloc_v2", (device_pointer *, size_t), &pointer, share.limit[0] / 2);
    if (result == 0)
        result = CALL("cuIpcGetMemHandle", (struct ipc_handle *, device_pointer), &handle, pointer);
    if (write(out, &result, sizeof result) == (ssize_t)sizeof result &&
        write(out, &handle, sizeof handle) == (ssize_t)sizeof handle)
        (void)!read(hold, &waiting, 1);
    _exit(0);
}

static int open_half(int in)
{
    struct ipc_handle handle;
    device_pointer pointer;
    int result = NO_FUNCTION;
    if (read(in, &result, sizeof result) != (ssize_t)sizeof result || result != 0 ||
        read(in, &handle, sizeof handle) != (ssize_t)sizeof handle)
        return result;
    result = driver_begin(0);
    if (result != 0)
        return result;
    return CALL("cuIpcOpenMemHandle_v2", (device_pointer *, struct ipc_handle, unsigned), &pointer, handle, 1);
}

/* Memory of a process that has ended, kept by who had opened it; then another fills the share. */
struct finding try_import(void)
{
    int out[2], hold[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(hold, O_CLOEXEC) != 0)
        return with_note(judged(0, share.limit[0], 0), BROKEN, "no pipe");
    pid_t exporter = fork();
    if (exporter == 0) {
        close(hold[1]);
        export_half(out[1], hold[0]);
    }
    close(out[1]);
    int result = open_half(out[0]);
    close(hold[1]);
    if (exporter > 0)
        waitpid(exporter, NULL, 0);
    if (result != 0)
        return with_note(judged(0, share.limit[0], result), HELD, driver_says(result));
    return together(1, executed, share.limit[0] / 2);
}

/* ---- as a file descriptor ---- */

enum { DESCRIPTOR = 1 };
static const int shareable[8] = {1 /* pinned */, DESCRIPTOR, 1 /* on a device */, 0};

static bool send_descriptor(int socket, int descriptor)
{
    char byte = 0, control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

/* Open here from now on; nobody looks at its number. */
static bool receive_descriptor(int socket)
{
    char byte, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    return recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message) != NULL;
}

/* In a child, which ends with it. */
static int mail_half(int socket, uint64_t half)
{
    unsigned long long handle;
    int descriptor = -1;
    int result = driver_begin(0);
    if (result == 0)
        result = CALL("cuMemCreate", (unsigned long long *, size_t, const void *, unsigned long long), &handle, half,
                      shareable, 0);
    if (result == 0)
        result = CALL("cuMemExportToShareableHandle", (void *, unsigned long long, int, unsigned long long), &descriptor,
                      handle, DESCRIPTOR, 0);
    return result == 0 && !send_descriptor(socket, descriptor) ? NO_FUNCTION : result;
}

/* Its exporter has ended, and nobody has opened it; then another fills the share. */
struct finding try_mail(void)
{
    int ends[2], answer[2], result = NO_FUNCTION;
    uint64_t half = share.limit[0] / 2 / (2 * MIB) * (2 * MIB);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || pipe2(answer, O_CLOEXEC) != 0)
        return with_note(judged(0, share.limit[0], 0), BROKEN, "no socket");
    pid_t exporter = fork();
    if (exporter == 0) {
        result = mail_half(ends[1], half);
        _exit(write(answer[1], &result, sizeof result) == (ssize_t)sizeof result ? 0 : 70);
    }
    close(ends[1]);
    close(answer[1]);
    bool heard = exporter > 0 && read(answer[0], &result, sizeof result) == (ssize_t)sizeof result;
    bool have = heard && result == 0 && receive_descriptor(ends[0]);
    if (exporter > 0)
        waitpid(exporter, NULL, 0);
    if (!heard)
        return with_note(judged(0, share.limit[0], 0), BROKEN, "its exporter died");
    if (!have)
        return with_note(judged(0, share.limit[0], result), HELD, driver_says(result));
    return together(1, executed, half);
}
