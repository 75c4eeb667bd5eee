"""What the driver takes of a device by itself: charged when it is taken, told by NVML, given back."""

from __future__ import annotations

from tests.native.softgpu.machine import MIB, Box

CONTEXT, PIECE, THREADS = 20, 2, 4096
EACH_KIB = THREADS * 1024 // MIB  # MiB for a KiB of each thread


def test_code_local_memory_and_limits_are_charged_to_their_process(box: Box) -> None:
    box.add_device(module_bytes=PIECE * MIB, local_threads=THREADS)
    seen = box.run("own_memory.py")
    code = CONTEXT + PIECE
    much = 3 * EACH_KIB  # of 4 KiB, one is in the context
    assert seen == {
        "context": CONTEXT,
        "a_module": code,
        "another": code,
        "a_kernel_with_little_local_memory": code,
        "a_kernel_with_much": code + much,
        "no_module": CONTEXT + much,
        "a_larger_stack": CONTEXT + 7 * EACH_KIB,
        "too_large": 2,
        "far_too_large": 2,
        "stack": 8192,
        "a_larger_buffer_of_printf": CONTEXT + 4,
        "a_kernel_with_more_than_there_is": 2,
        "after": 0,
    }


def test_a_device_that_does_not_say_what_is_taken_takes_only_contexts(box: Box) -> None:
    box.add_device()
    seen = box.run("own_memory.py")
    assert seen["a_kernel_with_much"] == seen["a_larger_buffer_of_printf"] == CONTEXT
    assert (seen["too_large"], seen["a_kernel_with_more_than_there_is"]) == (0, 0)
