"""Kernels of Triton and Gluon with one defect each.

    python -m kiln defects.py NAME     ends with status 2, and the finding is told
                                       at the line that has `# DEFECT` behind it
    python defects.py --list           names, ids and lines
"""

import re
import sys
from pathlib import Path

#: Names, and the id of the finding.
DEFECTS = {
    "no_mask": "out-of-bounds",
    "two_write": "race",
    "lock_without_barrier": "race",
    "tma_not_awaited": "copy-not-awaited",
    "unwritten": "uninitialized",
    "asserts": "assert",
}


def line_of(name: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# DEFECT {name}"))


if sys.argv[1:] == ["--list"]:
    for name, id in DEFECTS.items():
        print(name, id, line_of(name))
    sys.exit()

import numpy as np
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kiln.frameworks.arrays import as_tensor


@triton.jit
def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # DEFECT no_mask
    tl.store(x_ptr + i, x * 2, mask=i < n)


def no_mask():
    scale_kernel[(4,)](np.ones(1000, np.float32), 1000, BLOCK=256)


@triton.jit
def count_kernel(total_ptr):
    tl.store(total_ptr, tl.load(total_ptr) + tl.program_id(0))  # DEFECT two_write


def two_write():
    count_kernel[(4,)](np.zeros(1, np.int32))


@triton.jit
def sum_kernel(x_ptr, sum_ptr, lock_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(sum_ptr + i, x + tl.load(sum_ptr + i))  # DEFECT lock_without_barrier
    tl.atomic_xchg(lock_ptr, 0, sem="relaxed")


def lock_without_barrier():
    x, total = np.ones(1024, np.float32), np.zeros(256, np.float32)
    sum_kernel[(4,)](x, total, np.zeros(1, np.int32), BLOCK=256)


TMA_LOAD = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared


@gluon.jit
def load_kernel(in_desc, out_ptr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(in_desc.dtype, [BLOCK, BLOCK], in_desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, in_desc.block_type.nbytes)
    TMA_LOAD(in_desc, [0, 0], bar, tile)
    i = gl.arange(0, BLOCK, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))
    value = tile.load(layout)  # DEFECT tma_not_awaited
    gl.store(out_ptr + i[:, None] * BLOCK + j[None, :], value)
    mbarrier.wait(bar, phase=0)


def tma_not_awaited():
    x, out = as_tensor(np.ones((32, 32), np.float32)), np.zeros((32, 32), np.float32)
    layout = gl.NVMMASharedLayout.get_default_for([32, 32], gl.float32)
    load_kernel[(1,)](TensorDescriptor.from_tensor(x, [32, 32], layout), out, BLOCK=32)


@gluon.jit
def shared_kernel(out_ptr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[0])
    tile = gl.allocate_shared_memory(gl.float32, [BLOCK], layout=shared)
    i = gl.arange(0, BLOCK, layout=layout)
    gl.store(out_ptr + i, tile.load(layout))  # DEFECT unwritten


def unwritten():
    shared_kernel[(1,)](np.zeros(128, np.float32), BLOCK=128)


@triton.jit
def assert_kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 32))
    tl.device_assert(x >= 0, "x is negative")  # DEFECT asserts
    tl.store(x_ptr + tl.arange(0, 32), tl.sqrt(x.to(tl.float32)).to(tl.int32))


def asserts():
    assert_kernel[(1,)](np.arange(-1, 31, dtype=np.int32), debug=True)


try:
    globals()[sys.argv[1]]()
except RuntimeError as error:
    # An error that ends a launch reaches the program, as on a GPU.
    if not re.search("error (710|719) ", str(error)):
        raise
