"""What the text of a module may hold beside instructions: vector registers, aliases, bytes of addresses."""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"


def test_a_vector_register_is_its_components(engine: Any) -> None:
    body = """.reg .v4 .f32 %v; .reg .v2 .b64 %w<3>; ld.param.u64 %d1, [out];
    ld.global.v4.f32 %v, [%d1]; add.f32 %v.x, %v.y, %v.w; mov.f32 %v.a, %v.r; st.global.v4.f32 [%d1], %v;
    ld.global.v2.b64 %w2, [%d1+16]; mov.b64 %d2, %w2.x; mov.b64 %w2.x, %w2.y; mov.b64 %w2.y, %d2; st.global.v2.b64 [%d1+16], %w2;"""
    out = engine.device.put(np.array([1, 2, 3, 4, 5, 6, 7, 8], "f4"))
    engine.body(body).launch(out)
    assert out.array().tolist() == [6, 2, 3, 6, 7, 8, 5, 6]


@pytest.mark.parametrize("text", [".reg .v4 .f32 %v; mov.f32 %v.q, %v.x;", ".reg .v2 .f32 %v; mov.f32 %v.z, %v.x;",
                                  ".reg .v4 .f32 %v; add.f32 %v, %v, %v;", ".reg .v2 .pred %v;"])  # fmt: skip
def test_what_is_no_component_is_refused_with_its_line(engine: Any, text: str) -> None:
    with pytest.raises(engine.LoadError, match="line 9"):
        engine.body(text)


def test_an_alias_is_the_function_it_names(engine: Any) -> None:
    text = (
        HEAD
        + """
    .visible .func (.param .b32 r) one(.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; add.s32 %a, %a, 1; st.param.b32 [r], %a; ret; }
    .visible .func (.param .b32 r) other(.param .b32 x);
    .alias other, one;
    .global .u64 pointer = other;
    .visible .entry k(.param .u64 out) { .reg .b32 %r; .reg .b64 %d<3>; .param .b32 o; .param .b32 i;
    p: .callprototype (.param .b32 _) _ (.param .b32 _);
    st.param.b32 [i], 41; call.uni (o), other, (i); ld.param.b32 %r, [o]; st.param.b32 [i], %r; ld.global.u64 %d1, [pointer];
    call (o), %d1, (i), p; ld.param.b32 %r, [o]; ld.param.u64 %d2, [out]; st.global.u32 [%d2], %r; ret; }"""
    )
    out = engine.device.put(np.zeros(1, "u4"))
    engine.module(text).launch(out)
    assert out.array().tolist() == [43]


@pytest.mark.parametrize(
    "alias", [".alias nothing, one;", ".alias one, other;", ".alias other, nothing;", ".alias other, other;"]
)
def test_an_alias_of_what_is_no_function_is_refused(engine: Any, alias: str) -> None:
    text = HEAD + f".func one() {{ ret; }}\n.func other();\n{alias}\n.visible .entry k() {{ call one; ret; }}"
    with pytest.raises(engine.LoadError, match="line 6"):
        engine.module(text)


def test_an_array_has_as_many_elements_as_values(engine: Any) -> None:
    text = (
        HEAD
        + """.global .align 4 .u32 values[] = {5, 6, 7}; .const .b8 bytes[] = {1, 2, 3, 4, 5};
    .visible .entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %d; ld.param.u64 %d, [out]; ld.global.u32 %r1, [values+8];
    ld.const.u8 %r2, [bytes+4]; st.global.v2.u32 [%d], {%r1, %r2}; ld.global.u32 %r3, [values+12]; ret; }"""
    )
    module = engine.module(text)
    out = engine.device.put(np.zeros(2, "u4"))
    assert module.run(out).status == engine.ILLEGAL_ADDRESS  # at the last load, behind the third element
    assert out.array().tolist() == [7, 5]


def test_structures_hold_addresses_byte_by_byte(engine: Any) -> None:
    masks = ", ".join(
        f"0x{'FF' + '00' * k}({what})" for what in ("target", "generic(target)+4") for k in range(8)
    )
    text = (
        HEAD
        + f""".global .align 4 .u32 target[2] = {{11, 12}}; .global .align 1 .b8 packed[17] = {{9, {masks}}};
    .visible .entry k(.param .u64 out) {{ .reg .b32 %r<3>; .reg .b64 %d<4>; .reg .b64 %b; ld.param.u64 %d1, [out]; mov.u64 %d2, 0; mov.u64 %d3, 0;
    {"".join(f"ld.global.u8 %b, [packed+{1 + k}]; shl.b64 %b, %b, {8 * k}; or.b64 %d2, %d2, %b; ld.global.u8 %b, [packed+{9 + k}]; shl.b64 %b, %b, {8 * k}; or.b64 %d3, %d3, %b;" for k in range(8))}
    ld.u32 %r1, [%d2]; ld.u32 %r2, [%d3]; st.global.v2.u32 [%d1], {{%r1, %r2}}; ret; }}"""
    )
    out = engine.device.put(np.zeros(2, "u4"))
    engine.module(text).launch(out)
    assert out.array().tolist() == [11, 12]


@pytest.mark.parametrize("mask", ["0xF0(t)", "0xFFFF(t)", "0(t)", "0x1FF00(t)"])
def test_a_mask_of_an_address_is_one_of_its_bytes(engine: Any, mask: str) -> None:
    text = HEAD + f".global .u32 t;\n.global .b8 x[1] = {{{mask}}};\n.visible .entry k() {{ ret; }}"
    with pytest.raises(engine.LoadError, match="line 5: the mask"):
        engine.module(text)


def test_words_of_an_access_come_in_any_order(engine: Any) -> None:
    """NVRTC writes the operation before, between and behind the order and the scope."""
    forms = [
        "atom.global.sys.add.u32",
        "atom.add.acquire.gpu.u32",
        "atom.relaxed.cta.global.add.u32",
        "atom.add.relaxed.gpu.global.u32",
    ]
    body = "ld.param.u64 %d1, [out];" + "".join(f"{form} %r1, [%d1], 1;" for form in forms)
    out = engine.device.put(np.zeros(1, "u4"))
    module = engine.body(body + "ld.gpu.global.acquire.u32 %r2, [%d1]; st.u32.relaxed.sys [%d1], %r2;")
    assert not module.log
    module.launch(out)
    assert out.array().tolist() == [4]
    twice = engine.body("ld.param.u64 %d1, [out]; atom.add.add.u32 %r1, [%d1], 1;")
    assert twice.run(out).status == engine.UNSUPPORTED


def test_warp_size_is_a_constant_by_name(engine: Any) -> None:
    out = engine.device.put(np.zeros(1, "u4"))
    engine.body("ld.param.u64 %d1, [out]; mov.u32 %r1, WARP_SZ; st.global.u32 [%d1], %r1;").launch(out)
    assert out.array().tolist() == [32]


@pytest.mark.parametrize(("size", "fits"), [(32764, True), (32765, False), (1 << 39, False)])
def test_parameters_of_a_kernel_have_a_bound(engine: Any, size: int, fits: bool) -> None:
    text = HEAD + f".visible .entry k(.param .b8 x[{size}]) {{ ret; }}"
    if fits:
        assert engine.module(text).describe().parameter_bytes == size
    else:
        with pytest.raises(engine.LoadError, match=r"line 4: k has .* bytes of parameters"):
            engine.module(text)
