"""kiln.gemm and its siblings, on arrays of numpy, through the simulator."""

from __future__ import annotations

import os
import subprocess
import sys

import kiln
import ml_dtypes
import numpy as np
import pytest
from conftest import needs_compiler

DRAWS = np.random.default_rng(1)


def drawn(*shape, dtype=np.float16):
    return DRAWS.integers(-3, 4, shape).astype(dtype)


def exact(x):
    return np.asarray(x, dtype=np.float32)


@needs_compiler
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (drawn(64, 48), drawn(48, 40)),
        (drawn(48, 64).T, drawn(40, 48).T),
        (drawn(2, 32, 48, dtype=ml_dtypes.bfloat16), drawn(2, 48, 40, dtype=ml_dtypes.bfloat16)),
        (drawn(64, 96)[:, 16:80], drawn(64, 64)),
        (drawn(64, 32, dtype=np.float32), drawn(48, 32, dtype=np.float32).T),
    ],
    ids=["rows", "columns", "batch", "part", "tf32"],
)
def test_gemm(a, b):
    d = kiln.gemm(a, b)
    assert d.dtype == np.float32
    np.testing.assert_array_equal(d, exact(a) @ exact(b))


@needs_compiler
def test_gemm_with_all_that_it_takes():
    a, b, c = drawn(32, 64), drawn(64, 48), drawn(32, 48, dtype=np.float32)
    out = np.zeros((32, 48), np.float32)
    bias = np.arange(48, dtype=np.float32)
    got = kiln.gemm(a, b, c=c, alpha=2, beta=3, bias=bias, act="relu", out=out)
    assert got is out
    np.testing.assert_array_equal(out, np.maximum(2 * (exact(a) @ exact(b)) + 3 * c + bias, 0))
    rows = np.arange(32, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(kiln.gemm(a, b, bias=rows), exact(a) @ exact(b) + rows)


@needs_compiler
def test_attention():
    q, k, v = (drawn(1, 2, 64, 64, dtype=ml_dtypes.bfloat16) / 8 for _ in range(3))
    lse = np.zeros((1, 2, 64), np.float32)
    o = kiln.attention(q, k, v, lse=lse)
    scores = exact(q) @ exact(k).transpose(0, 1, 3, 2) / 8
    weights = np.exp(scores)
    np.testing.assert_allclose(lse, np.log(weights.sum(-1)), rtol=1e-2)
    np.testing.assert_allclose(exact(o), weights / weights.sum(-1, keepdims=True) @ exact(v), atol=0.02)


@needs_compiler
def test_grouped_gemm():
    a, b = drawn(128, 64, dtype=ml_dtypes.bfloat16), drawn(2, 64, 64, dtype=ml_dtypes.bfloat16)
    d = kiln.grouped_gemm(a, b, np.array([0, 50, 128], np.int32))
    for begin, end, group in ((0, 50, 0), (50, 128, 1)):
        wanted = (exact(a[begin:end]) @ exact(b[group]).T).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(d[begin:end], wanted)


A, B = drawn(16, 32), drawn(32, 16)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: kiln.gemm(A, B.astype(np.float32)), "a is f16 and b is f32; they have one type"),
        (lambda: kiln.gemm(A, A), "the columns of a are the rows of b"),
        (lambda: kiln.gemm(A[0], B), r"a has the shape \(32,\); it has 2 or 3 dimensions"),
        (lambda: kiln.gemm(A[::2, ::2], B[:16]), "its rows or its columns are contiguous"),
        (lambda: kiln.gemm(A.astype("c8"), B), "a type that Kiln has none for"),
        (lambda: kiln.gemm(A[:0], B), "no elements"),
        (lambda: kiln.gemm(A, B, out=np.zeros((3, 3), np.float32)), "out has the shape"),
        (lambda: kiln.gemm(A, B, bias=np.zeros(7, np.float32)), "bias has the shape"),
        (lambda: kiln.gemm(A, B, c=A), "c is f16"),
        (lambda: kiln.attention(A, A, A), "4 dimensions"),
        (lambda: kiln.grouped_gemm(A, B, A), "3 dimensions"),
    ],
)
def test_refused(call, text):
    with pytest.raises(kiln.RefusedError, match=text):
        call()


def test_no_array():
    with pytest.raises(TypeError, match="a is 3; it takes an array"):
        kiln.gemm(3, B)


def test_the_compiler_is_there_or_named():
    try:
        kiln.build("gemm", "16x16x16 f16 -> f32 tn")
    except kiln.MachineError as error:
        assert "pip install kiln-gpu-compiler" in str(error)


#: Tensors of torch on a GPU, as far as the package looks at them, on the fake
#: driver of Kiln's own tests, whose memory is the host's.
ON_GPU = """
import ctypes, sys, types
import kiln
from kiln.tensors import _DLTensor

device = kiln.Device("cuda")
streams = []

class Tensor:
    def __init__(self, *shape, place=2):
        self.place, self.shape = place, (ctypes.c_int64 * len(shape))(*shape)
        self.buffer = device.allocate(4 * shape[0] * shape[1])

    def __dlpack__(self, **_):
        self.keep = _DLTensor(
            self.buffer.address, self.place, 0, len(self.shape), 2, 16, 1, self.shape, None, 0
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.keep), b"dltensor", None)

class Stream:
    cuda_stream = 0

    def __init__(self, device):
        streams.append(device)

torch = types.ModuleType("torch")
torch.Tensor = Tensor
torch.cuda = types.SimpleNamespace(current_stream=Stream)
sys.modules["torch"] = torch
a, b, d = Tensor(128, 64), Tensor(64, 128), Tensor(128, 128)
for _ in range(3):
    assert kiln.gemm(a, b, out=d) is d
print(streams)
try:
    kiln.gemm(a, Tensor(64, 128, place=1), out=d)
except kiln.RefusedError as error:
    print(error)
"""


@needs_compiler
@pytest.mark.skipif("KILN_TEST_FAKE_CUDA" not in os.environ, reason="the fake driver is not built")
def test_tensors_of_a_gpu_go_into_the_current_stream():
    environment = os.environ | {"LD_LIBRARY_PATH": os.environ["KILN_TEST_FAKE_CUDA"]}
    done = subprocess.run(
        [sys.executable, "-c", ON_GPU], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == (
        "['cuda:0', 'cuda:0', 'cuda:0']\nall arrays lie on one device; here lie a on cuda:0, b on cpu, out on cuda:0\n"
    ), done.stderr
