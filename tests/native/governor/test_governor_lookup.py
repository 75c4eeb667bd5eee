"""cuGetProcAddress: exactly the function, version and stream kind that was asked for."""

from dataclasses import replace

from tests.native.governor.shares import ROOT, UUIDS, MakeShare, ShareOnDisk, a_lease

from aliquot.model import MIB, Unknown
from generate_surface import CUDA_TABLE, read_table

LOOK_UP = """
check(cuda.cuInit(0))
direct = ctypes.CDLL(os.environ["SHARE"] + "/driver/libcuda.so.1")
def address(library, name):
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None
def look_up(name, version, flags, library=cuda, function="cuGetProcAddress_v2"):
    pointer, status = ctypes.c_void_p(), ctypes.c_int(-1)
    result = getattr(library, function)(name.encode(), ctypes.byref(pointer), version, ctypes.c_uint64(flags),
                                        ctypes.byref(status))
    return result, pointer.value, status.value
"""


def test_every_name_version_and_stream_kind_gives_our_function_or_the_driver_s_own(
    share: ShareOnDisk,
) -> None:
    """Every base of the table at every version at which anything changed, with each flag: the
    answer is the symbol that the driver itself picks, ours where it is wrapped."""
    wrong, asked = share.run(
        LOOK_UP
        + f"""
import sys
sys.path.insert(0, {str(ROOT / "tools")!r})
from generate_surface import CUDA_TABLE, read_table
table = read_table(CUDA_TABLE)
ours = {{symbol: address(cuda, symbol) for symbol in table}}
theirs = {{address(direct, symbol): symbol for symbol in table}}
versions = sorted({{int(row["version"]) for row in table.values()}})
wrong, asked = [], 0
for base in sorted({{row["base"] for row in table.values()}}):
    own = sorted({{int(row["version"]) for row in table.values() if row["base"] == base}})
    for version in sorted({{v for o in own for v in (o - 1, o, o + 1)}} | {{13050}}):
        for flags in (0, 1, 2):
            asked += 1
            if version > 13050:
                continue
            expected = look_up(base, version, flags, direct)
            symbol = theirs.get(expected[1])
            if symbol is not None and table[symbol]["class"] != "pass":
                expected = (expected[0], ours[symbol], expected[2])
            if look_up(base, version, flags) != expected:
                wrong.append([base, version, flags, symbol])
say([wrong[:10], asked])
"""
    )
    assert wrong == []
    assert asked > 5000


def test_each_wrapped_symbol_is_found_at_its_own_version(share: ShareOnDisk) -> None:
    wrapped = [row for row in read_table(CUDA_TABLE).values() if row["class"] not in ("pass", "refuse")]
    assert len(wrapped) > 60
    wanted = [[row["symbol"], row["base"], int(row["version"]), row["per_thread"]] for row in wrapped]
    assert (
        share.run(
            LOOK_UP
            + f"""
def found(base, version, kind):
    return look_up(base, version, 1 if kind == "-" else 2)[1]
say([s for s, b, v, t in {wanted!r} if found(b, v, t) != address(cuda, s)])
"""
        )
        == []
    )


def test_a_name_that_the_table_lacks_is_not_found_though_the_driver_has_it(share: ShareOnDisk) -> None:
    native, governed, first = share.run(
        LOOK_UP
        + """
pointer = ctypes.c_void_p(0x77)
first = cuda.cuGetProcAddress(b"cuOfTomorrow", ctypes.byref(pointer), 13050, ctypes.c_uint64(0))
native = look_up("cuOfTomorrow", 13050, 0, direct)[::2]
look_up("cuOfNobody", 13050, 0)
say([native, look_up("cuOfTomorrow", 13050, 0), [first, pointer.value]])
"""
    )
    assert native == [0, 0]
    assert governed == [0, None, 1]
    assert first == [500, None]
    assert share.ledger().unknown == ("cuOfTomorrow",), "told once, and not what the driver lacks too"


def test_a_share_that_lets_unknown_names_through_says_so_and_gets_the_driver_s_own(
    make_share: MakeShare,
) -> None:
    share = make_share(lease=replace(a_lease({UUIDS[0]: 100 * MIB}), unknown=Unknown.PASS))
    passed, first, nobody, known = share.run(
        LOOK_UP
        + """
pointer = ctypes.c_void_p(0x77)
result = cuda.cuGetProcAddress(b"cuOfTomorrow", ctypes.byref(pointer), 13050, ctypes.c_uint64(0))
theirs = address(direct, "cuOfTomorrow")
passed = look_up("cuOfTomorrow", 13050, 0)
call = ctypes.CFUNCTYPE(ctypes.c_int)(passed[1])
say([[passed == (0, theirs, 0), call()], [result, pointer.value == theirs], look_up("cuOfNobody", 13050, 0),
     look_up("cuMemAlloc", 13050, 0)[1] == address(cuda, "cuMemAlloc_v2")])
"""
    )
    assert (passed, first) == ([True, 0], [0, True])
    assert nobody == [0, None, 1], "what the driver lacks is not there"
    assert known, "what the table has is ours as ever"
    assert share.ledger().unknown == ("cuOfTomorrow",)


def test_a_driver_newer_than_the_table_looks_like_the_table_s_version(make_share: MakeShare) -> None:
    share = make_share()
    version, future = share.run(
        LOOK_UP
        + """
version = ctypes.c_int()
check(cuda.cuDriverGetVersion(ctypes.byref(version)))
say([version.value, look_up("cuMemAlloc", 14000, 0)])
""",
        FAKE_VERSION="14000",
    )
    assert version == 13050
    assert future[0] == 1, "as a driver answers a version beyond its own"


def test_an_older_driver_keeps_its_version(share: ShareOnDisk) -> None:
    found = share.run(
        LOOK_UP
        + """
version = ctypes.c_int()
check(cuda.cuDriverGetVersion(ctypes.byref(version)))
say([version.value, look_up("cuMemAlloc", 11040, 0)[1] == address(cuda, "cuMemAlloc_v2"),
     look_up("cuCtxCreate", 13000, 0)[0],
     look_up("cuCtxCreate", 11040, 0)[1] == address(cuda, "cuCtxCreate_v3")])
""",
        FAKE_VERSION="11040",
    )
    assert found == [11040, True, 1, True]


def test_the_per_thread_face_of_the_look_up_means_per_thread_by_default(share: ShareOnDisk) -> None:
    assert (
        share.run(
            LOOK_UP
            + """
f = "cuGetProcAddress_v2_ptsz"
say([look_up("cuMemAllocAsync", 12000, 0, function=f)[1] == address(cuda, "cuMemAllocAsync_ptsz"),
     look_up("cuMemAllocAsync", 12000, 1, function=f)[1] == address(cuda, "cuMemAllocAsync"),
     look_up("cuGetProcAddress", 12000, 2)[1] == address(cuda, "cuGetProcAddress_v2_ptsz"),
     look_up("cuGetProcAddress", 12000, 0)[1] == address(cuda, "cuGetProcAddress_v2"),
     look_up("cuGetProcAddress", 11030, 0)[1] == address(cuda, "cuGetProcAddress")])
"""
        )
        == [True] * 5
    )


def test_functions_that_a_share_refuses_are_found_and_refuse(share: ShareOnDisk) -> None:
    refused = [row["symbol"] for row in read_table(CUDA_TABLE).values() if row["class"] == "refuse"]
    assert share.run(f"check(cuda.cuInit(0))\nsay([getattr(cuda, s)() for s in {refused!r}])") == [801] * len(
        refused
    )


def test_what_passes_reaches_the_driver_with_every_argument_as_it_was(share: ShareOnDisk) -> None:
    """The first call goes through the lazy stub, later ones straight; floats go by other registers."""
    index = list(read_table(CUDA_TABLE)).index("cuTexRefSetMipmapLevelBias")
    assert (
        share.run(
            "f = cuda.cuTexRefSetMipmapLevelBias\nsay([f(None, ctypes.c_float(1.5)) for _ in range(2)])"
        )
        == [100000 + index] * 2
    )


def test_a_function_that_the_driver_lacks_is_not_supported(make_share: MakeShare) -> None:
    """An NVML in the place of the driver lacks them all; the sentence names the cause."""
    share = make_share()
    library = share.root / "driver" / "libnvidia-ml.so.1"
    library.unlink()
    library.symlink_to(share.built.driver / "libcuda.so.1")
    assert share.run("say(nvml_library().nvmlInit_v2())") == 27
