#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

extern char **environ;

enum { SECONDS_PER_ATTEMPT = 120, ARGUMENTS_MAX = DEVICES_MAX + 8, VARIABLES_MAX = 4096 };

unsigned program_arguments(char *arguments[], unsigned room)
{
    unsigned count = 0;
    for (unsigned device = 0; device < share.devices && count < room; device++) {
        char *text = malloc(160);
        if (text == NULL)
            break;
        snprintf(text, 160, "--device=%s=%llu=%llu=%u", share.uuid[device], (unsigned long long)share.limit[device],
                 (unsigned long long)share.context_bytes[device], share.thousandths[device]);
        arguments[count++] = text;
    }
    return count;
}

/* ---- environments ---- */

static bool begins(const char *variable, const char *with)
{
    return strncmp(variable, with, strlen(with)) == 0;
}

static bool is_dropped(const char *variable, enum environment kind)
{
    switch (kind) {
    case NOTHING:
        return true;
    case NO_LIBRARY_PATH:
    case EMPTY_LIBRARY_PATH:
        return begins(variable, "LD_LIBRARY_PATH=");
    case OTHER_SHARE:
        return begins(variable, "ALIQUOT_");
    case ALL_DEVICES:
        return begins(variable, "CUDA_VISIBLE_DEVICES=") || begins(variable, "NVIDIA_VISIBLE_DEVICES=");
    case OTHER_ORDER:
        return begins(variable, "CUDA_");
    case AS_IT_IS:
        break;
    }
    return false;
}

static char *const added[][4] = {
    [EMPTY_LIBRARY_PATH] = {"LD_LIBRARY_PATH=", NULL},
    [OTHER_SHARE] = {"ALIQUOT_LEASE=00000", "ALIQUOT_RUNTIME_DIR=/nonexistent", "ALIQUOT_STATE_DIR=/nonexistent", NULL},
    [ALL_DEVICES] = {"CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "NVIDIA_VISIBLE_DEVICES=all", NULL},
    [OTHER_ORDER] = {"CUDA_DEVICE_ORDER=FASTEST_FIRST", "CUDA_VISIBLE_DEVICES=15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0",
                     NULL},
    [NOTHING] = {NULL},
};

static char **environment_of(enum environment kind)
{
    static char *variables[VARIABLES_MAX];
    unsigned count = 0;
    for (char **variable = environ; *variable != NULL && count < VARIABLES_MAX - 8; variable++)
        if (!is_dropped(*variable, kind))
            variables[count++] = *variable;
    for (char *const *more = added[kind]; kind != AS_IT_IS && *more != NULL; more++)
        variables[count++] = *more;
    variables[count] = NULL;
    return variables;
}

/* ---- starting ---- */

static bool own_path(char *path, size_t size, bool other)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 16);
    if (length <= 0)
        return false;
    path[length] = '\0';
    if (other)
        strcat(path, "-static");
    return true;
}

bool program_remove(void)
{
    char path[PATH_MAX];
    bool removed = own_path(path, sizeof path, true) && unlink(path) == 0;
    return own_path(path, sizeof path, false) && unlink(path) == 0 && removed;
}

static void become(const struct attempt *attempt, int out)
{
    char path[PATH_MAX], name[64];
    char *arguments[ARGUMENTS_MAX] = {"aliquot-verify", name};
    snprintf(name, sizeof name, "--attempt=%s", attempt->name);
    arguments[2 + program_arguments(arguments + 2, ARGUMENTS_MAX - 3)] = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* so that whatever it starts ends with it */
    if (dup2(out, STDOUT_FILENO) >= 0 && own_path(path, sizeof path, attempt->in_static_program))
        execve(path, arguments, environment_of(attempt->environment));
    _exit(errno == ENOENT ? 71 : 70);
}

/* The finding that the child writes, whole; false where it did not within its time. */
static bool hear(int in, struct finding *finding)
{
    struct pollfd poller = {.fd = in, .events = POLLIN};
    size_t have = 0;
    while (have < sizeof *finding) {
        if (poll(&poller, 1, SECONDS_PER_ATTEMPT * 1000) <= 0)
            return false;
        ssize_t more = read(in, (char *)finding + have, sizeof *finding - have);
        if (more <= 0)
            return false;
        have += (size_t)more;
    }
    return true;
}

struct finding program_run(const struct attempt *attempt)
{
    struct finding finding = {.outcome = BROKEN};
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return with_note(finding, BROKEN, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become(attempt, ends[1]);
    }
    close(ends[1]);
    bool heard = child > 0 && hear(ends[0], &finding);
    close(ends[0]);
    if (child > 0) {
        kill(-child, SIGKILL);
        waitpid(child, &status, 0);
    }
    if (heard) {
        finding.note[sizeof finding.note - 1] = '\0';
        return finding;
    }
    memset(&finding, 0, sizeof finding);
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 71)
        return with_note(finding, UNTRIED, "this build has no static program");
    char note[64];
    snprintf(note, sizeof note, WIFSIGNALED(status) ? "it ended with signal %d" : "it ended with code %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return with_note(finding, BROKEN, note);
}

bool program_fill(struct finding *finding)
{
    int in[2], out[2];
    char path[PATH_MAX];
    char *arguments[ARGUMENTS_MAX] = {"aliquot-verify", "--fill"};
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || !own_path(path, sizeof path, false))
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(in[1]);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        arguments[2 + program_arguments(arguments + 2, ARGUMENTS_MAX - 3)] = NULL;
        execv(path, arguments);
        _exit(70);
    }
    close(in[0]);
    close(out[1]);
    return child > 0 && hear(out[0], finding); /* in[1] stays open: it ends with us */
}

int program_filled(int in, int out)
{
    struct finding finding = driver_open(0) ? fill_directly() : (struct finding){.limit = share.limit[0]};
    char waiting;
    if (write(out, &finding, sizeof finding) != (ssize_t)sizeof finding)
        return 70;
    (void)!read(in, &waiting, 1);
    return 0;
}
