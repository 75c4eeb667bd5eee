/* The page of turns under threads that are processes to each other, over one mapping: ThreadSanitizer sees what they do
 * to each other's words, where it sees nothing of other processes.
 *
 *   turns_race THREADS ROUNDS SCRIBBLERS
 *
 * Each thread asks, launches where it may, charges, renews, closes or passes, by a clock that all of them move.
 * Prints how often the turn was taken by the one who had it least. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "turns.h"

enum { MOST = 16 };
#define KERNEL UINT64_C(100000)

static aliquot_turns page;
static uint64_t moment = 1000000000;
static long rounds;
static unsigned threads;
static int done;

static uint64_t look_at_clock(void)
{
    return __atomic_add_fetch(&moment, 2000, __ATOMIC_SEQ_CST);
}

static void have_turn(struct turns *turns, unsigned which)
{
    uint64_t now = look_at_clock();
    struct turns_others others = turns_look(turns, now);
    if (turns_over(turns, &others, KERNEL)) {
        if (which % 2 == 0)
            turns_pass(turns, now);
        else
            turns_close(turns, now + KERNEL / 4, now);
        return;
    }
    turns_charge(turns, (int64_t)KERNEL);
    turns_renew(turns, now + KERNEL, now + KERNEL + TURNS_LINGER, now);
    turns_stop_waiting(turns);
}

static void *take_part(void *argument)
{
    static struct turns all[MOST];
    unsigned which = (unsigned)(uintptr_t)argument;
    struct turns *turns = &all[which];
    turns_begin(turns, &page, which + 1);
    turns_weigh(turns, (struct turns_share){which + 100, 100 + 50 * which, 0}, 0);
    turns->hurries = which % 3 == 0;
    for (long round = 0; round < rounds; round++) {
        uint64_t look, now = look_at_clock();
        if (round % 1000 == 999)
            turns_weigh(turns, (struct turns_share){which + 100, 100 + 50 * (unsigned)(round / 1000 % 10), 0}, now);
        if (which == 1 && round % 500 == 0)
            turns_run_beside(turns, now + TURNS_MILLISECOND);
        enum turns_answer answer = turns_ask(turns, KERNEL, now, &look);
        if (answer == TURNS_OURS)
            have_turn(turns, which);
        else if (answer != TURNS_WAIT) {
            turns_announce(turns, now + KERNEL);
            turns_charge(turns, (int64_t)KERNEL);
            turns_stop_waiting(turns);
        }
    }
    return (void *)(uintptr_t)turns->taken;
}

static void *scribble(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    uint64_t *words = (uint64_t *)&page;
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
        uint64_t kinds[] = {0, UINT64_MAX, look_at_clock(), (uint64_t)rand_r(&seed) << 33 | (unsigned)rand_r(&seed)};
        size_t at = 8 + (size_t)rand_r(&seed) % (sizeof page / 8 - 8);
        __atomic_store_n(&words[rand_r(&seed) % 4 == 0 ? 8 : at], kinds[rand_r(&seed) % 4], __ATOMIC_SEQ_CST);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 64;
    threads = (unsigned)atoi(arguments[1]);
    rounds = atol(arguments[2]);
    unsigned scribblers = (unsigned)atoi(arguments[3]);
    if (threads == 0 || threads + scribblers > MOST)
        return 64;
    pthread_t all[MOST];
    for (unsigned at = 0; at < threads + scribblers; at++)
        if (pthread_create(&all[at], NULL, at < threads ? take_part : scribble, (void *)(uintptr_t)at) != 0)
            return 70;
    uintptr_t least = UINTPTR_MAX;
    for (unsigned at = 0; at < threads + scribblers; at++) {
        void *taken;
        if (at == threads)
            __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
        pthread_join(all[at], &taken);
        if (at < threads && (uintptr_t)taken < least)
            least = (uintptr_t)taken;
    }
    printf("%zu\n", (size_t)least);
    return 0;
}
