/* The steps of native/governor/total.c by themselves: no driver, no locks, nothing that mends.
 *
 *   total_steps kill             a child is killed at every instruction of two steps, another account takes
 *                                a step or not, and the child's is finished; prints how many instructions
 *   total_steps race ACCOUNTS ROUNDS
 *                                threads as accounts at the limit, over one mapping, so that ThreadSanitizer
 *                                sees what processes do to each other's words; prints the steps taken
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aliquot_abi.h"
#include "share.h"
#include "total.h"
#include "traced.h"

struct share share;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void begin(unsigned accounts)
{
    share.ledger = mmap(NULL, sizeof *share.ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    share.devices = 1;
    if (share.ledger == MAP_FAILED)
        fail("no memory");
    share.ledger->high_water = accounts;
}

static uint64_t used(unsigned account)
{
    return __atomic_load_n(&share.ledger->slots[account].used[0], __ATOMIC_SEQ_CST);
}

/* ---- kill ---- */

enum { CHILD = 0, PARENT = 1 };

__attribute__((noreturn)) static void traced_child(void)
{
    traced_from_here();
    total_step(CHILD, 0, 5, 12, 1000);
    total_step(CHILD, 0, 12, 3, 1000);
    _exit(0);
}

static int kills(void)
{
    long at = 0;
    begin(2);
    for (;; at++) {
        total_step(CHILD, 0, used(CHILD), 5, TOTAL_NO_LIMIT);
        pid_t child = fork();
        if (child == 0)
            traced_child();
        if (!traced_kill(child, at / 2))
            break;
        if (at % 2 == 1) /* the word that names the child's step is another's by now */
            total_step(PARENT, 0, used(PARENT), used(PARENT) ^ 1, TOTAL_NO_LIMIT);
        total_finish(CHILD);
        if (total_bytes(0) != used(CHILD) + used(PARENT))
            fail("the total is not the sum of its accounts");
        total_finish(CHILD); /* and whoever finishes may be killed, and another begin anew */
        total_step(CHILD, 0, used(CHILD), 0, TOTAL_NO_LIMIT);
        if (total_bytes(0) != used(PARENT))
            fail("what the dead held is not gone");
    }
    printf("%ld\n", at / 2);
    return 0;
}

/* ---- race ---- */

enum { LIMIT = 1000 };
static long rounds;

static void *account(void *number)
{
    unsigned own = (unsigned)(uintptr_t)number, seed = own + 1;
    uintptr_t steps = 0;
    uint64_t holds = 0;
    for (long round = 0; round < rounds; round++) {
        uint64_t next = (uint64_t)rand_r(&seed) % 400;
        if (total_step(own, 0, holds, next, LIMIT)) {
            holds = next;
            steps++;
        }
        if (total_bytes(0) > LIMIT)
            fail("over the limit");
        if (round % 64 == 0)
            total_mend(0, own, holds);
    }
    return (void *)steps;
}

static int race(unsigned accounts, long each)
{
    pthread_t threads[64];
    unsigned long steps = 0;
    uint64_t sum = 0;
    rounds = each;
    begin(accounts);
    for (unsigned at = 0; at < accounts; at++)
        pthread_create(&threads[at], NULL, account, (void *)(uintptr_t)at);
    for (unsigned at = 0; at < accounts; at++) {
        void *taken;
        pthread_join(threads[at], &taken);
        steps += (unsigned long)(uintptr_t)taken;
        sum += used(at);
    }
    if (sum != total_bytes(0))
        fail("the total is not the sum of its accounts");
    printf("%lu\n", steps);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "kill") == 0)
        return kills();
    if (count == 4 && strcmp(arguments[1], "race") == 0)
        return race((unsigned)atoi(arguments[2]), atol(arguments[3]));
    return 64;
}
