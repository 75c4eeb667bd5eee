#include "measure.h"

/* The device waited for the program in between: the events show the program's pace, not the work's cost. */
static bool is_paced(const struct measure *measure)
{
    return !measure->solo && measure->known && measure->issuing > measure->span / 10 * 7 &&
           measure->span > measure->predicted + measure->predicted / 10;
}

/* What a neighbour has under way may not be charged to it yet. */
#define UNDER_WAY UINT64_C(6000000)

/* A neighbour had the device in between, and its charges come late: what is known of the launch counts, unless
 * it took so much longer that the neighbour cannot be why. Of an unknown one that was long, what others were not
 * charged of the time; that is learned as well, for with it the next turn is long enough to measure. A short
 * one mostly waited for the neighbour's slices, and says nothing. */
static struct verdict judge_disturbed(const struct measure *measure)
{
    uint64_t own = measure->span > measure->others ? measure->span - measure->others : 0;
    if ((measure->known ? own : measure->span) < measure->predicted + UNDER_WAY)
        return (struct verdict){.charge = measure->predicted < measure->span ? measure->predicted : measure->span};
    return (struct verdict){.charge = own > measure->span / 8 ? own : measure->span / 8, .learn = measure->solo && !measure->known};
}

struct verdict measure_judge(const struct measure *measure)
{
    if (!measure->measured)
        return (struct verdict){.charge = measure->predicted};
    if (measure->disturbed)
        return judge_disturbed(measure);
    if (is_paced(measure))
        return (struct verdict){.charge = measure->predicted};
    return (struct verdict){.charge = measure->span,
                            .learn = measure->solo,
                            .drift = !measure->solo && measure->known && measure->launches > 1};
}
