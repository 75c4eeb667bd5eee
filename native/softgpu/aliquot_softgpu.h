/* What the libraries of a software GPU export besides NVIDIA's functions. Find them with dlsym: where they are
 * missing, the device is none of ours.
 *
 * Of libcuda.so.1: the clock of the current context's device. It is the clock that events tell. In virtual
 * mode it stands still while a thread runs that uses the device, so a program that wants time to pass has to
 * wait for it here, as it waits for a kernel in cuStreamSynchronize. */
#ifndef ALIQUOT_SOFTGPU_H
#define ALIQUOT_SOFTGPU_H

#include <stdint.h>

/* Nanoseconds on the clock of the current context's device; of the real clock where no context is current. */
uint64_t aliquotSoftgpuNow(void);
/* Return when that clock says at least `ns`. A CUresult: 201 where no context is current. */
int aliquotSoftgpuWaitUntil(uint64_t ns);
/* The same for a thread that is about to wait for something else (a lock, a socket): the clock goes on without
 * it until its next call of the driver that submits or waits. Without this it does so after a second. */
int aliquotSoftgpuStepAside(void);

/* Of libnvidia-ml.so.1: what each process truly had of the device in `folder`, for tests. Returns how many
 * accounts there are and fills in at most `capacity`, the living first; a negative errno where it cannot. */
typedef struct {
    uint64_t now_ns;       /* on the device's clock */
    uint64_t slice_ns;
    uint64_t compute_ns;   /* of all processes since the device was made */
    uint64_t switching_ns; /* the compute engine changed hands: nobody's; 0 in real mode */
    uint64_t switches, preemptions;
    int32_t time;          /* 0 real, 1 scaled, 2 virtual */
    int32_t unused;
} aliquotSoftgpuTotal;

typedef struct {
    int32_t pid;    /* as the caller sees it; 0 where it cannot */
    int32_t living; /* 0: it left; the last 32 are kept, except in real mode */
    uint64_t compute_ns, copy_ns;
    uint64_t kernels, copies;
    uint64_t bytes;  /* moved by its kernels through device memory; 0 in real mode */
    uint64_t copied; /* over the link to the host; 0 in real mode */
    char name[64];
} aliquotSoftgpuAccount;

int aliquotSoftgpuBusy(const char *folder, aliquotSoftgpuTotal *total, aliquotSoftgpuAccount *accounts, int capacity);

#endif
