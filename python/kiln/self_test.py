"""`python -m kiln --self-test`: whether this installation works.

Nothing but the package is needed: arrays are those of the standard library.
"""

from __future__ import annotations

import array
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

_SCALE = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by)
{
.reg .f32 %f<4>;
.reg .u32 %r<3>;
.reg .u64 %a<4>;
ld.param.u64 %a1, [x];
ld.param.f32 %f1, [by];
mov.u32 %r1, %tid.x;
mul.wide.u32 %a2, %r1, 4;
add.u64 %a3, %a1, %a2;
ld.global.f32 %f2, [%a3];
mul.f32 %f3, %f1, %f2;
st.global.f32 [%a3], %f3;
ret;
}
"""
_RACE = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry race(.param .u64 x)
{
.reg .u32 %r<2>;
.reg .u64 %a<2>;
ld.param.u64 %a1, [x];
mov.u32 %r1, %tid.x;
st.global.u32 [%a1], %r1;
ret;
}
"""


def _simulates() -> str:
    from . import load

    x = array.array("f", range(64))
    load(_SCALE).kernel("scale").launch(1, 64, [x, 2]).raise_for_errors()
    if list(x) != [2 * i for i in range(64)]:
        raise RuntimeError(f"a kernel that doubles numbers made {list(x)[:4]} of 0, 1, 2, 3")
    return "a kernel computes what it should"


def _finds() -> str:
    from . import load

    report = load(_RACE).kernel("race").launch(1, 64, [array.array("I", [0])])
    if [finding.id for finding in report.findings] != ["race"]:
        raise RuntimeError(f"a race was reported as: {report}")
    return "a race is found"


def _has_command() -> str:
    from .executable import executable

    run = subprocess.run([executable(), "--version"], capture_output=True, text=True, timeout=20)
    if run.returncode:
        raise RuntimeError(f"{executable()} ended with status {run.returncode}: {run.stderr}")
    return f"the command is {run.stdout.strip()}"


def _has_cuda() -> str:
    """In a process of its own: this one shall load what it likes later."""
    from ._library import CUDA

    names = ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13")
    script = "import ctypes, sys; [ctypes.CDLL(name) for name in sys.argv[1:]]"
    paths = [os.fspath(CUDA / name) for name in names]
    run = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, timeout=20)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().rpartition("\n")[2])
    return f"CUDA's libraries by Kiln load: {', '.join(names)}"


_PARTS: tuple[Callable[[], str], ...] = (_simulates, _finds, _has_command, _has_cuda)


def main(words: Sequence[str]) -> int:
    """Each part in a line; 0 where all of them work, else 5."""
    from . import __version__
    from ._library import LIBRARIES

    if words:
        print(f"kiln: error: --self-test takes no '{words[0]}'", file=sys.stderr)
        return 3
    begin = time.monotonic()
    print(f"kiln {__version__}, Python {sys.version.split()[0]}, {LIBRARIES}")
    failures = 0
    for part in _PARTS:
        try:
            print(f"ok    {part()}")
        except Exception as error:
            failures += 1
            print(f"FAIL  {part.__name__.strip('_')}: {error}")
    print(f"{'FAIL' if failures else 'PASS'} in {time.monotonic() - begin:.1f} s")
    return 5 if failures else 0
