/* Turns without a device: processes of one page in one program, with a clock that the program moves.
 *
 *   turns_alone parts ROUNDS WEIGHT…   each launches 0.1 ms whenever it may; prints what each was charged, in us
 *   turns_alone nonsense ROUNDS SEED   the same of two while words of the page turn into nonsense; nothing may crash,
 *                                      and both go on once that stops
 *   turns_alone hurried WEIGHT WEIGHT  the first launches, waits for that and launches again, the second as in `parts`;
 *                                      prints what each was charged and the longest wait of the first, in us
 *   turns_alone lane                   the first launches beside the second, who never waits for it; as `parts`
 *   turns_alone stopped                who has the turn is never heard of again; prints us until the other has it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bucket.h"
#include "turns.h"

enum { MOST = 8 };
#define KERNEL UINT64_C(100000)

static aliquot_turns page;
static struct turns all[MOST];
static uint64_t now = 1000000000, device_free, got_on[MOST];

static void begin(unsigned count, char **weights)
{
    for (unsigned at = 0; at < count; at++) {
        turns_begin(&all[at], &page, at + 1);
        all[at].share = (struct turns_share){at + 100, weights != NULL ? (uint32_t)atoi(weights[at]) : 500, 0};
    }
}

/* One process looks, and launches where it may: the device is then busy for 0.1 ms. */
static void step(struct turns *turns)
{
    uint64_t look, *last = &got_on[turns - all];
    if (now - *last > 1000 * TURNS_MILLISECOND) { /* as the gate's patience */
        turns_forget(turns);
        *last = now;
    }
    if (turns_ask(turns, KERNEL, now, &look) != TURNS_OURS)
        return;
    *last = now;
    struct turns_others others = turns_look(turns, now);
    if (turns_over(turns, &others, KERNEL)) {
        if (device_free <= now)
            turns_pass(turns, now);
        return;
    }
    if (device_free > now + 10 * KERNEL) {
        turns_renew(turns, device_free, device_free + TURNS_LINGER, now);
        return;
    }
    device_free = (device_free > now ? device_free : now) + KERNEL;
    turns_charge(turns, (int64_t)KERNEL);
    turns_renew(turns, device_free, device_free + TURNS_LINGER, now);
    turns_stop_waiting(turns);
}

/* A program that waits for each launch: it asks when the device has done it. */
static void step_in_a_hurry(struct turns *turns, uint64_t *since, uint64_t *longest)
{
    static uint64_t ends;
    uint64_t look;
    if (now < ends)
        return;
    turns->hurries = true;
    if (turns->word != 0) {
        struct turns_others others = turns_look(turns, now);
        if (turns_over(turns, &others, KERNEL))
            turns_pass(turns, now);
    }
    if (turns_ask(turns, KERNEL, now, &look) != TURNS_OURS)
        return;
    *longest = now - *since > *longest ? now - *since : *longest;
    ends = device_free = (device_free > now ? device_free : now) + KERNEL;
    *since = ends;
    turns_charge(turns, (int64_t)KERNEL);
    turns_renew(turns, ends, ends + TURNS_LINGER, now);
    turns_stop_waiting(turns);
}

static void run_hurried(char **weights)
{
    uint64_t since = now, longest = 0;
    begin(2, weights);
    for (long round = 0; round < 150000; round++, now += 20000) {
        step_in_a_hurry(&all[0], &since, &longest);
        longest = round < 5000 ? 0 : longest; /* until each knows of the other */
        step(&all[1]);
    }
    printf("%llu\n%llu\n%llu\n", (unsigned long long)all[0].charged / 1000, (unsigned long long)all[1].charged / 1000,
           (unsigned long long)longest / 1000);
}

/* The device works for both: only what they may launch is looked at. */
static void run_lane(void)
{
    uint64_t look;
    begin(2, NULL);
    for (long round = 0; round < 50000; round++, now += 20000) {
        turns_run_beside(&all[0], now + TURNS_MILLISECOND);
        if (turns_ask(&all[0], KERNEL, now, &look) == TURNS_BESIDE) {
            turns_charge(&all[0], (int64_t)KERNEL);
            turns_announce(&all[0], now + KERNEL);
            turns_stop_waiting(&all[0]);
        }
        step(&all[1]);
    }
    printf("%llu\n%llu\n", (unsigned long long)all[0].charged / 1000, (unsigned long long)all[1].charged / 1000);
}

static void run(unsigned count, long rounds)
{
    for (long round = 0; round < rounds; round++, now += 20000)
        for (unsigned at = 0; at < count; at++)
            step(&all[at]);
}

static void scribble(long rounds, unsigned seed)
{
    for (long round = 0; round < rounds; round++, now += 20000) {
        uint64_t words[] = {0, UINT64_MAX, now, now + 500000, now << 8, (uint64_t)rand_r(&seed) << 33 | (unsigned)rand_r(&seed)};
        size_t at = 8 + (size_t)rand_r(&seed) % (sizeof page / 8 - 8);
        memcpy((char *)&page + 8 * (round % 3 == 0 ? 8 + at % 40 : at), &words[rand_r(&seed) % 6], 8);
        for (unsigned who = 0; who < 2; who++)
            step(&all[who]);
    }
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 64;
    if (strcmp(arguments[1], "parts") == 0) {
        begin((unsigned)count - 3, arguments + 3);
        run((unsigned)count - 3, atol(arguments[2]));
        for (int at = 0; at < count - 3; at++)
            printf("%llu\n", (unsigned long long)all[at].charged / 1000);
    } else if (strcmp(arguments[1], "hurried") == 0) {
        run_hurried(arguments + 2);
    } else if (strcmp(arguments[1], "lane") == 0) {
        run_lane();
    } else if (strcmp(arguments[1], "nonsense") == 0) {
        begin(2, NULL);
        scribble(atol(arguments[2]), (unsigned)atoi(arguments[3]));
        now += 2000 * TURNS_MILLISECOND;
        uint64_t before[] = {all[0].charged, all[1].charged};
        run(2, 100000);
        printf("%llu\n%llu\n", (unsigned long long)(all[0].charged - before[0]) / 1000,
               (unsigned long long)(all[1].charged - before[1]) / 1000);
    } else {
        uint64_t look, since;
        begin(2, NULL);
        run(1, 100);
        for (since = now; turns_ask(&all[1], 0, now, &look) != TURNS_OURS; now += 10000)
            ;
        printf("%llu\n", (unsigned long long)(now - since) / 1000);
    }
    return 0;
}
