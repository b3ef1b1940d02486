"""Kernels that several tests launch."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import kiln
import pytest

pytest_plugins = ["pytester"]

DATA = Path(__file__).parent / "data"

_HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"

#: out[i] = x[i] + by, for i below n.
ADD = (
    _HEAD
    + """.visible .entry add(.param .u64 out, .param .u64 x, .param .f32 by, .param .u32 n)
{
.reg .f32 %f<4>;
.reg .u32 %r<6>;
.reg .u64 %a<6>;
.reg .pred %p;
ld.param.u64 %a1, [out];
ld.param.u64 %a2, [x];
ld.param.f32 %f1, [by];
ld.param.u32 %r5, [n];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r4, %r2, %r3, %r1;
setp.ge.u32 %p, %r4, %r5;
@%p ret;
mul.wide.u32 %a3, %r4, 4;
add.u64 %a4, %a2, %a3;
add.u64 %a5, %a1, %a3;
ld.global.f32 %f2, [%a4];
add.f32 %f3, %f1, %f2;
st.global.f32 [%a5], %f3;
ret;
}
"""
)

#: All threads store their number at one address.
RACE = (
    _HEAD
    + """.visible .entry race(.param .u64 x)
{
.reg .u32 %r<2>;
.reg .u64 %a<2>;
ld.param.u64 %a1, [x];
mov.u32 %r1, %tid.x;
st.global.u32 [%a1], %r1;
ret;
}
"""
)


def echo(parameter: str, size: int) -> str:
    """PTX that copies its second parameter, byte by byte, to the first."""
    copies = "".join(
        f"ld.param.u8 %r1, [value+{i}];\nst.global.u8 [%a1+{i}], %r1;\n" for i in range(size)
    )
    return (
        _HEAD
        + f".visible .entry echo(.param .u64 out, .param {parameter})\n"
        + "{\n.reg .u32 %r<2>;\n.reg .u64 %a<2>;\nld.param.u64 %a1, [out];\n"
        + copies
        + "ret;\n}\n"
    )


@pytest.fixture(scope="session")
def add() -> kiln.Kernel:
    return kiln.load(ADD, threads=1).kernel("add")


@pytest.fixture(scope="session")
def race() -> kiln.Kernel:
    return kiln.load(RACE, threads=1).kernel("race")


@pytest.fixture
def echoed() -> Callable[..., bytes]:
    """The bytes that a value has as a parameter, such as ".f32 value"."""

    def run(parameter: str, size: int, value: object) -> bytes:
        out = bytearray(size)
        view = memoryview(out)
        kernel = kiln.load(echo(parameter, size)).kernel("echo")
        kernel.launch(1, 1, {"out": view, "value": value}).raise_for_errors()
        return bytes(out)

    return run


def has_compiler() -> bool:
    try:
        kiln.build("gemm", "16x16x16 f16 -> f32 tn")
    except kiln.MachineError:
        return False
    return True


needs_compiler = pytest.mark.skipif(
    "not __import__('conftest').has_compiler()", reason="Kiln's compiler is not installed"
)
FUZZ_CALLS = int(os.environ.get("KILN_TEST_CALLS", "1500"))
