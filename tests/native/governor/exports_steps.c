/* native/governor/exports.c and total.c by themselves, over a file as the ledger is one.
 *
 *   exports_steps SCENARIO STRIDE    a process is killed at every STRIDE-th instruction of it; who comes next clears
 *                                    what it left, and each byte is then charged once, or not at all; prints at how many
 *
 *   publish     exports memory
 *   withdraw    frees exported memory that nobody holds
 *   pass-on     frees exported memory that another holds
 *   let-go      closes memory whose exporter is gone
 *   in-file     frees memory that lies in an open file, which is closed afterwards
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aliquot_abi.h"
#include "descriptors.h"
#include "exports.h"
#include "locks.h"
#include "share.h"
#include "total.h"
#include "traced.h"

struct share share;
static char ledger_name[] = "/tmp/exports_steps_XXXXXX";

enum { CHILD = 0, OTHER = 1, SIZE = 10, KEY = 77 };

static int mailed = -1; /* the open file */

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
        export = exports_publish(OTHER, KEY, 0, SIZE, false);
        set(OTHER, SIZE + 1);
        exports_hold(CHILD, KEY);
        exports_withdraw(OTHER, (unsigned)export);
        set(OTHER, 1);
    } else if (strcmp(scenario, "in-file") == 0) {
        uint64_t key = descriptors_new_key();
        mailed = open("/dev/null", O_RDWR | O_CLOEXEC);
        export = exports_publish(CHILD, key, 0, SIZE, true);
        if (!descriptors_name(mailed, key) || descriptors_key(mailed) != key)
            fail("an open file takes no name");
    } else if (strcmp(scenario, "publish") != 0) {
        export = exports_publish(CHILD, KEY, 0, SIZE, false);
    }
    if (strcmp(scenario, "pass-on") == 0)
        exports_hold(OTHER, KEY);
    locks_end();
}

__attribute__((noreturn)) static void traced_child(const char *scenario)
{
    traced_from_here();
    if (strcmp(scenario, "publish") == 0) {
        exports_publish(CHILD, KEY, 0, SIZE, false);
    } else if (strcmp(scenario, "let-go") == 0) {
        exports_let_go(CHILD, (unsigned)export);
    } else {
        exports_withdraw(CHILD, (unsigned)export);
        set(CHILD, 0);
    }
    _exit(0);
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
        fail(held ? "what is held is not charged" : "what nobody holds is charged");
}

static long kills(const char *scenario, long stride)
{
    bool passed_on = strcmp(scenario, "pass-on") == 0, in_file = strcmp(scenario, "in-file") == 0;
    for (long at = 0;; at++) {
        before(scenario);
        pid_t child = fork();
        if (child == 0)
            traced_child(scenario);
        bool lives = traced_kill(child, at * stride);
        clear_child();
        check(passed_on || in_file);
        if (passed_on)
            exports_let_go(OTHER, (unsigned)export);
        close(mailed);
        exports_sweep();
        locks_end();
        check(false);
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
