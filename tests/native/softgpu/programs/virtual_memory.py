"""Virtual memory in one process: reserve, create, map, allow, alias, read-only, unmap; what is refused."""

import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from calls import MIB, answer, check, context, cuda, fill, function, launch, load, memory, read

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry copy_word(.param .u64 to, .param .u64 from) {
    .reg .u64 %rd<3>;
    .reg .u32 %r1;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    ld.global.u32 %r1, [%rd2];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
CHUNK = 2 * MIB
READ, READ_WRITE = 1, 3


class Properties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location_type", c_int),
        ("location", c_int),
        ("win32", c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class Access(ctypes.Structure):
    _fields_ = (("type", c_int), ("device", c_int), ("flags", c_int))


def reserve(size: int) -> int:
    address = c_uint64()
    check(cuda.cuMemAddressReserve(byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0)))
    return address.value


def create(size: int, handle_types: int = 0) -> int:
    handle, wanted = c_uint64(), Properties(1, handle_types, 1, 0)
    check(cuda.cuMemCreate(byref(handle), c_size_t(size), byref(wanted), c_uint64(0)))
    return handle.value


def map_at(address: int, size: int, handle: int) -> int:
    return int(cuda.cuMemMap(c_uint64(address), c_size_t(size), c_size_t(0), c_uint64(handle), c_uint64(0)))


def allow(address: int, size: int, flags: int) -> int:
    wanted = Access(1, 0, flags)
    return int(cuda.cuMemSetAccess(c_uint64(address), c_size_t(size), byref(wanted), c_size_t(1)))


def allowed(address: int) -> int:
    flags, location = c_uint64(), (c_int * 2)(1, 0)
    check(cuda.cuMemGetAccess(byref(flags), location, c_uint64(address)))
    return flags.value


def unmap(address: int, size: int) -> int:
    return int(cuda.cuMemUnmap(c_uint64(address), c_size_t(size)))


def release(handle: int) -> int:
    return int(cuda.cuMemRelease(c_uint64(handle)))


def in_own_context(to: int, source: int) -> int:
    """What ends a context whose kernel copies a word so; the others go on."""
    own, before = c_void_p(), c_void_p()
    check(cuda.cuCtxGetCurrent(byref(before)))
    check(cuda.cuCtxCreate_v2(byref(own), 0, 0))
    check(launch(function(load(PTX), "copy_word"), c_uint64(to), c_uint64(source)))
    result = int(cuda.cuCtxSynchronize())
    check(cuda.cuCtxDestroy_v2(own))
    check(cuda.cuCtxSetCurrent(before))
    return result


def main() -> None:
    granularity = c_size_t()
    context()
    wanted = Properties(1, 0, 1, 0)
    check(cuda.cuMemGetAllocationGranularity(byref(granularity), byref(wanted), 0))
    free_before, _ = memory()
    base = reserve(8 * CHUNK)
    one, two = create(2 * CHUNK), create(CHUNK)
    free_made, _ = memory()
    results = {
        "granularity": granularity.value,
        "taken": free_before - free_made,
        "map_one": map_at(base, 2 * CHUNK, one),
        "map_two": map_at(base + 2 * CHUNK, CHUNK, two),
        "map_over": map_at(base + CHUNK, CHUNK, two),
        "map_outside": map_at(base + 8 * CHUNK, CHUNK, two),
        "map_nonsense": map_at(base + 4 * CHUNK, CHUNK, 12345),
        "no_access_yet": fill(base, 1, 16),
        "kernel_no_access": in_own_context(base, base),
        "allow": allow(base, 3 * CHUNK, READ_WRITE),
        "allow_part": allow(base, CHUNK, READ),
        "access": allowed(base),
        # a memset over the border of two mappings is one piece of memory
        "fill_across": fill(base, 7, 3 * CHUNK),
        "fill_beyond": fill(base, 7, 3 * CHUNK + 1),
    }
    results["border"] = read(base + 2 * CHUNK - 4, 8) == b"\x07" * 8
    alias = reserve(2 * CHUNK)
    results["map_alias"] = map_at(alias, 2 * CHUNK, one)
    results["allow_alias"] = allow(alias, 2 * CHUNK, READ)
    results["alias_reads"] = read(alias + CHUNK, 4) == b"\x07" * 4
    results["alias_memset"] = fill(alias, 9, 4)
    results["kernel_reads_alias"] = in_own_context(base, alias + 8)
    results["kernel_writes_alias"] = in_own_context(alias, base)
    fresh = create(CHUNK)
    check(map_at(base + 4 * CHUNK, CHUNK, fresh) or map_at(base + 5 * CHUNK, CHUNK, fresh))
    check(allow(base + 4 * CHUNK, 2 * CHUNK, READ_WRITE))
    results["reads_zero"] = read(base + 5 * CHUNK, 4) == bytes(4)
    check(fill(base + 4 * CHUNK, 5, 4))
    results["first_write_shows_in_the_other"] = read(base + 5 * CHUNK, 4) == b"\x05" * 4
    results["released_while_mapped"] = release(fresh)
    results["still_there"] = read(base + 5 * CHUNK, 4) == b"\x05" * 4
    kept = c_uint64()
    results["retain"] = cuda.cuMemRetainAllocationHandle(byref(kept), c_void_p(base + 4 * CHUNK + 100))
    results["retained_is_it"] = kept.value == fresh
    found = Properties()
    results["properties"] = cuda.cuMemGetAllocationPropertiesFromHandle(byref(found), kept)
    results["release_retained"] = release(kept.value)
    results["free_while_mapped"] = cuda.cuMemAddressFree(c_uint64(base), c_size_t(8 * CHUNK))
    results["unmap_part"] = unmap(base, CHUNK)
    results["unmap"] = [unmap(base, 3 * CHUNK), unmap(base + 4 * CHUNK, 2 * CHUNK), unmap(alias, 2 * CHUNK)]
    results["after_unmap"] = fill(base, 1, 16)
    results["release"] = [release(one), release(two)]
    results["release_again"] = release(one)
    results["free"] = [
        cuda.cuMemAddressFree(c_uint64(base), c_size_t(8 * CHUNK)),
        cuda.cuMemAddressFree(c_uint64(alias), c_size_t(2 * CHUNK)),
    ]
    results["leaked"] = free_before - memory()[0]
    descriptor = c_int()
    unshared = create(CHUNK)
    results["export_unasked"] = cuda.cuMemExportToShareableHandle(
        byref(descriptor), c_uint64(unshared), 1, c_uint64(0)
    )
    read_end, _ = os.pipe()
    results["import_nonsense"] = cuda.cuMemImportFromShareableHandle(byref(c_uint64()), c_void_p(read_end), 1)
    answer(**results)


if __name__ == "__main__":
    main()
