/* Control flow: branches, calls, guards, barriers. Compiled once; nothing here is a loop over
 * lanes. */
#include "machine.h"

#define HANDLER_FOR(name) \
    void sg_run_##name(sg_warp *warp, const sg_insn *insn); \
    void sg_run_##name(sg_warp *warp, const sg_insn *insn)

static uint32_t predicate(const sg_warp *warp, const sg_insn *insn, int n) {
    uint32_t value = *(const uint32_t *)(warp->base[insn->operand[n] & 1] + insn->operand[n]);
    return insn->flags & 1 ? ~value : value;
}

/* Instructions that are the engine's own do not count as run. */
static void uncount(sg_warp *warp) { warp->instructions -= warp->active; }

static void jump(sg_warp *warp, const sg_insn *insn, const sg_insn *to) {
    warp->pc = to;
    if (to <= insn && --warp->ticks <= 0)
        sg_tick(warp, insn);
    if (warp->fragment_count && !warp->stop)
        sg_settle(warp);
}

HANDLER_FOR(bra_always) { jump(warp, insn, insn + insn->target); }

/* flags: 1 the predicate is negated. */
HANDLER_FOR(bra) {
    uint32_t taken = predicate(warp, insn, 0) & warp->mask;
    if (taken == warp->mask) {
        jump(warp, insn, insn + insn->target);
    } else if (taken) {
        uint32_t rest = warp->mask & ~taken;
        const sg_insn *target = insn + insn->target;
        if (target < insn) { /* the loop goes first */
            sg_split(warp, insn + 1, rest);
            sg_set_mask(warp, taken);
            jump(warp, insn, target);
        } else {
            sg_split(warp, target, taken);
            sg_set_mask(warp, rest);
            jump(warp, insn, insn + 1);
        }
    }
}

/* A jump table: immediate is the number of bra_always that follow, operand 0 the index. */
HANDLER_FOR(brx) {
    const uint32_t *index = (const uint32_t *)(warp->base[insn->operand[0] & 1] + insn->operand[0]);
    uint32_t left = warp->mask;
    while (left) {
        uint32_t choice = index[__builtin_ctz(left)], same = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1)
            same |= index[__builtin_ctz(rest)] == choice ? rest & -rest : 0;
        left &= ~same;
        if (choice >= (uint64_t)insn->immediate) {
            sg_fault_lane(warp, insn, (unsigned)__builtin_ctz(same), SG_TRAP, 0,
                          "brx.idx: index %u, but the table has %lld targets", choice, (long long)insn->immediate);
            return;
        }
        if (left)
            sg_split(warp, insn + 1 + choice, same);
        else
            sg_set_mask(warp, same), warp->pc = insn + 1 + choice;
    }
    if (warp->fragment_count)
        sg_settle(warp);
}

/* Where paths meet: the target of some branch. */
HANDLER_FOR(join) {
    (void)insn;
    uncount(warp);
    if (warp->fragment_count)
        sg_settle(warp);
}

/* Around guarded instructions: immediate is how many to skip when no lane runs them. */
HANDLER_FOR(guard) {
    uncount(warp);
    uint32_t kept = predicate(warp, insn, 0) & warp->mask;
    if (!kept) {
        warp->pc = insn + insn->target;
    } else if (kept != warp->mask) {
        warp->guarded = true;
        warp->guarded_mask = warp->mask;
        sg_set_mask(warp, kept);
    }
}

HANDLER_FOR(unguard) {
    (void)insn;
    uncount(warp);
    if (warp->guarded) {
        warp->guarded = false;
        sg_set_mask(warp, warp->guarded_mask);
    }
}

/* nanosleep: others of the block have a turn at the next backward branch. Where time is modelled the warp
 * sleeps as long as its lane that wants it longest; the ISA sets one millisecond as the most. */
enum { LONGEST_SLEEP_NS = 1000000 };

HANDLER_FOR(yield) {
    const uint32_t *wanted = (const uint32_t *)(warp->base[insn->operand[0] & 1] + insn->operand[0]);
    uint32_t longest = 0;
    warp->ticks = 1;
    if (!warp->block->grid->launch->modelled)
        return;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        uint32_t ns = wanted[__builtin_ctz(left)];
        longest = ns > longest ? ns : longest;
    }
    warp->slept_ns += longest < LONGEST_SLEEP_NS ? longest : LONGEST_SLEEP_NS;
}

HANDLER_FOR(nop) { (void)warp, (void)insn; }

/* ---- calls ---- */

enum { DEEPEST_CALLS = 4096 };

static void copy_locals(const sg_warp *warp, uint32_t from_base, uint32_t to_base, const sg_copy *copies, size_t count,
                        uint32_t lanes) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned char *local = warp->local + (size_t)__builtin_ctz(left) * warp->block->grid->local_stride;
        for (size_t i = 0; i < count; i++)
            memcpy(local + to_base + copies[i].to, local + from_base + copies[i].from, copies[i].size);
    }
}

/* Moves the running fragment, cut to `lanes`, into a new activation. */
static void enter(sg_warp *warp, const sg_insn *insn, const sg_call *call, uint32_t callee, uint32_t lanes) {
    const sg_module *module = warp->block->grid->kernel->module;
    const sg_code *code = &module->codes[callee];
    sg_frame *caller = warp->frame;
    uint32_t local_base = caller->local_base + caller->code->local_bytes;
    if (caller->depth >= DEEPEST_CALLS || local_base + code->local_bytes > warp->block->grid->local_limit) {
        sg_fault_at(warp, insn, SG_STACK_OVERFLOW, 0, "the call of %.100s, %u deep, exceeds the stack of %u bytes a thread",
                    code->function->name, caller->depth + 1, warp->block->grid->local_limit);
        return;
    }
    sg_frame *frame = sg_take_frame(warp->worker, code);
    if (!frame) {
        sg_fault_at(warp, insn, SG_NO_MEMORY, 0, "out of host memory for a call");
        return;
    }
    frame->parent = caller;
    frame->call = call;
    frame->return_to = insn + 1;
    frame->lanes = lanes;
    frame->depth = caller->depth + 1;
    frame->local_base = local_base;
    copy_locals(warp, caller->local_base, local_base, call->arguments, call->argument_count, lanes);
    sg_enter_frame(warp, frame);
    warp->pc = module->insns + code->first;
    if (--warp->ticks <= 0)
        sg_tick(warp, insn);
}

HANDLER_FOR(call) {
    const sg_call *call = &warp->block->grid->kernel->module->calls[insn->immediate];
    enter(warp, insn, call, call->callee, warp->mask);
    if (warp->fragment_count && !warp->stop)
        sg_settle(warp);
}

/* Sizes decide, not types: what is copied must fit the callee's frame. */
static bool takes(const sg_function *function, const sg_call *call) {
    bool same = function->param_count == call->argument_count && function->return_count == call->return_count;
    for (size_t i = 0; same && i < call->argument_count; i++)
        same = function->params[i]->space == W_param && function->params[i]->size == call->arguments[i].size &&
               function->params[i]->address == call->arguments[i].to;
    for (size_t i = 0; same && i < call->return_count; i++)
        same = function->returns[i]->space == W_param && function->returns[i]->size == call->returns[i].size &&
               function->returns[i]->address == call->returns[i].from;
    return same;
}

/* The lanes that call one function go together, the others wait at this instruction. */
HANDLER_FOR(call_indirect) {
    const sg_module *module = warp->block->grid->kernel->module;
    const uint64_t *pointers = (const uint64_t *)(warp->base[insn->operand[0] & 1] + insn->operand[0]);
    uint64_t pointer = pointers[__builtin_ctz(warp->mask)];
    uint32_t same = 0;
    for (uint32_t left = warp->mask; left; left &= left - 1)
        same |= pointers[__builtin_ctz(left)] == pointer ? left & -left : 0;
    uint64_t index = (pointer - SG_CODE_WINDOW) / 16;
    if (pointer % 16 || index >= module->ir->function_count || !module->ir->functions[index]->defined ||
        module->ir->functions[index]->entry) {
        sg_fault_at(warp, insn, SG_ILLEGAL_ADDRESS, pointer, "a call to 0x%llx, where no function is",
                    (unsigned long long)pointer);
        return;
    }
    const sg_call *call = &module->calls[insn->immediate];
    const sg_function *function = module->ir->functions[index];
    if (!takes(function, call)) {
        sg_fault_at(warp, insn, SG_ILLEGAL_ADDRESS, pointer, "a call through a pointer to %.100s, which takes other arguments",
                    function->name);
        return;
    }
    if (same != warp->mask) {
        sg_split(warp, insn, warp->mask & ~same);
        sg_set_mask(warp, same);
    }
    enter(warp, insn, call, (uint32_t)index, same);
    if (warp->fragment_count && !warp->stop)
        sg_settle(warp);
}

HANDLER_FOR(call_builtin) {
    sg_run_builtin(warp, insn, insn->variant, &warp->block->grid->kernel->module->calls[insn->immediate]);
}

/* The running lanes are done; where they were the last ones, so is the warp. */
static void finish(sg_warp *warp) {
    sg_finish_lanes(warp, warp->mask);
    if (warp->fragment_count) {
        sg_next(warp);
    } else {
        warp->mask = 0;
        warp->stop = warp->finished = true;
    }
}

HANDLER_FOR(exit) {
    (void)insn;
    finish(warp);
}

HANDLER_FOR(ret) {
    sg_frame *frame = warp->frame;
    if (!frame->parent) {
        finish(warp);
        return;
    }
    (void)insn;
    const sg_call *call = frame->call;
    copy_locals(warp, frame->local_base, frame->parent->local_base, call->returns, call->return_count, warp->mask);
    warp->pc = frame->return_to;
    frame->lanes &= ~warp->mask;
    sg_enter_frame(warp, frame->parent);
    if (!frame->lanes)
        sg_give_frame(warp->worker, frame);
    if (warp->fragment_count)
        sg_settle(warp);
}

HANDLER_FOR(trap) { sg_fault_at(warp, insn, SG_TRAP, 0, "the kernel executed trap"); }

HANDLER_FOR(unsupported) {
    const sg_module *module = warp->block->grid->kernel->module;
    sg_fault_at(warp, insn, SG_UNSUPPORTED, 0, "%s is not supported", module->messages[insn->immediate]);
}
