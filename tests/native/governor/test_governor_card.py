"""What a driver takes otherwise than it was asked: shapes, code, handles for other processes."""

import pytest
from tests.native.governor.shares import UUIDS, MakeShare, ShareOnDisk, line_of

from aliquot.enforcement import write_limits
from aliquot.model import MIB


def test_an_array_is_charged_what_its_rows_truly_take(card_share: ShareOnDisk) -> None:
    """4,096 rows of 100 floats, each in 512 bytes: by its shape it would be 1.6 MiB."""
    seen = card_share.run(
        """
begin(); before = used()
shape = (ctypes.c_uint64 * 3)(100, 4096, 0x20 | 1 << 32)
check(cuda.cuArrayCreate_v2(ref(p), shape))
during = used() - before
check(cuda.cuArrayDestroy(p))
check(alloc(78 * MIB + MIB // 4)[0])
say([during, used() - before, cuda.cuArrayCreate_v2(ref(p), shape)])
"""
    )
    assert seen == [2 * MIB, 78 * MIB + MIB // 4, 2]


EXPORT = """
begin(); r, mine = alloc(40 * MIB); check(r)
handle = (ctypes.c_byte * 64)()
check(cuda.cuIpcGetMemHandle(handle, ctypes.c_ulonglong(mine)))
say(bytes(handle).hex())
"""
IMPORT = """
class Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_ubyte * 64),)
cuda.cuIpcOpenMemHandle_v2.argtypes = (ctypes.c_void_p, Handle, ctypes.c_uint)
def open_handle(text):
    got = ctypes.c_ulonglong(0x77)
    return cuda.cuIpcOpenMemHandle_v2(ctypes.byref(got), Handle.from_buffer_copy(bytes.fromhex(text)), 1), got
begin()
"""
OPEN_AND_CLOSE = """
r, got = open_handle(input())
say([r, got.value != 0x77, used() // MIB]); input()
check(cuda.cuIpcCloseMemHandle(got)); say(used() // MIB); input()
"""


def _used(share: ShareOnDisk) -> int:
    used = share.ledger().devices[0].used
    assert used is not None
    return used // MIB


def test_two_processes_open_each_other_s_memory_and_it_counts_once(card_share: ShareOnDisk) -> None:
    script = (EXPORT + IMPORT + OPEN_AND_CLOSE).replace("40 * MIB", "20 * MIB")
    first, second = card_share.start(script), card_share.start(script)
    handles = [str(line_of(process)) for process in (first, second)]
    assert line_of(first, handles[1]) == [0, True, 80]
    assert line_of(second, handles[0]) == [0, True, 80]
    assert [line_of(first, ""), line_of(second, "")] == [80, 80]
    for process in (first, second):
        process.communicate("\n", timeout=20)
    assert _used(card_share) == 0


@pytest.mark.parametrize("end", ["freed", "killed"])
def test_whose_exporter_is_gone_the_last_holder_s_share_still_pays(card_share: ShareOnDisk, end: str) -> None:
    exporter = card_share.start(EXPORT + "input(); check(free(mine)); say(0); input()")
    handle = str(line_of(exporter))
    holder = card_share.start(
        IMPORT + "r, got = open_handle(input()); say([r, open_handle('00' * 64)[0], used() // MIB])\n"
        "input(); say([alloc(41 * MIB)[0], alloc(20 * MIB)[0], used() // MIB])\n"
        "input(); check(cuda.cuIpcCloseMemHandle(got)); say(used() // MIB); input()\n"
    )
    assert holder.stdin is not None
    assert line_of(holder, handle) == [0, 801, 80]
    if end == "freed":
        assert line_of(exporter, "") == 0
        assert _used(card_share) == 80
    exporter.kill()
    exporter.communicate()
    # The exporter's context went with it; the memory is there, and the share is charged for it.
    assert line_of(holder, "") == [2, 0, 80]
    assert _used(card_share) == 80
    assert line_of(holder, "") == 40
    holder.kill()
    holder.communicate()
    assert _used(card_share) == 0
    assert card_share.run("begin()\nsay(alloc(80 * MIB)[0])") == 0


def test_memory_of_another_share_is_refused(card_share: ShareOnDisk, make_share: MakeShare) -> None:
    other = make_share(memory={UUIDS[0]: 100 * MIB}, context_bytes=20 * MIB, build=card_share.built)
    (other.root / "driver" / "softgpu").symlink_to(card_share.root / "driver" / "softgpu")
    exporter = card_share.start(EXPORT + "input()")
    handle = str(line_of(exporter))
    assert other.run(IMPORT + f"r, got = open_handle({handle!r}); say([r, got.value])") == [801, 0x77]
    exporter.communicate("\n", timeout=20)


def test_killed_holders_and_exporters_leave_nothing(card_share: ShareOnDisk) -> None:
    """Exporter, then holders in turns: each killed while the next holds."""
    exporter = card_share.start(EXPORT + "input()")
    handle = str(line_of(exporter))
    previous = exporter
    for _ in range(3):
        holder = card_share.start(IMPORT + "r, got = open_handle(input()); say(r); input()")
        assert line_of(holder, handle) == 0
        previous.kill()
        previous.communicate()
        assert _used(card_share) == 60
        previous = holder
    previous.kill()
    previous.communicate()
    assert _used(card_share) == 0
    assert card_share.run("begin()\nsay(alloc(80 * MIB)[0])") == 0


MODULE = """
code = b".version 7.0\\n.target sm_80\\n.address_size 64\\n.visible .global .align 8 .b8 d[10485760];\\n" \\
       b".visible .entry k() { ret; }\\n\\0"
def load(into):
    return cuda.cuModuleLoadData(ref(into), code)
m = ctypes.c_void_p(0x77)
begin()
"""


def test_code_and_static_data_are_charged_while_the_module_is_loaded(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        MODULE
        + """
before, real = used(), really_used()
check(load(m)); during = used() - before, really_used() - real
check(cuda.cuModuleUnload(m))
say([*during, used() - before])
"""
    )
    assert seen[0] == seen[1] >= 12 * MIB, "10 MiB of data and a piece of code"
    assert seen[2] == 0


def test_a_module_that_does_not_fit_is_out_of_memory_and_unloaded(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        MODULE
        + """
check(alloc(70 * MIB)[0]); real = really_used()
say([load(m), m.value, really_used() - real, used() // MIB])
"""
    )
    assert seen == [2, 0x77, 0, 90]


def test_a_module_goes_with_its_context(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        MODULE
        + """
c, before = ctypes.c_void_p(), used()
check(cuda.cuCtxCreate_v2(ref(c), 0, 0)); check(load(m)); during = used() - before
check(cuda.cuCtxDestroy_v2(c)); say([during // MIB, used() - before])
"""
    )
    assert seen[0] >= 32
    assert seen[1] == 0


LAUNCH = """
PTX = '''.version 7.0
.target sm_70
.address_size 64
.visible .entry local(.param .u64 where) {
    .local .align 4 .b8 area[%d];
    .reg .u64 %%rd<3>;
    .reg .u32 %%r<2>;
    ld.param.u64 %%rd1, [where];
    mov.u64 %%rd2, area;
    add.u64 %%rd2, %%rd2, %%rd1;
    st.local.u32 [%%rd2], 1;
    ld.local.u32 %%r1, [%%rd2];
    ret;
}
'''
def load(each):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ref(module), (PTX % each).encode() + b"\\0"))
    check(cuda.cuModuleGetFunction(ref(function), module, b"local"))
    return module, function
where = ctypes.c_uint64(0)
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(where))
def launch(function, grid=1):
    result = cuda.cuLaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, None, parameters, None)
    return result or cuda.cuCtxSynchronize()
def limit(which, value):
    return cuda.cuCtxSetLimit(which, size(value))
def both():
    return [used() // MIB, really_used() // MIB]
begin()
"""


def test_local_memory_is_charged_at_a_kernel_s_first_launch_and_goes_with_its_context(
    card_share: ShareOnDisk,
) -> None:
    """1 KiB beyond the context's own for each of 32,768 threads."""
    seen = card_share.run(
        LAUNCH
        + """
module, function = load(2048); steps = [both()]
for grid in (1, 2, 3):
    check(launch(function, grid)); steps.append(both())
check(cuda.cuModuleUnload(module)); steps.append(both())
check(cuda.cuDevicePrimaryCtxReset_v2(0)); check(retain()); steps.append(both())
say(steps)
"""
    )
    assert seen == [[22, 22], [54, 54], [54, 54], [54, 54], [52, 52], [20, 20]]


def test_local_memory_past_the_limit_is_charged_and_leaves_nothing_more(card_share: ShareOnDisk) -> None:
    tenant = card_share.start(
        LAUNCH
        + """
module, function = load(4096)
check(launch(function)); say([both()[1], info()[0], alloc(1)[0], limit(2, 16 * MIB)]); input()
"""
    )
    assert line_of(tenant) == [118, 0, 2, 2]
    assert _used(card_share) == 118
    tenant.communicate("\n", timeout=20)
    assert _used(card_share) == 0


def test_stacks_and_local_memory_are_the_same_bytes_and_charged_once(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        LAUNCH
        + """
module, function = load(2048); check(launch(function)); steps = [both()]
for each in (3072, 2048, 1024):
    check(limit(0, each)); steps.append(both())
check(limit(1, 5 * MIB)); steps.append(both())
check(limit(1, 1 * MIB)); steps.append(both())
say([steps, limit(0, 8192)])
"""
    )
    assert seen == [[[54, 54], [86, 86], [54, 54], [22, 22], [26, 26], [22, 22]], 2]


HEAP = """
PTX = b'''.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 given) malloc(.param .b64 bytes);
.visible .entry take() {
    .reg .b64 %rd<3>;
    mov.u64 %rd1, 64;
    {
        .param .b64 size;
        .param .b64 place;
        st.param.b64 [size], %rd1;
        call.uni (place), malloc, (size);
        ld.param.b64 %rd2, [place];
    }
    ret;
}
'''
module, function = ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuModuleLoadData(ref(module), PTX + b"\\0"))
check(cuda.cuModuleGetFunction(ref(function), module, b"take"))
parameters = None
"""


def test_a_heap_is_charged_when_its_limit_is_set_and_not_again_when_a_kernel_takes_it(
    card_share: ShareOnDisk,
) -> None:
    """28 MiB, of which 8 are every context's. The kernel takes it while it runs, so whether its launch was
    seen to take the eight is a matter of moments."""
    limited, freed, launched = card_share.run(
        LAUNCH
        + HEAP
        + """
check(limit(2, 28 * MIB)); limited = both()
check(limit(2, 8 * MIB)); freed = both()
check(limit(2, 28 * MIB)); check(launch(function)); say([limited, freed, both()])
"""
    )
    assert (limited, freed) == ([42, 22], [22, 22])
    assert launched[1] == 50
    assert launched[0] in (42, 50)


def test_nothing_waits_in_a_host_function_not_even_while_the_share_is_paused(card_share: ShareOnDisk) -> None:
    """Whatever the driver says to a launch from there, it says at once; a capture is not held up either."""
    tenant = card_share.start(
        LAUNCH
        + """
import threading
module, function = load(64); check(launch(function)); side = stream()
seen, done = [], threading.Event()
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def callback(_):
    seen.append(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, side, parameters, None) != 0)
    seen.append(alloc(MIB)[0] != 0); seen.append(cuda.cuStreamSynchronize(side) != 0); done.set()
say("ready"); input()
check(cuda.cuLaunchHostFunc(side, callback, None)); ended = done.wait(20); seen.append(used() // MIB)
check(cuda.cuStreamBeginCapture_v2(side, 2))
seen.append(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, side, parameters, None))
captured = ctypes.c_void_p(); seen.append(cuda.cuStreamEndCapture(side, ref(captured)))
say([ended, *seen]); input(); say(launch(function)); input()
"""
    )
    assert line_of(tenant) == "ready"
    write_limits(card_share.limits, lease=card_share.lease, gpus=card_share.gpus, paused=True)
    assert line_of(tenant, "") == [True, True, True, True, 22, 0, 0]
    write_limits(card_share.limits, lease=card_share.lease, gpus=card_share.gpus)
    assert line_of(tenant, "") == 0
    tenant.communicate("\n", timeout=20)
