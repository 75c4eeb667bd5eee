/* Table jump stubs: a pass-through call costs one indirect jump, and registers and stack arrive
 * in the driver exactly as the caller left them, whatever the function's parameters are.
 *
 * Until the first call of any function every entry points to a lazy stub, which opens share and
 * driver, fills the whole table, and jumps on. Opening the driver in a constructor was rejected:
 * it would run foreign code while the loader holds its lock, in programs that never use a GPU.
 */
#include "surface.h"

#include <dlfcn.h>
#include <stddef.h>

#include "governor.h"

#ifndef __x86_64__
#error "the jump stubs are written for x86-64 only"
#endif

/* ---- answers that need no driver; eax is the whole answer ---- */

#define ANSWER(name, value)                                                                       \
    __asm__(".text\n.hidden " #name "\n.globl " #name "\n.type " #name ",@function\n.p2align 4\n" \
            #name ":\n  movl $" #value ", %eax\n  ret\n.size " #name ",.-" #name "\n");           \
    extern char name[] __attribute__((visibility("hidden")));

#ifdef GOVERNOR_NVML
ANSWER(surface_not_ready, 27)     /* NVML_ERROR_NOT_READY */
ANSWER(surface_not_supported, 13) /* NVML_ERROR_FUNCTION_NOT_FOUND */
ANSWER(surface_refused, 4)        /* NVML_ERROR_NO_PERMISSION */
#else
ANSWER(surface_not_ready, 802)     /* CUDA_ERROR_SYSTEM_NOT_READY */
ANSWER(surface_not_supported, 801) /* CUDA_ERROR_NOT_SUPPORTED */
ANSWER(surface_refused, 801)
#endif

/* ---- the stubs ---- */

#define JUMP_STUB(index, symbol)                                                                  \
    __asm__(".text\n.globl " #symbol "\n.type " #symbol ",@function\n.p2align 4\n" #symbol ":\n"  \
            "  jmp *surface_real+8*" #index "(%rip)\n.size " #symbol ",.-" #symbol "\n");

#define STUB_pass JUMP_STUB
#define STUB_refuse JUMP_STUB
#define STUB_account(index, symbol)
#define STUB_limit(index, symbol)
#define STUB_virtualise(index, symbol)
#define X(index, symbol, base, version, per_thread, class) STUB_##class(index, symbol)
#include SURFACE_SYMBOLS
#undef X

/* Lazy stubs: push the index, save every register that may carry an argument, start, jump on. */
#define X(index, symbol, base, version, per_thread, class)                                        \
    __asm__(".text\nsurface_lazy_" #index ":\n  pushq $" #index "\n  jmp surface_lazy\n");
#include SURFACE_SYMBOLS
#undef X

__asm__(".text\n"
        "surface_lazy:\n"
        "  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n  pushq %rax\n"
        "  subq $136, %rsp\n"
        "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n  movups %xmm2, 32(%rsp)\n"
        "  movups %xmm3, 48(%rsp)\n  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n"
        "  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"
        "  call governor_start\n"
        "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n  movups 32(%rsp), %xmm2\n"
        "  movups 48(%rsp), %xmm3\n  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n"
        "  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"
        "  addq $136, %rsp\n"
        "  popq %rax\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n"
        "  popq %r11\n"
        "  leaq surface_real(%rip), %r10\n"
        "  jmp *(%r10,%r11,8)\n");

__asm__(".data\n.hidden surface_real\n.globl surface_real\n.type surface_real,@object\n.p2align 6\n"
        "surface_real:\n"
#define X(index, symbol, base, version, per_thread, class) "  .quad surface_lazy_" #index "\n"
#include SURFACE_SYMBOLS
#undef X
        ".size surface_real,.-surface_real\n.text\n");

/* ---- the table as C sees it ---- */

#define X(index, symbol, base, version, per_thread, class) extern char symbol[];
#include SURFACE_SYMBOLS
#undef X

const struct surface_symbol surface_symbols[SURFACE_COUNT] = {
#define X(index, symbol, base, version, per_thread, class)                                        \
    {#symbol, #base, version, stream_##per_thread, class_##class, symbol},
#include SURFACE_SYMBOLS
#undef X
};

bool surface_wrapped(unsigned symbol)
{
    return surface_symbols[symbol].class != class_pass && surface_symbols[symbol].class != class_refuse;
}

static void point(unsigned symbol, void *target)
{
    __atomic_store_n(&surface_real[symbol], target, __ATOMIC_RELEASE);
}

void surface_fill(void *driver)
{
    for (unsigned symbol = 0; symbol < SURFACE_COUNT; symbol++) {
        void *real = dlsym(driver, surface_symbols[symbol].name);
        if (surface_symbols[symbol].class == class_refuse)
            real = surface_refused;
        point(symbol, real != NULL ? real : (void *)surface_not_supported);
    }
}

void surface_close(void)
{
    for (unsigned symbol = 0; symbol < SURFACE_COUNT; symbol++)
        point(symbol, surface_not_ready);
}
