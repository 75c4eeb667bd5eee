"""What a link is told, and what it is given besides PTX: limits of registers, NVIDIA's device runtime."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_void_p

from calls import answer, check, context, cuda, function, launch, load

HEADER = ".version 7.0\n.target sm_70\n.address_size 64\n"
PTX_INPUT, LIBRARY_INPUT = 1, 4
MAX_REGISTERS = 0
CONSTANT_BYTES, REGISTERS = 2, 4
LIVE = 60
MANY = (
    HEADER
    + f".const .b32 table[20];\n.visible .entry many(.param .u64 where) {{\n.reg .b32 %r<{LIVE + 2}>;\n"
    + ".reg .b64 %rd1;\nld.param.u64 %rd1, [where];\n"
    + "".join(f"ld.global.u32 %r{i}, [%rd1+{4 * i}];\n" for i in range(LIVE))
    + "".join(f"add.u32 %r0, %r0, %r{i};\n" for i in range(1, LIVE))
    + "st.global.u32 [%rd1], %r0;\nret;\n}\n"
)
STATUS_EXPECTED = (
    HEADER
    + """.extern .func (.param .b32 status) noted(.param .b32 value);
.visible .entry note() {
    {
        .param .b32 given;
        .param .b32 back;
        st.param.b32 [given], 1;
        call.uni (back), noted, (given);
    }
    ret;
}
"""
)
NO_STATUS = HEADER + ".visible .func noted(.param .b32 value) { ret; }\n"
SYNC = (
    HEADER
    + """.extern .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry sync() {
    {
        .param .b64 handle;
        .param .b32 flags;
        .param .b32 back;
        st.param.b64 [handle], 0;
        st.param.b32 [flags], 0;
        call.uni (back), cudaCGSynchronize, (handle, flags);
    }
    ret;
}
"""
)


def archive(*members: str) -> bytes:
    """An ar archive in the GNU form: long names in a table of their own, files padded to even."""

    def header(name: str, size: int) -> bytes:
        return f"{name:16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()

    names, content = "", b""
    for member in members:
        content += header(f"/{len(names)}", 3) + b"ELF\n"
        names += member + "/\n"
    table = names.encode() + b"\n" * (len(names) % 2)
    return b"!<arch>\n" + header("/", 4) + bytes(4) + header("//", len(names)) + table + content


def link(*inputs: tuple[int, bytes], registers: int = 0) -> tuple[int, int, bytes]:
    """What adding the last input gave, what completing gave, and what came out."""
    state, blob, size = c_void_p(), c_void_p(), c_size_t()
    names, values = (c_int * 1)(MAX_REGISTERS), (c_void_p * 1)(registers)
    check(cuda.cuLinkCreate_v2(1 if registers else 0, names, values, byref(state)))
    added = 0
    for kind, data in inputs:
        added = cuda.cuLinkAddData_v2(state, kind, data, c_size_t(len(data)), b"part", 0, None, None)
    completed = cuda.cuLinkComplete(state, byref(blob), byref(size))
    made = ctypes.string_at(blob, size.value).rstrip(b"\0") if completed == 0 else b""
    check(cuda.cuLinkDestroy(state))
    return added, completed, made


def attribute(which: int, text: bytes, name: str) -> int:
    value = c_int()
    check(cuda.cuFuncGetAttribute(byref(value), which, function(load(text.decode()), name)))
    return value.value


def cooperative(text: bytes) -> int:
    kernel = function(load(text.decode()), "sync")
    check(cuda.cuLaunchCooperativeKernel(kernel, 4, 1, 1, 64, 1, 1, 0, None, None))
    return int(cuda.cuCtxSynchronize())


context()
many = (PTX_INPUT, MANY.encode())
_, _, limited = link(many, registers=38)
_, _, linked_again = link((PTX_INPUT, limited), registers=57)
declared = MANY.replace("where)", "where) .maxnreg 32")
apart, together, loose = link((PTX_INPUT, STATUS_EXPECTED.encode()), (PTX_INPUT, NO_STATUS.encode()))
strict = c_void_p()
in_one = STATUS_EXPECTED + NO_STATUS.removeprefix(HEADER)
runtime_added, runtime_completed, synchronised = link(
    (PTX_INPUT, SYNC.encode()), (LIBRARY_INPUT, archive("cuda_device_runtime.o"))
)
answer(
    free=attribute(REGISTERS, link(many)[2], "many"),
    limited=attribute(REGISTERS, limited, "many"),
    linked_again=attribute(REGISTERS, linked_again, "many"),
    declared=attribute(REGISTERS, declared.encode(), "many"),
    constant_bytes=attribute(CONSTANT_BYTES, limited, "many"),
    together=(apart, together, launch(function(load(loose.decode()), "note"))),
    in_one=cuda.cuModuleLoadData(byref(strict), in_one.encode()),
    runtime=(runtime_added, runtime_completed, cooperative(synchronised)),
    other_archive=link(many, (LIBRARY_INPUT, archive("cuda_device_runtime.o", "mine.o")))[0],
    cut_short=link(many, (LIBRARY_INPUT, archive("cuda_device_runtime.o")[:-2]))[0],
)
