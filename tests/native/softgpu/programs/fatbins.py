"""Load fat binaries, given as files: of each what loading returned, and what its kernel computed."""

import ctypes
import struct
import sys
from ctypes import byref, c_float, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

from calls import allocate, answer, check, context, cuda, function, launch, read

SAXPY, MATHEMATICS = b"k", b"_ZN13numba_kernels11mathematicsB3v14B92c_1"


def saxpy(module: c_void_p) -> float:
    x, y, out = allocate(16), allocate(16), allocate(16)
    check(cuda.cuMemcpyHtoD_v2(c_uint64(x), struct.pack("4f", 1, 2, 3, 4), c_size_t(16)))
    check(cuda.cuMemcpyHtoD_v2(c_uint64(y), struct.pack("4f", 10, 20, 30, 40), c_size_t(16)))
    arguments = (c_float(2), c_uint64(x), c_uint64(y), c_uint64(out), c_uint(4))
    check(launch(function(module, SAXPY.decode()), *arguments, block=4))
    return [list(struct.unpack("4f", read(address, 16))) for address in (x, y, out)]


def load(image: bytes) -> object:
    module, library, found = c_void_p(), c_void_p(), c_void_p()
    results = [
        cuda.cuModuleLoadData(byref(module), image),
        cuda.cuModuleLoadFatBinary(byref(module), image),
        cuda.cuLibraryLoadData(byref(library), image, None, None, 0, None, None, 0),
    ]
    if results != [0, 0, 0]:
        return [results, None]
    if cuda.cuModuleGetFunction(byref(found), module, SAXPY) == 0:
        return [results, saxpy(module)]
    check(cuda.cuModuleGetFunction(byref(found), module, MATHEMATICS))
    return [results, None]


def which(image: bytes) -> int:
    """The architecture of the code that was taken, or why none was."""
    module, out = c_void_p(), allocate(4)
    result = cuda.cuModuleLoadData(byref(module), image)
    if result == 0:
        check(launch(function(module, "which"), c_uint64(out)))
        (result,) = struct.unpack("I", read(out, 4))
    return int(result)


def damaged(image: bytes) -> dict[str, bytes]:
    """An entry begins at 16; its size when unpacked is at 56 of it, its flags at 40."""
    return {
        "byte": image[:-120] + bytes([image[-120] ^ 0x40]) + image[-119:],
        "enormous": image[:72] + struct.pack("<Q", 1 << 60) + image[80:],
        "other_size": image[:72] + struct.pack("<Q", struct.unpack_from("<Q", image, 72)[0] + 1) + image[80:],
        "other_kind": image[:56] + struct.pack("<Q", 0x4011) + image[64:],
    }


context()
if sys.argv[1] == "which":
    answer(which=which(Path(sys.argv[2]).read_bytes()))
    sys.exit()
images = {Path(name).stem: Path(name).read_bytes() for name in sys.argv[1:]}
seen = {name: load(image) for name, image in images.items()}
broken = {
    f"{name} {kind}": cuda.cuModuleLoadData(
        byref(c_void_p()), ctypes.create_string_buffer(bad, len(bad) + 64)
    )
    for name, image in images.items()
    if name != "saxpy_none"
    for kind, bad in damaged(image).items()
}
answer(seen=seen, broken=broken)
