"""`pytest --kiln` sees the launches of a framework."""

import numpy as np
import triton
import triton.language as tl

import kiln


@triton.jit
def count_kernel(total_ptr):
    tl.store(total_ptr, tl.load(total_ptr) + tl.program_id(0))


@triton.jit
def one_kernel(total_ptr):
    tl.atomic_add(total_ptr, 1)


def test_right():
    with kiln.check() as checked:
        one_kernel[(4,)](np.zeros(1, np.int32))
    assert [launch.kernel for launch in checked.reports[0].launches] == ["one_kernel"]


def test_wrong():
    count_kernel[(4,)](np.zeros(1, np.int32))
