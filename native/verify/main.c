/* Tries to break the share that it runs in, as any program of a tenant could, and says how far it got.
 *
 *   aliquot-verify --device=UUID=LIMIT_BYTES[=CONTEXT_BYTES[=THOUSANDTHS]] …
 *                                                                  all attempts, one line of JSON each; those of
 *                                                                  compute where THOUSANDTHS is given
 *   aliquot-verify --only=NAME --device=…                          that one
 *   aliquot-verify --report=FD --device=…                          the lines go there and not to stdout
 *   aliquot-verify --arguments=FD                                  more --device=…, a line each, from there
 *   aliquot-verify --remove                                        deletes its own files
 *
 * Exit code: 0 the share holds, 7 a hole or an attempt that broke off, 2 wrong arguments. It needs no
 * privilege, changes nothing that it does not put back, and frees all it took when it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attempt.h"
#include "driver.h"
#include "program.h"

struct share share;

const struct attempt attempts[] = {
    {"allocate", "memory", "cuMemAlloc", try_direct, AS_IT_IS, false},
    {"allocate-legacy", "memory", "cuMemAlloc of CUDA 2", try_legacy, AS_IT_IS, false},
    {"pitched", "memory", "cuMemAllocPitch", try_pitch, AS_IT_IS, false},
    {"managed", "memory", "cuMemAllocManaged", try_managed, AS_IT_IS, false},
    {"array", "memory", "cuArrayCreate", try_array, AS_IT_IS, false},
    {"array-3d", "memory", "cuArray3DCreate", try_array_3d, AS_IT_IS, false},
    {"mipmap", "memory", "cuMipmappedArrayCreate", try_mipmap, AS_IT_IS, false},
    {"virtual", "memory", "cuMemCreate", try_virtual, AS_IT_IS, false},
    {"virtual-mapped", "memory", "cuMemCreate, mapped, its handle released", try_virtual_mapped, AS_IT_IS, false},
    {"async", "memory", "cuMemAllocAsync", try_async, AS_IT_IS, false},
    {"async-thread", "memory", "cuMemAllocAsync_ptsz", try_async_thread, AS_IT_IS, false},
    {"pool", "memory", "cuMemAllocFromPoolAsync of a pool of its own", try_pool, AS_IT_IS, false},
    {"graph-node", "memory", "memory nodes of graphs", try_graph_node, AS_IT_IS, false},
    {"graph-captured", "memory", "cuMemAllocAsync, captured and launched", try_captured, AS_IT_IS, false},
    {"contexts", "memory", "contexts, as many as it gets", try_contexts, AS_IT_IS, false},
    {"modules", "memory", "modules with static data", try_module, AS_IT_IS, false},
    {"heap", "memory", "cuCtxSetLimit of the device's heap", try_heap, AS_IT_IS, false},
    {"double-free", "memory", "frees of what it no longer has", try_double_free, AS_IT_IS, false},
    {"race", "processes", "8 processes at once", try_race, AS_IT_IS, false},
    {"threads", "processes", "8 threads at once", try_threads, AS_IT_IS, false},
    {"fork", "processes", "fork, then start CUDA", try_fork, AS_IT_IS, false},
    {"fork-after", "processes", "start CUDA, then fork", try_fork_after, AS_IT_IS, false},
    {"exec", "processes", "fork and exec", try_exec, AS_IT_IS, false},
    {"import", "processes", "memory of a process that has ended", try_import, AS_IT_IS, false},
    {"mail", "processes", "a descriptor of memory of a process that has ended", try_mail, AS_IT_IS, false},
    {"library-path-unset", "ways", "LD_LIBRARY_PATH unset", try_environment, NO_LIBRARY_PATH, false},
    {"library-path-empty", "ways", "LD_LIBRARY_PATH empty", try_environment, EMPTY_LIBRARY_PATH, false},
    {"aliquot-variables", "ways", "ALIQUOT_* edited", try_environment, OTHER_SHARE, false},
    {"visible-devices", "ways", "CUDA_VISIBLE_DEVICES edited", try_devices, ALL_DEVICES, false},
    {"device-order", "ways", "CUDA_DEVICE_ORDER edited", try_devices, OTHER_ORDER, false},
    {"no-environment", "ways", "an empty environment", try_environment, NOTHING, false},
    {"get-proc-address", "ways", "cuGetProcAddress", try_addresses, AS_IT_IS, false},
    {"deepbind", "ways", "dlopen with RTLD_DEEPBIND", try_deepbind, AS_IT_IS, false},
    {"loaded-twice", "ways", "the library loaded twice", try_twice, AS_IT_IS, false},
    {"static", "ways", "a static program", try_static, AS_IT_IS, true},
    {"limits-file", "ways", "the file of the share's limits", try_limits_file, AS_IT_IS, false},
    {"launch", "compute", "cuLaunchKernel", try_launch, AS_IT_IS, false},
    {"launch-thread", "compute", "cuLaunchKernel_ptsz", try_launch_thread, AS_IT_IS, false},
    {"launch-extended", "compute", "cuLaunchKernelEx", try_launch_extended, AS_IT_IS, false},
    {"launch-cooperative", "compute", "cuLaunchCooperativeKernel", try_launch_cooperative, AS_IT_IS, false},
    {"launch-legacy", "compute", "cuLaunchGridAsync", try_launch_legacy, AS_IT_IS, false},
    {"launch-graph", "compute", "cuGraphLaunch of 4 kernels", try_launch_graph, AS_IT_IS, false},
    {"launch-streams", "compute", "cuLaunchKernel on 4 streams in turns", try_launch_streams, AS_IT_IS, false},
    {"devices", "view", "devices outside the share", try_devices, AS_IT_IS, false},
    {"processes", "view", "processes outside the share", try_other_processes, AS_IT_IS, false},
    {"settings", "view", "NVML calls that change the device", try_settings, AS_IT_IS, false},
};

const unsigned attempt_count = sizeof attempts / sizeof *attempts;

static const char *const words[] = {[HELD] = "held", [HOLE] = "hole", [BROKEN] = "broken", [UNTRIED] = "untried"};

/* A note may hold a driver's words. */
static void put_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 32)
            putchar(' ');
        else
            putchar(*text);
    }
    putchar('"');
}

static void tell(const struct attempt *attempt, const struct finding *finding)
{
    printf("{\"attempt\":\"%s\",\"group\":\"%s\",\"what\":", attempt->name, attempt->group);
    put_text(attempt->what);
    printf(",\"outcome\":\"%s\",", words[finding->outcome]);
    if (finding->limit > 0)
        printf("\"grantedBytes\":%llu,\"limitBytes\":%llu,", (unsigned long long)finding->granted,
               (unsigned long long)finding->limit);
    else
        printf("\"grantedBytes\":null,\"limitBytes\":null,");
    if (finding->allowed > 0)
        printf("\"achievedThousandths\":%u,\"allowedThousandths\":%u,\"errorThousandths\":%u,", finding->achieved,
               finding->allowed, finding->error);
    printf("\"result\":%d,\"note\":", finding->result);
    put_text(finding->note);
    printf("}\n");
    fflush(stdout);
}

static bool take_device(const char *text)
{
    const char *limit = strchr(text, '=');
    if (limit == NULL || share.devices == DEVICES_MAX || (size_t)(limit - text) >= sizeof share.uuid[0])
        return false;
    unsigned device = share.devices++;
    memcpy(share.uuid[device], text, (size_t)(limit - text));
    char *end;
    share.limit[device] = strtoull(limit + 1, &end, 10);
    share.context_bytes[device] = *end == '=' ? strtoull(end + 1, &end, 10) : 0;
    share.thousandths[device] = *end == '=' ? (unsigned)strtoul(end + 1, &end, 10) : 0;
    return share.limit[device] > 0 && *end == '\0';
}

static const struct attempt *named(const char *name)
{
    for (unsigned at = 0; at < attempt_count; at++)
        if (strcmp(attempts[at].name, name) == 0)
            return &attempts[at];
    return NULL;
}

/* In the process of one attempt: a finding as it lies in memory, for the same program reads it. */
static int attempt_here(const struct attempt *attempt)
{
    int out = dup(STDOUT_FILENO);
    driver_open(0);
    struct finding finding = attempt->run();
    if (finding.note[0] == '\0' && finding.granted == 0 && finding.result != 0)
        finding = with_note(finding, finding.outcome, driver_says(finding.result));
    return write(out, &finding, sizeof finding) == (ssize_t)sizeof finding ? 0 : 70;
}

static bool report_to(int descriptor)
{
    if (descriptor == STDOUT_FILENO)
        return true;
    bool done = dup2(descriptor, STDOUT_FILENO) >= 0;
    close(descriptor); /* what an attempt starts must not keep it open */
    return done;
}

static int wrong(void)
{
    fputs("usage: aliquot-verify [--only=NAME] --device=UUID=LIMIT_BYTES[=CONTEXT_BYTES[=THOUSANDTHS]] …\n", stderr);
    return 2;
}

/* More of them, a line each, from a pipe: what was not known yet when this was started. */
static bool take_devices(int from)
{
    static char text[DEVICES_MAX * 160];
    size_t length = 0;
    for (ssize_t more; (more = read(from, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)more;
    close(from);
    bool good = true;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        good &= strncmp(line, "--device=", 9) == 0 && take_device(line + 9);
    return good;
}

int main(int count, char *arguments[])
{
    const char *only = NULL, *here = NULL;
    bool fill_only = false, good = true;
    for (int at = 1; at < count; at++) {
        if (strncmp(arguments[at], "--arguments=", 12) == 0)
            good &= take_devices(atoi(arguments[at] + 12));
        else if (strncmp(arguments[at], "--device=", 9) == 0)
            good &= take_device(arguments[at] + 9);
        else if (strncmp(arguments[at], "--only=", 7) == 0)
            only = arguments[at] + 7;
        else if (strncmp(arguments[at], "--attempt=", 10) == 0)
            here = arguments[at] + 10;
        else if (strncmp(arguments[at], "--report=", 9) == 0)
            good &= report_to(atoi(arguments[at] + 9));
        else if (strcmp(arguments[at], "--remove") == 0)
            return program_remove() ? 0 : 1;
        else if (strcmp(arguments[at], "--fill") == 0)
            fill_only = true;
        else
            good = false;
    }
    if (!good || share.devices == 0 || (only != NULL && named(only) == NULL) || (here != NULL && named(here) == NULL))
        return wrong();
    if (fill_only)
        return program_filled(STDIN_FILENO, STDOUT_FILENO);
    if (here != NULL)
        return attempt_here(named(here));
    bool held = true;
    for (unsigned at = 0; at < attempt_count; at++) {
        if (only != NULL && &attempts[at] != named(only))
            continue;
        if (share.thousandths[0] == 0 && strcmp(attempts[at].group, "compute") == 0)
            continue;
        struct finding finding = program_run(&attempts[at]);
        tell(&attempts[at], &finding);
        held &= finding.outcome == HELD || finding.outcome == UNTRIED;
    }
    return held ? 0 : 7;
}
