/* Several processes of one share: racing, forked, and started anew. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"
#include "driver.h"
#include "program.h"

enum { RACERS = 8 };

struct crew {
    int hold; /* closed: everybody may end */
    pid_t members[RACERS];
    int answers[RACERS];
    unsigned count;
};

static bool add_member(struct crew *crew, int hold_reader, struct finding (*work)(void))
{
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        struct finding finding = work();
        char waiting;
        close(crew->hold); /* ours of it too: else we would wait for ourselves */
        if (write(pipe_ends[1], &finding, sizeof finding) == (ssize_t)sizeof finding)
            (void)!read(hold_reader, &waiting, 1);
        _exit(0);
    }
    close(pipe_ends[1]);
    if (child < 0) {
        close(pipe_ends[0]);
        return false;
    }
    crew->members[crew->count] = child;
    crew->answers[crew->count++] = pipe_ends[0];
    return true;
}

/* All that the members have at once. A member that died before it answered makes the sum unknown. */
struct finding together(unsigned count, struct finding (*work)(void), uint64_t held_already)
{
    struct crew crew = {0};
    int hold[2];
    if (pipe2(hold, O_CLOEXEC) != 0)
        return with_note(judged(0, share.limit[0], 0), BROKEN, "no pipe");
    crew.hold = hold[1];
    while (crew.count < count && add_member(&crew, hold[0], work))
        ;
    struct finding sum = judged(held_already, share.limit[0], 0);
    unsigned answered = 0;
    for (unsigned at = 0; at < crew.count; at++) {
        struct finding one;
        if (read(crew.answers[at], &one, sizeof one) != (ssize_t)sizeof one)
            continue;
        answered++;
        sum.granted += one.granted;
        sum.result = one.result;
    }
    sum = judged(sum.granted, sum.limit, sum.result);
    close(hold[0]);
    close(hold[1]);
    for (unsigned at = 0; at < crew.count; at++) {
        close(crew.answers[at]);
        waitpid(crew.members[at], NULL, 0);
    }
    if (sum.outcome == HELD && answered < count)
        return with_note(sum, BROKEN, "a process of it died or could not be started");
    return sum;
}

struct finding try_race(void)
{
    return together(RACERS, fill_directly, 0);
}

/* The library is loaded and its functions are found, then the program forks. */
struct finding try_fork(void)
{
    if (driver_function("cuInit") == NULL)
        return with_note(judged(0, share.limit[0], 0), HELD, "no driver is found");
    return together(4, fill_directly, 0);
}

static struct finding without_starting(void)
{
    int result = 0;
    uint64_t granted = allocate_directly(0, &result);
    return judged(granted, share.limit[0], result);
}

/* The parent has a context and half of the share; its child goes on as if both were its own. */
struct finding try_fork_after(void)
{
    device_pointer pointer;
    uint64_t half = share.limit[0] / 2;
    int result = driver_begin(0);
    if (result == 0)
        result = CALL("cuMemAlloc_v2", (device_pointer *, size_t), &pointer, half);
    return together(2, without_starting, result == 0 ? half : 0);
}

struct finding executed(void)
{
    struct finding finding = {0};
    if (!program_fill(&finding))
        return with_note(finding, BROKEN, "the program did not start itself");
    return finding;
}

/* The parent holds what it gets; what its child executes tries the same again. */
struct finding try_exec(void)
{
    struct finding own = fill_directly();
    if (own.outcome == HOLE)
        return own;
    return together(2, executed, own.granted);
}

/* glibc finds thread-local variables of a library that a static program loads only where that asks for them as
 * little as can be, so some drivers crash there before they allocate: then what the share is shown as is all that
 * can be asked. */
struct finding try_static(void)
{
    size_t total = 0;
    if (driver_function("cuInit") == NULL)
        return with_note(judged(0, share.limit[0], 0), HELD, "no driver is found");
    int result = CALL("cuInit", (unsigned), 0);
    if (result == 0)
        result = CALL("cuDeviceTotalMem_v2", (size_t *, int), &total, 0);
    struct finding filled = together(1, fill_directly, 0);
    if (filled.outcome != BROKEN)
        return filled;
    struct finding shown = judged(total, share.limit[0], result);
    return with_note(shown, shown.outcome, "of what it is shown: the driver itself does not run in a static program");
}

static int threads_result;

static void *thread(void *unused)
{
    (void)unused;
    int result = driver_begin(0);
    uint64_t granted = result == 0 ? allocate_directly(0, &result) : 0;
    threads_result = result;
    return (void *)(uintptr_t)granted;
}

struct finding try_threads(void)
{
    pthread_t threads[RACERS];
    unsigned count = 0;
    uint64_t granted = 0;
    while (count < RACERS && pthread_create(&threads[count], NULL, thread, NULL) == 0)
        count++;
    for (unsigned at = 0; at < count; at++) {
        void *its;
        pthread_join(threads[at], &its);
        granted += (uintptr_t)its;
    }
    return judged(granted, share.limit[0], threads_result);
}
