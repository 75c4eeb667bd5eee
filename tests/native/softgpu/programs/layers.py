"""Arrays with layers and levels: what is stored comes back, what kernels fetch and store by layer."""

import struct
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

from calls import allocate, answer, check, context, cuda, function, launch, load, read
from textures import Array3D, Resource, Sampling, copy_in, copy_out

FLOAT, BYTE = 32, 1
LAYERED, SURFACE, CUBE, GATHER = 1, 2, 4, 8
PTX = """.version 7.0
.target sm_70
.address_size 64
// each thread: out[x] = {1D layer, 2D layer at row 1, the number of layers}, of layer `layer`
.visible .entry fetch(.param .u64 one, .param .u64 two, .param .u32 layer, .param .u64 out) {
    .reg .u32 %r<6>;
    .reg .f32 %f<12>;
    .reg .u64 %rd<6>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [one];
    ld.param.u64 %rd2, [two];
    ld.param.u32 %r2, [layer];
    ld.param.u64 %rd3, [out];
    cvt.rn.f32.u32 %f1, %r1;
    add.f32 %f1, %f1, 0f3F000000;
    mov.f32 %f2, 0f3FC00000;
    tex.a1d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%r2, %f1}];
    tex.a2d.v4.f32.f32 {%f7, %f8, %f9, %f10}, [%rd2, {%r2, %f1, %f2, %f2}];
    txq.array_size.b32 %r3, [%rd2];
    mul.wide.u32 %rd4, %r1, 12;
    add.u64 %rd3, %rd3, %rd4;
    st.global.f32 [%rd3], %f3;
    st.global.f32 [%rd3+4], %f7;
    st.global.u32 [%rd3+8], %r3;
    ret;
}
// each thread: element x of row 1 of layer `layer` counts up; outside it is left or trapped
.visible .entry count_up(.param .u64 surface, .param .u32 layer) {
    .reg .u32 %r<6>;
    .reg .u64 %rd<2>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r1, %r1, 2;
    mov.u32 %r3, 1;
    ld.param.u64 %rd1, [surface];
    ld.param.u32 %r2, [layer];
    suld.b.a2d.b32.zero {%r4}, [%rd1, {%r2, %r1, %r3, %r3}];
    add.u32 %r4, %r4, 1;
    sust.b.a2d.b32.trap [%rd1, {%r2, %r1, %r3, %r3}], {%r4};
    ret;
}
// a fetch in two dimensions from what has layers
.visible .entry mismatched(.param .u64 texture) {
    .reg .f32 %f<6>;
    .reg .u64 %rd<2>;
    ld.param.u64 %rd1, [texture];
    mov.f32 %f1, 0f00000000;
    tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1, %f1}];
    ret;
}
"""


def create(*shape: int, format_: int = BYTE, channels: int = 1, flags: int = 0) -> tuple[int, c_void_p]:
    array, wanted = c_void_p(), Array3D(*shape, format_, channels, flags)
    return cuda.cuArray3DCreate_v2(byref(array), byref(wanted)), array


def pattern(size: int, seed: int) -> bytes:
    return bytes((i * 7 + seed * 31) % 251 for i in range(size))


def stored(*shape: int, flags: int) -> bool:
    """Every byte of it comes back, and its shape."""
    result, array = create(*shape, flags=flags)
    check(result)
    whole = [shape[0], max(shape[1], 1), max(shape[2], 1)]
    data = pattern(whole[0] * whole[1] * whole[2], len(shape))
    check(copy_in(array, whole, whole[0], data))
    told = Array3D()
    check(cuda.cuArray3DGetDescriptor_v2(byref(told), array))
    same = (told.width, told.height, told.depth, told.flags) == (*shape, flags)
    kept = copy_out(array, whole, whole[0]) == data
    check(cuda.cuArrayDestroy(array))
    return same and kept


def make_texture(array: c_void_p) -> c_uint64:
    made, resource, sampling = c_uint64(), Resource(), Sampling()
    resource.type, resource.of.array.array = 0, array
    sampling.address[:] = [1, 1, 1]
    check(cuda.cuTexObjectCreate(byref(made), byref(resource), byref(sampling), None))
    return made


def make_surface(array: c_void_p) -> c_uint64:
    made, resource = c_uint64(), Resource()
    resource.type, resource.of.array.array = 0, array
    check(cuda.cuSurfObjectCreate(byref(made), byref(resource)))
    return made


def floats(width: int, rows: int, layers: int) -> bytes:
    return struct.pack(f"{width * rows * layers}f", *range(width * rows * layers))


def fetched(module: c_void_p) -> dict[str, object]:
    """Arrays of 4 elements, 2 rows and 3 layers, whose elements are numbered."""
    one, two = (create(4, rows, 3, format_=FLOAT, flags=LAYERED | SURFACE)[1] for rows in (0, 2))
    check(copy_in(one, [4, 1, 3], 16, floats(4, 1, 3)) or copy_in(two, [4, 2, 3], 16, floats(4, 2, 3)))
    textures, out = (make_texture(one), make_texture(two)), allocate(48)
    seen = {}
    for layer in (0, 2, 9):
        arguments = (*textures, c_uint(layer), c_uint64(out))
        check(launch(function(module, "fetch"), *arguments, block=4))
        seen[layer] = list(struct.iter_unpack("ffI", read(out, 48)))
    surface = make_surface(two)
    numbers = struct.pack("24i", *range(24))
    check(copy_in(two, [4, 2, 3], 16, numbers))
    check(launch(function(module, "count_up"), surface, c_uint(1), block=4))
    counted = struct.unpack("24i", copy_out(two, [4, 2, 3], 16))
    check(launch(function(module, "count_up"), surface, c_uint(3), block=4))
    return {"fetched": seen, "counted": counted, "beyond": cuda.cuCtxSynchronize()}


def mismatched() -> int:
    check(cuda.cuCtxCreate_v2(byref(c_void_p()), 0, 0))
    made = make_texture(create(4, 2, 3, format_=FLOAT, flags=LAYERED)[1])
    check(launch(function(load(PTX), "mismatched"), made))
    return int(cuda.cuCtxSynchronize())


def mipmapped(shape: tuple[int, int, int], levels: int, flags: int = 0) -> dict[str, object]:
    """The shapes of the levels, and whether each keeps its own bytes when all are written."""
    whole, wanted = c_void_p(), Array3D(*shape, BYTE, 1, flags)
    check(cuda.cuMipmappedArrayCreate(byref(whole), byref(wanted), c_uint(levels)))
    arrays: list[tuple[c_void_p, list[int], bytes]] = []
    shapes = []
    while True:
        level, told = c_void_p(), Array3D()
        result = cuda.cuMipmappedArrayGetLevel(byref(level), whole, c_uint(len(arrays)))
        if result != 0:
            break
        check(cuda.cuArray3DGetDescriptor_v2(byref(told), level))
        shapes.append([told.width, told.height, told.depth])
        box = [told.width, max(told.height, 1), max(told.depth, 1)]
        data = pattern(box[0] * box[1] * box[2], len(arrays))
        check(copy_in(level, box, box[0], data))
        arrays.append((level, box, data))
    needed = (c_size_t * 4)()
    check(cuda.cuMipmappedArrayGetMemoryRequirements(needed, whole, 0))
    kept = all(copy_out(level, box, box[0]) == data for level, box, data in arrays)
    refused = [result, cuda.cuArrayDestroy(arrays[0][0])]
    destroyed = [cuda.cuMipmappedArrayDestroy(whole), cuda.cuMipmappedArrayDestroy(whole)]
    gone = cuda.cuArray3DGetDescriptor_v2(byref(Array3D()), arrays[0][0])
    return {
        "shapes": shapes,
        "kept": kept,
        "bytes": needed[0],
        "refused": refused,
        "destroyed": [*destroyed, gone],
    }


def free_memory() -> int:
    free, total = c_size_t(), c_size_t()
    check(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value


def main() -> None:
    context()
    limit = c_int()
    check(cuda.cuDeviceGetAttribute(byref(limit), 29, 0))
    before = free_memory()
    seen: dict[str, object] = {
        "stored": [
            stored(37, 0, 5, flags=LAYERED),
            stored(37, 11, 5, flags=LAYERED | SURFACE),
            stored(16, 16, 6, flags=CUBE),
            stored(16, 16, 12, flags=CUBE | LAYERED),
            stored(16, 9, 0, flags=GATHER),
        ],
        "refused": [
            create(4, 4, 0, flags=LAYERED)[0],
            create(4, 4, limit.value + 1, flags=LAYERED)[0],
            create(4, 5, 6, flags=CUBE)[0],
            create(4, 4, 5, flags=CUBE)[0],
            create(4, 4, 7, flags=CUBE | LAYERED)[0],
            create(4, 4, 4, flags=GATHER)[0],
        ],
        "flat": mipmapped((20, 6, 0), 100),
        "solid": mipmapped((8, 4, 2), 2),
        "layered": mipmapped((8, 8, 3), 3, LAYERED),
        "line": mipmapped((5, 0, 0), 0),
    }
    seen["leaked"] = before - free_memory()
    seen |= fetched(load(PTX))
    seen["mismatched"] = mismatched()
    answer(**seen)


main()
