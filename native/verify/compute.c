/* Launching by every path, as fast as it goes, and what part of the device's time that gave.
 *
 * Measured by the device's own events: kernels of a known length that ended between two of them. The share
 * must be one that is held when it is alone (`cap`); whoever starts this sees to that. */
#include <stdio.h>
#include <string.h>

#include "attempt.h"
#include "driver.h"

enum { NAP_NS = 100000, NAPS = 10, DEPTH = 8, STREAMS = 4, GRAPH_KERNELS = 4 };
#define WARM_UP_MS 300.0f
#define WINDOW_MS 1000.0f

static const char text[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                           ".visible .entry nap(.param .u32 naps, .param .u32 ns, .param .u64 took) {\n"
                           ".reg .u32 %r<3>;\n.reg .u64 %rd<4>;\n.reg .pred %p1;\n"
                           "ld.param.u32 %r1, [naps];\nld.param.u32 %r2, [ns];\nld.param.u64 %rd3, [took];\n"
                           "mov.u64 %rd1, %globaltimer;\n"
                           "again:\nnanosleep.u32 %r2;\nsub.u32 %r1, %r1, 1;\n"
                           "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra again;\n"
                           "mov.u64 %rd2, %globaltimer;\nsub.u64 %rd2, %rd2, %rd1;\n"
                           "st.global.u64 [%rd3], %rd2;\nret;\n}\n";

static void *function, *streams[STREAMS], *graph;
static unsigned naps = NAPS, ns = NAP_NS, turn;
static device_pointer took; /* where a kernel writes its own length, in nanoseconds */
static void *parameters[] = {&naps, &ns, &took};

/* One launch; `kernels` is how many naps it is. */
typedef int launch(void *stream);

typedef unsigned extent; /* of a grid or a block */

static int plain(void *stream)
{
    return CALL("cuLaunchKernel",
                (void *, extent, extent, extent, extent, extent, extent, unsigned, void *, void **, void **),
                function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static int per_thread(void *stream)
{
    return CALL("cuLaunchKernel_ptsz",
                (void *, extent, extent, extent, extent, extent, extent, unsigned, void *, void **, void **),
                function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static int extended(void *stream)
{
    struct {
        unsigned grid[3], block[3], shared_bytes;
        void *stream, *attributes;
        unsigned attribute_count;
    } config = {{1, 1, 1}, {1, 1, 1}, 0, stream, NULL, 0};
    return CALL("cuLaunchKernelEx", (const void *, void *, void **, void **), &config, function, parameters, NULL);
}

static int cooperative(void *stream)
{
    return CALL("cuLaunchCooperativeKernel",
                (void *, extent, extent, extent, extent, extent, extent, unsigned, void *, void **), function, 1, 1, 1,
                1, 1, 1, 0, stream, parameters);
}

static int legacy(void *stream)
{
    CALL("cuFuncSetBlockShape", (void *, int, int, int), function, 1, 1, 1);
    CALL("cuParamSeti", (void *, int, unsigned), function, 0, naps);
    CALL("cuParamSeti", (void *, int, unsigned), function, 4, ns);
    CALL("cuParamSetv", (void *, int, void *, unsigned), function, 8, &took, sizeof took);
    CALL("cuParamSetSize", (void *, unsigned), function, 8 + sizeof took);
    return CALL("cuLaunchGridAsync", (void *, int, int, void *), function, 1, 1, stream);
}

static int as_graph(void *stream)
{
    return CALL("cuGraphLaunch", (void *, void *), graph, stream);
}

static int spread(void *stream)
{
    (void)stream;
    return plain(streams[turn++ % STREAMS]);
}

/* ---- measuring ---- */

static int make_graph(void *stream)
{
    void *made = NULL;
    int result = CALL("cuStreamBeginCapture_v2", (void *, int), stream, 2);
    for (unsigned kernel = 0; result == 0 && kernel < GRAPH_KERNELS; kernel++)
        result = plain(stream);
    int ended = CALL("cuStreamEndCapture", (void *, void **), stream, &made);
    if (result == 0)
        result = ended;
    return result != 0 ? result
                       : CALL("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &graph, made, 0);
}

static int prepare(void)
{
    void *module = NULL;
    int result = driver_begin(0);
    if (result == 0)
        result = CALL("cuModuleLoadData", (void **, const void *), &module, text);
    if (result == 0)
        result = CALL("cuModuleGetFunction", (void **, void *, const char *), &function, module, "nap");
    if (result == 0)
        result = CALL("cuMemAlloc_v2", (device_pointer *, size_t), &took, sizeof(uint64_t));
    for (unsigned stream = 0; result == 0 && stream < STREAMS; stream++)
        result = CALL("cuStreamCreate", (void **, unsigned), &streams[stream], 1);
    return result;
}

static int mark(void **event, void *stream)
{
    int result = *event != NULL ? 0 : CALL("cuEventCreate", (void **, unsigned), event, 0);
    return result != 0 ? result : CALL("cuEventRecord", (void *, void *), *event, stream);
}

static int wait(void)
{
    return CALL("cuCtxSynchronize", (void), );
}

/* Milliseconds of the device's clock from one event to the other; both have happened. */
static float between(void *from, void *to)
{
    float length = 0;
    return CALL("cuEventElapsedTime", (float *, void *, void *), &length, from, to) == 0 ? length : 0;
}

/* Milliseconds of the shortest of several kernels, by itself: events around it would count how long it was
 * made to wait. */
static int cost(float *kernel)
{
    int result = 0;
    *kernel = 0;
    for (unsigned round = 0; result == 0 && round < 5; round++) {
        uint64_t length = 0;
        result = plain(streams[0]);
        if (result == 0)
            result = wait();
        if (result == 0)
            result = CALL("cuMemcpyDtoH_v2", (void *, device_pointer, size_t), &length, took, sizeof length);
        if (*kernel == 0 || (float)length / 1e6f < *kernel)
            *kernel = (float)length / 1e6f;
    }
    return result;
}

/* Launch for `length` milliseconds; how many launches ended in it, and how long it truly was. */
static int run(launch *one, float length, unsigned *launches, float *lasted)
{
    void *from = NULL, *to = NULL;
    int result = mark(&from, streams[0]);
    *launches = 0;
    for (*lasted = 0; result == 0 && *lasted < length; *lasted = between(from, to)) {
        for (unsigned queued = 0; result == 0 && queued < DEPTH; queued++, (*launches)++)
            result = one(streams[0]);
        if (result == 0)
            result = mark(&to, streams[0]);
        if (result == 0)
            result = wait();
    }
    return result;
}

static struct finding measured(launch *one, unsigned kernels)
{
    struct finding finding = {.outcome = UNTRIED};
    float kernel, lasted;
    unsigned launches;
    finding.result = prepare();
    if (finding.result == 0)
        finding.result = cost(&kernel);
    if (finding.result == 0 && one == as_graph)
        finding.result = make_graph(streams[0]);
    if (finding.result == 0)
        finding.result = run(one, WARM_UP_MS, &launches, &lasted);
    if (finding.result == 0)
        finding.result = run(one, WINDOW_MS, &launches, &lasted);
    if (finding.result != 0 || lasted <= 0)
        return with_note(finding, UNTRIED, driver_says(finding.result));
    float achieved = 1000 * (float)(launches * kernels) * kernel / lasted;
    return judged_time((unsigned)(achieved + 0.5f), share.thousandths[0], kernel * (float)kernels, lasted);
}

struct finding judged_time(unsigned achieved, unsigned allowed, float kernel_ms, float window_ms)
{
    struct finding finding = {.achieved = achieved, .allowed = allowed};
    float apart = (QUEUE_MS * (1 - (float)allowed / 1000) + kernel_ms) / window_ms * 1000;
    finding.error = (unsigned)(apart + 0.999f);
    finding.outcome = achieved > allowed + finding.error ? HOLE : HELD;
    return finding;
}

struct finding try_launch(void)
{
    return measured(plain, 1);
}

struct finding try_launch_thread(void)
{
    return measured(per_thread, 1);
}

struct finding try_launch_extended(void)
{
    return measured(extended, 1);
}

struct finding try_launch_cooperative(void)
{
    return measured(cooperative, 1);
}

struct finding try_launch_legacy(void)
{
    return measured(legacy, 1);
}

struct finding try_launch_graph(void)
{
    return measured(as_graph, GRAPH_KERNELS);
}

struct finding try_launch_streams(void)
{
    return measured(spread, 1);
}
