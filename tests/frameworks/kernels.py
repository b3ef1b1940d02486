"""Kernels of Triton and Gluon in the shapes that people write them in, at small
sizes, on numpy's arrays: each is held to numpy.

    python -m kiln kernels.py [NAME...]
"""

import sys

import numpy as np
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

from kiln.frameworks.arrays import as_tensor

random = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return as_tensor(random.standard_normal(shape), dtype=dtype)


def check(name, got, want, tolerance=1e-5):
    np.testing.assert_allclose(np.float32(got), np.float32(want), tolerance, tolerance, err_msg=name)


# Vector add: one dimension and a mask.


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def vector_add():
    n = 1000
    x, y = random.random(n, np.float32), random.random(n, np.float32)
    out = np.empty_like(x)
    add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    check("vector_add", out, x + y)


# Softmax: a row for each program, which loops over rows.


@triton.jit
def softmax_kernel(out_ptr, in_ptr, stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        i = tl.arange(0, BLOCK)
        mask = i < columns
        x = tl.load(in_ptr + row * stride + i, mask=mask, other=-float("inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * stride + i, power / tl.sum(power, axis=0), mask=mask)


def softmax():
    x = normal(7, 50)
    out = np.empty_like(x)
    kernel = softmax_kernel.warmup(out, x, 50, 7, 50, BLOCK=64, STAGES=2, num_warps=4, grid=(1,))
    kernel._init_handles()
    assert kernel.n_regs > 0
    softmax_kernel[(3,)](out, x, 50, 7, 50, BLOCK=64, STAGES=2)
    power = np.exp(x - x.max(1, keepdims=True))
    check("softmax", out, power / power.sum(1, keepdims=True))


# A product of matrices with grouped tiles, autotuned, with an activation.


@triton.autotune(
    configs=[
        triton.Config({"M": 64, "N": 64, "K": 32, "GROUP": 2}, num_stages=2, num_warps=4),
        triton.Config({"M": 32, "N": 64, "K": 32, "GROUP": 2}, num_stages=3, num_warps=4),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, sam, sak, sbk, sbn, scm, scn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    group = pid // (GROUP * tiles_n)
    size = min(tiles_m - group * GROUP, GROUP)
    pid_m = group * GROUP + (pid % (GROUP * tiles_n)) % size
    pid_n = (pid % (GROUP * tiles_n)) // size
    rows = (pid_m * M + tl.arange(0, M)) % m
    columns = (pid_n * N + tl.arange(0, N)) % n
    steps = tl.arange(0, K)
    a_ptrs = a_ptr + rows[:, None] * sam + steps[None, :] * sak
    b_ptrs = b_ptr + steps[:, None] * sbk + columns[None, :] * sbn
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        a = tl.load(a_ptrs, mask=steps[None, :] < k - step * K, other=0.0)
        b = tl.load(b_ptrs, mask=steps[:, None] < k - step * K, other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += K * sak
        b_ptrs += K * sbk
    if ACTIVATION == "relu":
        total = tl.where(total >= 0, total, 0.0)
    rows = pid_m * M + tl.arange(0, M)
    columns = pid_n * N + tl.arange(0, N)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    c_ptrs = c_ptr + scm * rows[:, None] + scn * columns[None, :]
    tl.store(c_ptrs, total.to(tl.float16), mask=mask)


def matmul():
    m, n, k = 96, 80, 72
    a, b = normal(m, k, dtype=np.float16), normal(k, n, dtype=np.float16)
    c = as_tensor(np.empty((m, n), np.float16))
    grid = lambda meta: (triton.cdiv(m, meta["M"]) * triton.cdiv(n, meta["N"]),)
    matmul_kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), ACTIVATION="relu"
    )
    check("matmul", c, np.maximum(np.float32(a) @ np.float32(b), 0), 1e-2)


# Layer norm: the forward pass, and weights' gradients under a lock.


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, n, BLOCK):
        i = off + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * stride + i, mask=i < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, n, BLOCK):
        i = off + tl.arange(0, BLOCK)
        x = tl.where(i < n, tl.load(x_ptr + row * stride + i, mask=i < n, other=0.0) - mean, 0.0)
        total += x * x
    rstd = 1 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, n, BLOCK):
        i = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + i, mask=i < n)
        w, b = tl.load(w_ptr + i, mask=i < n), tl.load(b_ptr + i, mask=i < n)
        tl.store(y_ptr + row * stride + i, (x - mean) * rstd * w + b, mask=i < n)


def layer_norm():
    rows, n = 5, 200
    x, w, b = normal(rows, n), normal(n), normal(n)
    y, mean, rstd = np.empty_like(x), np.empty(rows, np.float32), np.empty(rows, np.float32)
    layer_norm_kernel[(rows,)](x, y, w, b, mean, rstd, n, n, 1e-5, BLOCK=128)
    norm = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    check("layer_norm", y, norm * w + b, 1e-4)


@triton.jit
def gradient_kernel(dy_ptr, sum_ptr, lock_ptr, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    group = row % GROUPS
    i = tl.arange(0, BLOCK)
    mask = i < n
    part = tl.load(dy_ptr + row * n + i, mask=mask, other=0.0)
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    count = tl.load(lock_ptr + GROUPS + group)
    tl.debug_barrier()  # every thread has read it before one writes it
    if count == 0:
        tl.atomic_xchg(lock_ptr + GROUPS + group, 1)
    else:
        part += tl.load(sum_ptr + group * n + i, mask=mask)
    tl.store(sum_ptr + group * n + i, part, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


def gradients():
    rows, n, groups = 6, 100, 2
    dy, sums, locks = normal(rows, n), np.empty((groups, n), np.float32), np.zeros(2 * groups, np.int32)
    gradient_kernel[(rows,)](dy, sums, locks, n, GROUPS=groups, BLOCK=128)
    check("gradients", sums, np.stack([dy[g::groups].sum(0) for g in range(groups)]), 1e-4)


# Attention with tensor descriptors that the host makes.


@triton.jit
def attention_kernel(q_desc, k_desc, v_desc, o_desc, scale, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    start = tl.program_id(0) * M
    most = tl.zeros([M], dtype=tl.float32) - float("inf")
    total = tl.zeros([M], dtype=tl.float32)
    out = tl.zeros([M, D], dtype=tl.float32)
    q = q_desc.load([start, 0])
    rows = start + tl.arange(0, M)
    for at in range(0, start + M, N):
        columns = at + tl.arange(0, N)
        score = tl.dot(q, k_desc.load([at, 0]).T) * scale
        score = tl.where(rows[:, None] >= columns[None, :], score, -1e6)
        larger = tl.maximum(most, tl.max(score, 1))
        p = tl.math.exp2(score - larger[:, None])
        shrink = tl.math.exp2(most - larger)
        total = total * shrink + tl.sum(p, 1)
        out = tl.dot(p.to(tl.float16), v_desc.load([at, 0]), out * shrink[:, None])
        most = larger
    o_desc.store([start, 0], (out / total[:, None]).to(tl.float16))


def attention():
    n, d = 128, 64
    q, k, v = (normal(n, d, dtype=np.float16) for _ in range(3))
    o = as_tensor(np.empty((n, d), np.float16))
    q_desc, k_desc, v_desc, o_desc = (TensorDescriptor.from_tensor(x, [64, d]) for x in (q, k, v, o))
    attention_kernel[(n // 64,)](
        q_desc, k_desc, v_desc, o_desc, 1.44269504 / d**0.5, n, M=64, N=64, D=d
    )
    score = np.float32(q) @ np.float32(k).T / d**0.5
    score[np.triu_indices(n, 1)] = -np.inf
    p = np.exp(score - score.max(1, keepdims=True))
    check("attention", o, (p / p.sum(1, keepdims=True)) @ np.float32(v), 2e-2)


# A persistent product with descriptors that the device makes.


@triton.jit
def persistent_kernel(a_ptr, b_ptr, c_ptr, m, n, k, SMS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [M, K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [N, K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [M, N])
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, SMS, flatten=True):
        row, column = tile // tiles_n * M, tile % tiles_n * N
        total = tl.zeros((M, N), dtype=tl.float32)
        for at in range(0, k, K):
            total = tl.dot(a_desc.load([row, at]), b_desc.load([column, at]).T, total)
        c_desc.store([row, column], total.to(tl.float16))


def persistent():
    m, n, k = 128, 128, 96
    a, b = normal(m, k, dtype=np.float16), normal(n, k, dtype=np.float16)
    c = np.empty((m, n), np.float16)
    triton.set_allocator(lambda size, align, stream: as_tensor(np.empty(size, np.int8)))
    persistent_kernel[(2,)](a, b, c, m, n, k, SMS=2, M=64, N=64, K=32)
    check("persistent", c, np.float32(a) @ np.float32(b).T, 1e-2)


# Gluon: layouts that the kernel chooses, asynchronous copies, TMA, wgmma.


@gluon.jit
def copy_kernel(in_ptr, out_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out_ptr + i, gl.load(in_ptr + i, mask=i < n), mask=i < n)


def gluon_copy():
    x, out = normal(700), np.zeros(700, np.float32)
    copy_kernel[(2,)](x, out, 700, BLOCK=512)
    check("gluon_copy", out, x)


@gluon.jit
def transpose_kernel(in_ptr, out_ptr, SIZE: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])
    i = gl.arange(0, SIZE, layout=gl.SliceLayout(1, rows))
    j = gl.arange(0, SIZE, layout=gl.SliceLayout(0, rows))
    x = gl.load(in_ptr + i[:, None] * SIZE + j[None, :])
    x = gl.convert_layout(x, columns)
    i = gl.arange(0, SIZE, layout=gl.SliceLayout(1, columns))
    j = gl.arange(0, SIZE, layout=gl.SliceLayout(0, columns))
    gl.store(out_ptr + j[None, :] * SIZE + i[:, None], x)


def gluon_layouts():
    x, out = normal(64, 64), np.empty((64, 64), np.float32)
    transpose_kernel[(1,)](x, out, SIZE=64)
    check("gluon_layouts", out, x.T)


@gluon.jit
def async_copy_kernel(in_ptr, out_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    shared: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[0])
    tile = gl.allocate_shared_memory(gl.float32, [BLOCK], layout=shared)
    COPY(tile, in_ptr + i, mask=i < n)
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(out_ptr + i, tile.load(layout), mask=i < n)


# Its name in Triton 3.6.
COPY = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared


def gluon_async_copy():
    x, out = normal(300), np.zeros(300, np.float32)
    async_copy_kernel[(2,)](x, out, 300, BLOCK=256)
    check("gluon_async_copy", out, x)


@gluon.jit
def tma_kernel(in_desc, out_desc, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(in_desc.dtype, [BLOCK, BLOCK], in_desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    row = gl.program_id(0) * BLOCK
    mbarrier.expect(bar, in_desc.block_type.nbytes)
    TMA_LOAD(in_desc, [row, 0], bar, tile)
    mbarrier.wait(bar, phase=0)
    mbarrier.invalidate(bar)
    value = tile.load(layout) + 1
    tile.store(value)
    fence_async_shared()
    TMA_STORE(out_desc, [row, 0], tile)
    tma.store_wait(pendings=0)


TMA_LOAD = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
TMA_STORE = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


def gluon_tma():
    x, out = normal(64, 32), as_tensor(np.zeros((64, 32), np.float32))
    layout = gl.NVMMASharedLayout.get_default_for([32, 32], gl.float32)
    in_desc, out_desc = (GluonDescriptor.from_tensor(y, [32, 32], layout) for y in (x, out))
    tma_kernel[(2,)](in_desc, out_desc, BLOCK=32)
    check("gluon_tma", out, x + 1)


@gluon.jit
def wgmma_kernel(a_desc, b_desc, d_ptr, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    a = gl.allocate_shared_memory(a_desc.dtype, [M, K], a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [K, N], b_desc.layout)
    mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
    TMA_LOAD(a_desc, [0, 0], bar, a)
    TMA_LOAD(b_desc, [0, 0], bar, b)
    mbarrier.wait(bar, phase=0)
    mbarrier.invalidate(bar)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    total = gl.zeros([M, N], dtype=gl.float32, layout=layout)
    total = warpgroup_mma(a, b, total, is_async=True)
    total = warpgroup_mma_wait(num_outstanding=0, deps=(total,))
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    gl.store(d_ptr + i[:, None] * N + j[None, :], total)


def gluon_wgmma():
    m, n, k = 64, 32, 64
    a, b = normal(m, k, dtype=np.float16), normal(k, n, dtype=np.float16)
    d = np.empty((m, n), np.float32)
    a_desc, b_desc = (
        GluonDescriptor.from_tensor(x, list(x.shape), gl.NVMMASharedLayout.get_default_for(list(x.shape), gl.float16))
        for x in (a, b)
    )
    wgmma_kernel[(1,)](a_desc, b_desc, d, M=m, N=n, K=k)
    check("gluon_wgmma", d, np.float32(a) @ np.float32(b), 1e-2)


# What kernels print.


@triton.jit
def print_kernel(x_ptr):
    tl.device_print("value", tl.load(x_ptr))


def prints():
    value = np.array([42], np.int32)
    print_kernel[(1,)](value, num_warps=1)


KERNELS = (
    vector_add, softmax, matmul, layer_norm, gradients, attention, persistent,
    gluon_copy, gluon_layouts, gluon_async_copy, gluon_tma, gluon_wgmma, prints,
)  # fmt: skip

if __name__ == "__main__":
    wanted = sys.argv[1:] or [kernel.__name__ for kernel in KERNELS]
    for kernel in KERNELS:
        if kernel.__name__ in wanted:
            kernel()
            print("passed", kernel.__name__, flush=True)
