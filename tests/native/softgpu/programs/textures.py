"""Textures and surfaces: each case of a JSON file is fetched by a kernel, and what came is written beside.

usage: textures.py CASES.json

A case: {dimensions, shape [x, y, z], format, channels, data (base64 of the elements, x fastest), resource:
array, linear or pitch, address, filter, flags, border, integer (coordinates are integers), coordinates
[[x, y, z], ...], result: f32, u32 or s32}. The answer has for each case the four words of every fetch."""

import base64
import ctypes
import json
import struct
import sys
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from calls import allocate, answer, check, context, cuda, fill, function, launch, load, read

HEADER = ".version 7.0\n.target sm_70\n.address_size 64\n"
BYTES = {1: 1, 2: 2, 3: 4, 8: 1, 9: 2, 10: 4, 16: 2, 32: 4}


class Array3D(ctypes.Structure):
    _fields_ = (
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("format", c_int),
        ("channels", c_uint),
        ("flags", c_uint),
    )


class Box(ctypes.Structure):
    _fields_ = (
        ("src_x", c_size_t),
        ("src_y", c_size_t),
        ("src_z", c_size_t),
        ("src_lod", c_size_t),
        ("src_type", c_int),
        ("src_host", c_char_p),
        ("src_device", c_uint64),
        ("src_array", c_void_p),
        ("r0", c_void_p),
        ("src_pitch", c_size_t),
        ("src_height", c_size_t),
        ("dst_x", c_size_t),
        ("dst_y", c_size_t),
        ("dst_z", c_size_t),
        ("dst_lod", c_size_t),
        ("dst_type", c_int),
        ("dst_host", c_void_p),
        ("dst_device", c_uint64),
        ("dst_array", c_void_p),
        ("r1", c_void_p),
        ("dst_pitch", c_size_t),
        ("dst_height", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    )


class Array(ctypes.Structure):
    _fields_ = (("array", c_void_p),)


class Linear(ctypes.Structure):
    _fields_ = (("address", c_uint64), ("format", c_int), ("channels", c_uint), ("bytes", c_size_t))


class Pitch(ctypes.Structure):
    _fields_ = (
        ("address", c_uint64),
        ("format", c_int),
        ("channels", c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
        ("pitch", c_size_t),
    )


class Either(ctypes.Union):
    _fields_ = (("array", Array), ("linear", Linear), ("pitch", Pitch), ("reserved", c_int * 32))


class Resource(ctypes.Structure):
    _fields_ = (("type", c_int), ("of", Either), ("flags", c_uint))


class Sampling(ctypes.Structure):
    _fields_ = (
        ("address", c_int * 3),
        ("filter", c_int),
        ("flags", c_uint),
        ("anisotropy", c_uint),
        ("mip_filter", c_int),
        ("bias", c_float),
        ("low", c_float),
        ("high", c_float),
        ("border", c_float * 4),
        ("reserved", c_int * 12),
    )


def make_array(shape: list[int], dimensions: int, format_: int, channels: int, flags: int = 0) -> c_void_p:
    array = c_void_p()
    wanted = Array3D(
        shape[0],
        shape[1] if dimensions > 1 else 0,
        shape[2] if dimensions > 2 else 0,
        format_,
        channels,
        flags,
    )
    check(cuda.cuArray3DCreate_v2(byref(array), byref(wanted)))
    return array


def copy_in(array: c_void_p, shape: list[int], row: int, data: bytes) -> int:
    box = Box(
        src_type=1,
        src_host=data,
        src_pitch=row,
        src_height=shape[1],
        dst_type=3,
        dst_array=array,
        width=row,
        height=shape[1],
        depth=shape[2],
    )
    return int(cuda.cuMemcpy3D_v2(byref(box)))


def copy_out(array: c_void_p, shape: list[int], row: int) -> bytes:
    out = ctypes.create_string_buffer(row * shape[1] * shape[2])
    box = Box(
        src_type=3,
        src_array=array,
        dst_type=1,
        dst_host=ctypes.addressof(out),
        dst_pitch=row,
        dst_height=shape[1],
        width=row,
        height=shape[1],
        depth=shape[2],
    )
    check(cuda.cuMemcpy3D_v2(byref(box)))
    return out.raw


def to_device(data: bytes) -> int:
    address = allocate(len(data) + 4)
    assert address is not None
    check(cuda.cuMemcpyHtoD_v2(c_uint64(address), data, c_size_t(len(data))))
    return address


def resource_of(case: dict[str, Any], data: bytes) -> Resource:
    element = BYTES[case["format"]] * case["channels"]
    row, resource = case["shape"][0] * element, Resource()
    if case["resource"] == "array":
        array = make_array(case["shape"], case["dimensions"], case["format"], case["channels"])
        check(copy_in(array, case["shape"], row, data))
        assert copy_out(array, case["shape"], row) == data
        resource.type, resource.of.array.array = 0, array
    elif case["resource"] == "linear":
        resource.type = 2
        resource.of.linear = Linear(to_device(data), case["format"], case["channels"], len(data))
    else:
        pitch = (row + 31) // 32 * 32
        padded = b"".join(
            data[y * row : (y + 1) * row].ljust(pitch, b"\xee") for y in range(case["shape"][1])
        )
        resource.type = 3
        resource.of.pitch = Pitch(
            to_device(padded), case["format"], case["channels"], *case["shape"][:2], pitch
        )
    return resource


def kernel(dimensions: int, result: str, integer: bool) -> str:
    prefix = "%r" if integer else "%f"
    registers = [f"{prefix}{10 + index}" for index in range(3)]
    taken = registers[:dimensions] + (["%r13" if integer else "%f13"] if dimensions == 3 else [])
    kind = "s32" if integer else "f32"
    return (
        HEADER
        + f""".visible .entry fetch(.param .u64 object, .param .u64 at, .param .u64 to) {{
    .reg .u64 %rd<8>;
    .reg .u32 %r<20>;
    .reg .f32 %f<20>;
    .reg .b32 %b<4>;
    ld.param.u64 %rd1, [object];
    ld.param.u64 %rd2, [at];
    ld.param.u64 %rd3, [to];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %rd4, %r1, 16;
    add.u64 %rd2, %rd2, %rd4;
    add.u64 %rd3, %rd3, %rd4;
    ld.global.v4.b32 {{{prefix}10, {prefix}11, {prefix}12, {prefix}13}}, [%rd2];
    tex.{dimensions}d.v4.{result}.{kind} {{%b0, %b1, %b2, %b3}}, [%rd1, {{{", ".join(taken)}}}];
    st.global.v4.b32 [%rd3], {{%b0, %b1, %b2, %b3}};
    ret;
}}
"""
    )


def fetched(case: dict[str, Any]) -> list[list[int]]:
    texture, count = c_uint64(), len(case["coordinates"])
    resource = resource_of(case, base64.b64decode(case["data"]))
    sampling = Sampling((c_int * 3)(*case["address"]), case["filter"], case["flags"])
    sampling.border[:] = case["border"]
    check(cuda.cuTexObjectCreate(byref(texture), byref(resource), byref(sampling), None))
    code = "<4i" if case["integer"] else "<4f"
    at = to_device(b"".join(struct.pack(code, *(list(point) + [0] * 4)[:4]) for point in case["coordinates"]))
    to = allocate(16 * count)
    assert to is not None
    fetch = function(load(kernel(case["dimensions"], case["result"], case["integer"])), "fetch")
    check(launch(fetch, texture, c_uint64(at), c_uint64(to), grid=count, block=1))
    check(cuda.cuCtxSynchronize())
    words = struct.unpack(f"<{4 * count}I", read(to, 16 * count))
    check(cuda.cuTexObjectDestroy(texture))
    return [list(words[4 * index : 4 * index + 4]) for index in range(count)]


def surface_kernel(boundary: str) -> str:
    """Each thread (x, y) reads two shorts, adds one to each, writes them one row down."""
    return (
        HEADER
        + f""".visible .entry shift(.param .u64 object, .param .u32 down) {{
    .reg .u64 %rd<3>;
    .reg .u32 %r<12>;
    .reg .b16 %rs<3>;
    ld.param.u64 %rd1, [object];
    ld.param.u32 %r1, [down];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    shl.b32 %r4, %r2, 2;
    suld.b.2d.v2.b16.trap {{%rs1, %rs2}}, [%rd1, {{%r4, %r3}}];
    add.u16 %rs1, %rs1, 1;
    add.u16 %rs2, %rs2, 1;
    add.u32 %r5, %r3, %r1;
    sust.b.2d.v2.b16.{boundary} [%rd1, {{%r4, %r5}}], {{%rs1, %rs2}};
    ret;
}}
.visible .entry size(.param .u64 object, .param .u64 to) {{
    .reg .u64 %rd<3>;
    .reg .u32 %r<3>;
    ld.param.u64 %rd1, [object];
    ld.param.u64 %rd2, [to];
    suq.width.b32 %r1, [%rd1];
    suq.height.b32 %r2, [%rd1];
    st.global.v2.b32 [%rd2], {{%r1, %r2}};
    ret;
}}
.visible .entry texels(.param .u64 object, .param .u64 to) {{
    .reg .u64 %rd<3>;
    .reg .u32 %r<3>;
    ld.param.u64 %rd1, [object];
    ld.param.u64 %rd2, [to];
    txq.width.b32 %r1, [%rd1];
    txq.height.b32 %r2, [%rd1];
    st.global.v2.b32 [%rd2], {{%r1, %r2}};
    ret;
}}
"""
    )


def surfaces() -> dict[str, object]:
    shape, row = [6, 4, 1], 6 * 4
    data = struct.pack("<48H", *range(48))
    seen: dict[str, object] = {}
    for boundary in ("zero", "clamp", "trap"):
        own, surface = c_void_p(), c_uint64()
        check(cuda.cuCtxCreate_v2(byref(own), 0, 0))
        array = make_array(shape, 2, 2, 2, 2)
        check(copy_in(array, shape, row, data))
        resource = Resource(type=0)
        resource.of.array.array = array
        check(cuda.cuSurfObjectCreate(byref(surface), byref(resource)))
        module = load(surface_kernel(boundary))
        size = allocate(8)
        assert size is not None
        check(launch(function(module, "size"), surface, c_uint64(size)))
        seen["size"] = list(struct.unpack("<2I", read(size, 8)))
        texture = c_uint64()
        check(cuda.cuTexObjectCreate(byref(texture), byref(resource), byref(Sampling()), None))
        check(launch(function(module, "texels"), texture, c_uint64(size)))
        seen["texels"] = list(struct.unpack("<2I", read(size, 8)))
        check(launch(function(module, "shift"), surface, c_uint(4), grid=4, block=6))
        result = int(cuda.cuCtxSynchronize())
        seen[boundary] = result if result else list(struct.unpack("<48H", copy_out(array, shape, row)))
        check(cuda.cuCtxDestroy_v2(own))
    check(cuda.cuCtxSetCurrent(primary))
    plain = make_array(shape, 2, 2, 2)
    resource = Resource(type=0)
    resource.of.array.array = plain
    seen["not for surfaces"] = cuda.cuSurfObjectCreate(byref(c_uint64()), byref(resource))
    seen["beyond"] = copy_in(plain, [6, 5, 1], row, data + bytes(row))
    wrong = Sampling()
    wrong.filter, wrong.flags = 1, 1
    seen["filtered integers"] = cuda.cuTexObjectCreate(byref(c_uint64()), byref(resource), byref(wrong), None)
    sparse = Array3D(4, 4, 4, 1, 1, 0x40)
    seen["sparse"] = cuda.cuArray3DCreate_v2(byref(c_void_p()), byref(sparse))
    seen["destroy"] = [cuda.cuArrayDestroy(plain), cuda.cuArrayDestroy(plain)]
    return seen


def rows() -> dict[str, object]:
    """The older calls for arrays of one row, and many copies in one call."""
    one, other = make_array([8, 1, 1], 1, 1, 1), make_array([8, 1, 1], 1, 1, 1)
    device, out, stream = to_device(b"ABCDEFGH"), ctypes.create_string_buffer(8), c_void_p()
    check(cuda.cuMemcpyHtoA_v2(one, c_size_t(2), b"abcd", c_size_t(4)))
    check(cuda.cuMemcpyDtoA_v2(one, c_size_t(6), c_uint64(device + 6), c_size_t(2)))
    check(cuda.cuMemcpyAtoA_v2(other, c_size_t(0), one, c_size_t(2), c_size_t(6)))
    check(cuda.cuMemcpyAtoD_v2(c_uint64(device), other, c_size_t(1), c_size_t(3)))
    check(cuda.cuMemcpyAtoH_v2(out, one, c_size_t(0), c_size_t(8)))
    beyond = cuda.cuMemcpyAtoH_v2(out, one, c_size_t(1), c_size_t(8))
    check(cuda.cuStreamCreate(byref(stream), 1))
    to, source = (c_uint64 * 2)(device + 4, device + 5), (c_uint64 * 2)(device, device + 7)
    sizes, failed = (c_size_t * 2)(1, 1), c_size_t()
    batch = cuda.cuMemcpyBatchAsync_v2(to, source, sizes, c_size_t(2), None, None, c_size_t(0), stream)
    check(cuda.cuStreamSynchronize(stream))
    sizes[1] = 1 << 20
    wrong = cuda.cuMemcpyBatchAsync(
        to, source, sizes, c_size_t(2), None, None, c_size_t(0), byref(failed), stream
    )
    legacy = cuda.cuMemcpyBatchAsync_v2(to, source, sizes, c_size_t(2), None, None, c_size_t(0), None)
    return {
        "array": out.raw.decode("latin-1"),
        "device": read(device, 8).decode("latin-1"),
        "results": [beyond, batch, wrong, legacy],
        "failed": failed.value,
    }


def of_a_destroyed_array() -> int:
    """A kernel that fetches from it faults, in a context of its own."""
    own, texture = c_void_p(), c_uint64()
    check(cuda.cuCtxCreate_v2(byref(own), 0, 0))
    array, resource, sampling = make_array([4, 4, 1], 2, 32, 1), Resource(type=0), Sampling()
    resource.of.array.array = array
    check(cuda.cuTexObjectCreate(byref(texture), byref(resource), byref(sampling), None))
    to = allocate(64)
    assert to is not None
    check(fill(to, 0, 64))
    check(cuda.cuArrayDestroy(array))
    check(launch(function(load(kernel(2, "f32", False)), "fetch"), texture, c_uint64(to), c_uint64(to)))
    result = int(cuda.cuCtxSynchronize())
    check(cuda.cuCtxDestroy_v2(own))
    check(cuda.cuCtxSetCurrent(primary))
    return result


if __name__ == "__main__":
    primary = context()
    cases = json.loads(Path(sys.argv[1]).read_text())
    answer(
        fetched=[fetched(case) for case in cases],
        surfaces=surfaces(),
        rows=rows(),
        destroyed=of_a_destroyed_array(),
    )
