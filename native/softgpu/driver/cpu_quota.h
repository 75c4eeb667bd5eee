#ifndef SG_CPU_QUOTA_H
#define SG_CPU_QUOTA_H

/* CPUs that the control groups of this process allow it, rounded up; 0: no limit, or none that can be read.
 * `root` comes before every path: empty, or a folder that looks like / in a test. */
unsigned sg_cpu_quota(const char *root);

#endif
