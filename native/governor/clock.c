#include "clock.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cuda_api.h"
#include "surface.h"
#include "words.h"

#define BILLION UINT64_C(1000000000)
#define IDLE_NS 4000000
#define SHORTEST_NS 10000 /* nobody looks more often than that */

static uint64_t (*softgpu_now)(void);
static int (*softgpu_wait_until)(uint64_t);
static int (*softgpu_step_aside)(void);

void clock_open(void)
{
    /* The symbol of a driver that has them lies beside its cuInit. */
    Dl_info info;
    void *init = (void *)REAL(cuInit, void *);
    if (dladdr(init, &info) == 0 || info.dli_fname == NULL)
        return;
    void *driver = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (driver == NULL)
        return;
    softgpu_wait_until = (int (*)(uint64_t))dlsym(driver, "aliquotSoftgpuWaitUntil");
    softgpu_step_aside = (int (*)(void))dlsym(driver, "aliquotSoftgpuStepAside");
    if (softgpu_wait_until != NULL && softgpu_step_aside != NULL)
        softgpu_now = (uint64_t (*)(void))dlsym(driver, "aliquotSoftgpuNow");
    dlclose(driver);
}

uint64_t clock_now(void)
{
    return softgpu_now != NULL ? softgpu_now() : now_ns();
}

/* In real and scaled time a software GPU tells the machine's clock. Where no context is current it cannot
 * tell, and says so by the same answer. */
bool clock_is_virtual(void)
{
    if (softgpu_now == NULL)
        return false;
    uint64_t before = now_ns(), told = softgpu_now();
    return told < before || told > now_ns();
}

static void sleep_for(uint64_t ns)
{
    struct timespec length = {.tv_sec = (time_t)(ns / BILLION), .tv_nsec = (long)(ns % BILLION)};
    nanosleep(&length, NULL);
}

void clock_wait(uint64_t until, uint32_t *wake, uint32_t seen)
{
    uint64_t now = clock_now();
    if (until < now + SHORTEST_NS)
        until = now + SHORTEST_NS;
    if (clock_is_virtual()) {
        uint64_t glance = wake != NULL ? now + CLOCK_GLANCE : until;
        if (softgpu_wait_until(until < glance ? until : glance) != CUDA_SUCCESS)
            sleep_for(CLOCK_GLANCE);
        return;
    }
    uint64_t span = until - now;
    if (wake == NULL) {
        sleep_for(span);
        return;
    }
    struct timespec length = {.tv_sec = (time_t)(span / BILLION), .tv_nsec = (long)(span % BILLION)};
    syscall(SYS_futex, wake, FUTEX_WAIT, seen, &length, NULL, 0);
}

void clock_wake(uint32_t *wake)
{
    __atomic_fetch_add(wake, 1, __ATOMIC_SEQ_CST);
    if (!clock_is_virtual())
        syscall(SYS_futex, wake, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void clock_idle(void)
{
    if (softgpu_step_aside != NULL)
        softgpu_step_aside();
    sleep_for(IDLE_NS);
}
