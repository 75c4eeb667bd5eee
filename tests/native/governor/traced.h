/* A child that its parent stops after a number of instructions. */
#ifndef TRACED_H
#define TRACED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: from here on it is counted. */
static inline void traced_from_here(void)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
}

/* Kill `child` after that many instructions. False where it had ended before. */
static inline bool traced_kill(pid_t child, long instructions)
{
    int status;
    waitpid(child, &status, 0);
    for (long at = 0; at < instructions && WIFSTOPPED(status); at++) {
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
        waitpid(child, &status, 0);
    }
    if (!WIFSTOPPED(status))
        return false;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return true;
}

#endif
