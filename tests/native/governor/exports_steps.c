/* native/governor/exports.c and total.c by themselves, over a file as the ledger is one.
 *
 *   exports_steps SCENARIO STRIDE    a process is killed at every STRIDE-th instruction of it; who comes next clears
 *                                    what it left, and each byte is then charged once, or not at all; prints at how many
 *
 *   publish     exports memory
 *   withdraw    frees exported memory that nobody holds
 *   pass-on     frees exported memory that another holds
 *   let-go      closes memory whose exporter is gone
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aliquot_abi.h"
#include "exports.h"
#include "locks.h"
#include "share.h"
#include "total.h"

struct share share;
static char ledger_name[] = "/tmp/exports_steps_XXXXXX";

enum { CHILD = 0, OTHER = 1, SIZE = 10, KEY = 77 };

int share_open_ledger(bool writable)
{
    return open(ledger_name, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

bool share_is_ledger(int descriptor)
{
    return descriptor >= 0; /* nobody closes our numbers here */
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    unlink(ledger_name);
    exit(1);
}

static uint64_t used(unsigned slot)
{
    return share.ledger->slots[slot].used[0];
}

static void set(unsigned slot, uint64_t bytes)
{
    total_step(slot, 0, used(slot), bytes, TOTAL_NO_LIMIT);
}

static void begin(void)
{
    int file = mkstemp(ledger_name);
    if (file < 0 || ftruncate(file, sizeof *share.ledger) != 0)
        fail("no file");
    share.ledger = mmap(NULL, sizeof *share.ledger, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (share.ledger == MAP_FAILED || !locks_open(true))
        fail("no mapping");
    share.devices = 1;
    share.ledger->high_water = 2;
}

/* ---- scenarios: what is there before, and what the child then does ---- */

static int export;

static void before(const char *scenario)
{
    set(CHILD, SIZE);
    set(OTHER, 1);
    export = EXPORT_NONE;
    if (strcmp(scenario, "let-go") == 0) {
        export = exports_publish(OTHER, KEY, 0, SIZE);
        set(OTHER, SIZE + 1);
        exports_hold(CHILD, KEY);
        exports_withdraw(OTHER, (unsigned)export);
        set(OTHER, 1);
    } else if (strcmp(scenario, "publish") != 0) {
        export = exports_publish(CHILD, KEY, 0, SIZE);
    }
    if (strcmp(scenario, "pass-on") == 0)
        exports_hold(OTHER, KEY);
    locks_end();
}

__attribute__((noreturn)) static void traced_child(const char *scenario)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    if (strcmp(scenario, "publish") == 0) {
        exports_publish(CHILD, KEY, 0, SIZE);
    } else if (strcmp(scenario, "let-go") == 0) {
        exports_let_go(CHILD, (unsigned)export);
    } else {
        exports_withdraw(CHILD, (unsigned)export);
        set(CHILD, 0);
    }
    _exit(0);
}

static bool lives_after(pid_t child, long instructions)
{
    int status;
    waitpid(child, &status, 0);
    for (long at = 0; at < instructions && WIFSTOPPED(status); at++) {
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
        waitpid(child, &status, 0);
    }
    return WIFSTOPPED(status);
}

/* ---- afterwards ---- */

static uint64_t exported(void)
{
    uint64_t bytes = 0;
    for (unsigned at = 0; at < ALIQUOT_EXPORTS_MAX; at++)
        bytes += share.ledger->exports[at].bytes;
    return bytes;
}

/* As who clears a dead process's slot does. */
static void clear_child(void)
{
    total_finish(CHILD);
    if (!exports_of_dead(CHILD))
        fail("the table is still locked by the dead");
    set(CHILD, 0);
    locks_end();
}

static void check(bool held)
{
    if (total_bytes(0) != used(CHILD) + used(OTHER) + exported())
        fail("the total is not the sum of its accounts");
    if (exported() != (held ? SIZE : 0))
        fail(held ? "what another holds is not charged" : "what nobody holds is charged");
}

static long kills(const char *scenario, long stride)
{
    bool held = strcmp(scenario, "pass-on") == 0;
    for (long at = 0;; at++) {
        before(scenario);
        pid_t child = fork();
        if (child == 0)
            traced_child(scenario);
        bool lives = lives_after(child, at * stride);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        clear_child();
        check(held);
        if (held) {
            exports_let_go(OTHER, (unsigned)export);
            locks_end();
            check(false);
        }
        if (!lives)
            return at;
    }
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 64;
    begin();
    printf("%ld\n", kills(arguments[1], atol(arguments[2])));
    unlink(ledger_name);
    return 0;
}
