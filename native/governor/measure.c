#include "measure.h"

/* What a neighbour has under way may not be charged to it yet. */
#define UNDER_WAY UINT64_C(6000000)
/* What a change of hands may take, and the neighbour's last work more than it said. */
#define CHANGE UINT64_C(150000)

static uint64_t smaller(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

/* The device waited for the program in between: the events show the program's pace, not the work's cost. */
static bool is_paced(const struct measure *measure)
{
    return !measure->solo && measure->known && measure->issuing > measure->span / 10 * 7 &&
           measure->span > measure->predicted + measure->predicted / 10;
}

/* A neighbour had the device in between, and its charges come late: what is known of the launch counts, unless
 * it took so much longer that the neighbour cannot be why. Of an unknown one that was long, what others were not
 * charged of the time; that is learned as well, for with it the next turn is long enough to measure. A short
 * one mostly waited for the neighbour's slices, and says nothing. */
static struct verdict judge_disturbed(const struct measure *measure)
{
    uint64_t own = measure->span > measure->others ? measure->span - measure->others : 0;
    if ((measure->known ? own : measure->span) < measure->predicted + UNDER_WAY)
        return (struct verdict){.charge = smaller(measure->predicted, measure->span)};
    return (struct verdict){.charge = own > measure->span / 8 ? own : measure->span / 8,
                            .learn = measure->solo && !measure->known,
                            .rough = true};
}

/* Nobody pays for the change of hands, nor for what was left of a neighbour's work, which may have ended before it
 * said: it is known of the launch what it takes, unless that was something else. */
static bool is_as_predicted(const struct measure *measure)
{
    return measure->known && measure->span >= measure->predicted &&
           measure->span < measure->predicted + measure->lead + CHANGE;
}

/* The same of a long kernel with guests beside it: the device changed hands as often as they came, and each of them
 * had at least a little. */
static bool is_as_predicted_beside_guests(const struct measure *measure)
{
    return measure->known && measure->others != 0 && measure->span >= measure->predicted + measure->others &&
           measure->span < measure->predicted + measure->others * 5 / 2 + CHANGE;
}

/* Of guests beside a long kernel it is known what they had; where work is short it is told too late. */
static uint64_t own_of(const struct measure *measure, bool is_long)
{
    uint64_t theirs = measure->lead + (is_long ? measure->others : 0);
    if (measure->known && measure->span < measure->predicted)
        return measure->span;
    return measure->span > theirs + measure->span / 8 ? measure->span - theirs : measure->span / 8;
}

struct verdict measure_judge(const struct measure *measure)
{
    bool begins = measure->first || measure->lead != 0; /* the device changed hands in it */
    bool is_long = measure->solo && measure->span > UNDER_WAY;
    if (!measure->measured)
        return (struct verdict){.charge = measure->predicted};
    if (measure->disturbed || (!is_long && measure->others > measure->span / 8))
        return judge_disturbed(measure);
    if (is_paced(measure) || (begins && is_as_predicted(measure)) ||
        (is_long && is_as_predicted_beside_guests(measure)))
        return (struct verdict){.charge = measure->predicted};
    return (struct verdict){.charge = own_of(measure, is_long),
                            .exact = !begins,
                            .learn = measure->solo,
                            .rough = begins && !is_long,
                            .drift = !begins && !measure->solo && measure->known && measure->launches > 1};
}
