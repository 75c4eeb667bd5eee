"""NVML in a share: its devices, its memory, its processes."""

import re

import pytest
from tests.native.governor.shares import UUIDS, MakeShare, ShareOnDisk

from aliquot.enforcement import abi
from aliquot.model import MIB
from generate_surface import NVML_TABLE, read_table

A, B, C, D = UUIDS
NVML = """
nvml = nvml_library()
nvml.nvmlErrorString.restype = ctypes.c_char_p
ref = ctypes.byref
def handle(index):
    device = ctypes.c_void_p()
    check(nvml.nvmlDeviceGetHandleByIndex_v2(index, ref(device)))
    return device
def memory(device):
    m = (ctypes.c_ulonglong * 3)()
    check(nvml.nvmlDeviceGetMemoryInfo(device, m))
    return [n // MIB for n in m]
def processes(device, kind="Compute", version="_v3", words=3):
    count, rows = ctypes.c_uint(8), (ctypes.c_ulonglong * 64)()
    check(getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses{version}")(device, ref(count), rows))
    return [[rows[at * words] & 0xffffffff, rows[at * words + 1] // MIB] for at in range(count.value)]
"""


def test_only_the_share_s_devices_in_its_order(make_share: MakeShare) -> None:
    share = make_share(memory={C: 50 * MIB, A: 60 * MIB})
    seen = share.run(
        NVML
        + f"""
check(nvml.nvmlInit_v2())
count = ctypes.c_uint()
check(nvml.nvmlDeviceGetCount_v2(ref(count)))
uuids, indices = [], []
for at in range(count.value):
    text, index = ctypes.create_string_buffer(96), ctypes.c_uint()
    check(nvml.nvmlDeviceGetUUID(handle(at), text, 96))
    check(nvml.nvmlDeviceGetIndex(handle(at), ref(index)))
    uuids.append(text.value.decode()); indices.append(index.value)
other = ctypes.c_void_p()
refused = [nvml.nvmlDeviceGetHandleByIndex_v2(2, ref(other)),
           nvml.nvmlDeviceGetHandleByUUID({B!r}.encode(), ref(other)),
           nvml.nvmlDeviceGetHandleByPciBusId_v2(b"1", ref(other)), other.value]
found = [nvml.nvmlDeviceGetHandleByUUID({A!r}.encode(), ref(other)),
         nvml.nvmlDeviceGetHandleByPciBusId_v2(b"2", ref(other))]
say([uuids, indices, refused, found, [memory(handle(at))[0] for at in range(2)]])
"""
    )
    assert seen == [[C, A], [0, 1], [2, 6, 6, None], [0, 0], [50, 60]]


def test_both_libraries_tell_the_same_at_every_moment(share: ShareOnDisk) -> None:
    seen = share.run(
        NVML
        + """
check(nvml.nvmlInit_v2()); begin()
pairs = []
for size in (1, 30, 59):
    alloc(size * MIB)
    left, total = info()
    pairs.append(memory(handle(0)) == [total // MIB, left // MIB, (total - left) // MIB])
say([pairs, memory(handle(0))])
"""
    )
    assert seen == [[True] * 3, [100, 0, 100]]


def test_the_newer_memory_info_is_the_share_too(share: ShareOnDisk) -> None:
    seen = share.run(
        NVML
        + """
check(nvml.nvmlInit_v2()); begin()
class Memory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]
good, bad = Memory(version=40 | 2 << 24), Memory(version=3)
r = [nvml.nvmlDeviceGetMemoryInfo_v2(handle(0), ref(m)) for m in (good, bad)]
say([r, good.total // MIB, good.reserved, good.free // MIB, good.used // MIB])
"""
    )
    assert seen == [[0, 25], 100, 0, 90, 10]


def test_processes_are_the_share_s_in_every_layout(share: ShareOnDisk) -> None:
    neighbour = share.start("begin()\ncheck(alloc(5 * MIB)[0])\nsay(os.getpid())\ninput()")
    assert neighbour.stdout is not None
    other = int(neighbour.stdout.readline())
    seen = share.run(
        NVML
        + """
check(nvml.nvmlInit_v2()); begin()
lists = [sorted(processes(handle(0), "Compute", v, w)) for v, w in (("_v3", 3), ("_v2", 3), ("", 2))]
count = ctypes.c_uint(1)
room = (ctypes.c_ulonglong * 3)()
small = [nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle(0), ref(count), room), count.value]
zero = ctypes.c_uint(0)
ask = [nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle(0), ref(zero), None), zero.value]
say([os.getpid(), lists, small, ask, processes(handle(0), "Graphics")])
"""
    )
    neighbour.communicate("\n", timeout=20)
    own, lists, small, ask, graphics = seen
    assert lists == [sorted([[own, 10], [other, 15]])] * 3
    assert small == [7, 2]
    assert ask == [7, 2]
    assert graphics == []


VERSIONED = """
class Detail(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint),
                ("ci", ctypes.c_uint), ("cc", ctypes.c_ulonglong)]
class Details(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("mode", ctypes.c_uint), ("count", ctypes.c_uint),
                ("rows", ctypes.POINTER(Detail))]
class Use(ctypes.Structure):
    _fields_ = [("time", ctypes.c_ulonglong), ("pid", ctypes.c_uint), ("sm", ctypes.c_uint),
                ("others", ctypes.c_uint * 5)]
class Uses(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint), ("since", ctypes.c_ulonglong),
                ("rows", ctypes.POINTER(Use))]
def version(kind, number=1):
    return ctypes.sizeof(kind) | number << 24
"""


def test_the_list_with_a_version_is_the_share_s_too(share: ShareOnDisk) -> None:
    seen = share.run(
        NVML
        + VERSIONED
        + """
check(nvml.nvmlInit_v2()); begin()
def details(mode, room, number=1):
    rows = (Detail * 8)()
    asked = Details(version(Details, number), mode, room, rows if room else None)
    result = nvml.nvmlDeviceGetRunningProcessDetailList(handle(0), ref(asked))
    shown = [[row.pid == os.getpid(), row.used // MIB] for row in rows[: asked.count if result == 0 else 0]]
    return [result, asked.count, shown]
say([details(0, 8), details(3, 8), details(1, 8), details(0, 0), details(0, 8, 2), details(9, 8)[0]])
"""
    )
    mine = [0, 1, [[True, 10]]]
    assert seen == [mine, mine, [0, 0, []], [7, 1, []], [25, 8, []], 2]


def test_utilisation_with_a_version_shows_no_other_tenant(share: ShareOnDisk) -> None:
    seen = share.run(
        NVML
        + VERSIONED
        + """
check(nvml.nvmlInit_v2()); begin()
def uses(room, number=1):
    rows = (Use * 8)()
    asked = Uses(version(Uses, number), room, 0, rows if room else None)
    result = nvml.nvmlDeviceGetProcessesUtilizationInfo(handle(0), ref(asked))
    shown = [[row.pid == os.getpid(), row.sm] for row in rows if row.pid]
    return [result, asked.count, shown]
say([uses(8), uses(1), uses(0), uses(8, 3)])
"""
    )
    # 20 % of the device are 80 % of a quarter of it.
    assert seen == [[0, 1, [[True, 80]]], [0, 1, [[True, 80]]], [7, 1, []], [25, 8, []]]


def test_utilisation_of_other_tenants_is_not_shown(share: ShareOnDisk) -> None:
    seen = share.run(
        NVML
        + """
check(nvml.nvmlInit_v2()); begin()
count, rows = ctypes.c_uint(8), (ctypes.c_ulonglong * 64)()
check(nvml.nvmlDeviceGetProcessUtilization(handle(0), rows, ref(count), ctypes.c_ulonglong(0)))
say([count.value, rows[0] & 0xffffffff == os.getpid(), rows[2] & 0xffffffff, rows[2] >> 32])
"""
    )
    assert seen == [1, True, 80, 100], "of a quarter of the device, and never more than all of it"


USE = """
check(nvml.nvmlInit_v2())
def use():
    rates, percent, period = (ctypes.c_uint * 2)(9, 9), ctypes.c_uint(9), ctypes.c_uint(9)
    return [nvml.nvmlDeviceGetUtilizationRates(handle(0), rates), *rates,
            nvml.nvmlDeviceGetEncoderUtilization(handle(0), ref(percent), ref(period)), percent.value]
idle = use()
begin()
say([idle, use(), nvml.nvmlDeviceGetUtilizationRates(handle(0), None)])
"""


def test_utilisation_is_of_the_share_s_own_time(share: ShareOnDisk) -> None:
    seen = share.run(NVML + USE, FAKE_KNOWS="1")
    assert seen == [[0, 0, 0, 0, 0], [0, 80, 100, 0, 7], 2]


def test_utilisation_that_nobody_knows_is_not_zero(share: ShareOnDisk) -> None:
    """The driver names the processes otherwise than this pid namespace does."""
    seen = share.run(NVML + USE)
    assert seen == [[0, 0, 0, 0, 0], [3, 0, 0, 3, 0], 2]


def test_where_the_driver_does_not_know_us_the_charge_tells(share: ShareOnDisk) -> None:
    """Between two looks, of which the first knows nothing."""
    at = abi.Ledger.DEVICES.offset + abi.LedgerDevice.COMPUTE.offset
    seen = share.run(
        NVML
        + f"""
check(nvml.nvmlInit_v2()); begin()
def charge(nanoseconds):
    with open(os.environ["SHARE"] + "/ledger", "r+b") as file:
        file.seek({at}); file.write(nanoseconds.to_bytes(8, "little"))
def look():
    rates = (ctypes.c_uint * 2)(9, 9)
    return [nvml.nvmlDeviceGetUtilizationRates(handle(0), rates), *rates]
def until(wanted):
    while look() != wanted:  # a look is at least a tenth of a second apart from the last
        pass
charge(1000)
first = look()
charge(10**18)
until([0, 100, 100])
percent, period = ctypes.c_uint(9), ctypes.c_uint()
engine = [nvml.nvmlDeviceGetEncoderUtilization(handle(0), ref(percent), ref(period)), percent.value]
until([0, 0, 0])
charge(5)
until([3, 0, 0])
say([first, engine])
"""
    )
    assert seen == [[3, 0, 0], [3, 0]]


def test_what_is_counted_for_the_device_alone_is_not_told(share: ShareOnDisk) -> None:
    alone = [row["symbol"] for row in read_table(NVML_TABLE).values() if row["why"].startswith("counted for")]
    assert "nvmlGpmSampleGet" in alone
    seen = share.run(
        NVML
        + f"""
check(nvml.nvmlInit_v2())
support = (ctypes.c_uint * 2)(1, 1)
check(nvml.nvmlGpmQueryDeviceSupport(handle(0), support))
count = ctypes.c_uint(0)
since = ctypes.c_ulonglong(0)
samples = [nvml.nvmlDeviceGetSamples(handle(0), kind, since, None, ref(count), None) for kind in range(10)]
say([[getattr(nvml, s)(handle(0), None, None) for s in {alone!r}], support[1], samples])
"""
    )
    told, supported, samples = seen
    assert told == [3] * len(alone)
    assert supported == 0
    index = list(read_table(NVML_TABLE)).index("nvmlDeviceGetSamples")
    passes = 100000 + index
    assert samples == [passes, 3, 3, 3, 3, passes, passes, passes, 3, 3]


def test_no_call_that_changes_the_device_passes() -> None:
    """By their verbs: a function of a new header that sets something must be looked at."""
    verbs = re.compile(
        r"(?<!Get)(Set|Reset|Clear|Create|Destroy|Freeze|Modify|Remove|Activate|Enable|Disable|Write)"
    )
    own_objects = {
        "nvmlEventSet",
        "nvmlSystemEventSet",
        "nvmlDeviceSetCpuAffinity",
        "nvmlDeviceClearCpuAffinity",
    }
    for row in read_table(NVML_TABLE).values():
        symbol = row["symbol"]
        reads = "Get" in symbol or "Query" in symbol or symbol.startswith(tuple(own_objects))
        if verbs.search(symbol.removeprefix("nvml")) and not reads:
            assert row["class"] == "refuse", symbol


def test_what_would_change_the_device_for_everybody_is_refused(share: ShareOnDisk) -> None:
    refused = [row["symbol"] for row in read_table(NVML_TABLE).values() if row["class"] == "refuse"]
    assert "nvmlDeviceSetPowerManagementLimit" in refused
    assert "nvmlDeviceResetGpuLockedClocks" in refused
    assert "nvmlDeviceClearEccErrorCounts" in refused
    assert share.run(NVML + f"check(nvml.nvmlInit_v2())\nsay([getattr(nvml, s)() for s in {refused!r}])") == [
        4
    ] * len(refused)


def test_what_passes_reaches_the_driver(share: ShareOnDisk) -> None:
    index = list(read_table(NVML_TABLE)).index("nvmlDeviceGetTemperature")
    assert share.run(NVML + "say(nvml.nvmlDeviceGetTemperature())") == 100000 + index


def test_before_init_and_after_shutdown_the_driver_s_own_answer_stands(share: ShareOnDisk) -> None:
    seen = share.run(
        NVML
        + """
count, device = ctypes.c_uint(), ctypes.c_void_p()
a = [nvml.nvmlDeviceGetCount_v2(ref(count)), nvml.nvmlDeviceGetHandleByIndex_v2(0, ref(device))]
check(nvml.nvmlInit_v2()); check(nvml.nvmlShutdown())
say([a, nvml.nvmlDeviceGetHandleByIndex_v2(0, ref(device)), nvml.nvmlShutdown()])
"""
    )
    assert seen == [[1, 1], 1, 1]


@pytest.mark.parametrize("gone", ["limits", "ledger", "driver/libnvidia-ml.so.1"])
def test_anything_missing_fails_every_call_with_one_sentence(share: ShareOnDisk, gone: str) -> None:
    (share.root / gone).unlink()
    calls, text = share.run(
        NVML
        + """
calls = [nvml.nvmlInit_v2(), nvml.nvmlInitWithFlags(0), nvml.nvmlDeviceGetCount_v2(ref(ctypes.c_uint())),
         nvml.nvmlDeviceGetTemperature(), nvml.nvmlDeviceSetEccMode(), nvml.nvmlShutdown()]
say([calls, nvml.nvmlErrorString(27).decode()])
"""
    )
    assert calls == [27] * 6
    assert gone.split("/")[-1] in text
    assert "aliquot" in text


def test_a_reader_of_nvml_alone_takes_no_slot(share: ShareOnDisk) -> None:
    share.run(NVML + "check(nvml.nvmlInit_v2())\nsay(memory(handle(0)))")
    assert share.ledger().slots == ()


def test_every_function_survives_nulls(share: ShareOnDisk) -> None:
    names = [symbol for symbol in read_table(NVML_TABLE) if symbol != "nvmlErrorString"]
    called = share.run(
        NVML
        + f"""
check(nvml.nvmlInit_v2())
for name in {names!r}:
    getattr(nvml, name)(None, None, None, None, None, None)
say(len({names!r}))
"""
    )
    assert called == len(names)
