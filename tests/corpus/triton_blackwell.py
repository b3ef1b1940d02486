# Triton and Gluon kernels of the corpus for sm_100a, compiled without a GPU:
# products by tcgen05, with block scales, of two CTAs, and attention. Writes
# triton_sm100_*.ptx beside this file.
import pathlib

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout, allocate_tensor_memory, cluster, fence_async_shared,
    mbarrier, tcgen05_mma)


@triton.jit
def matmul(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    """c[m][n] = a[m][k] * b[k][n], row-major, of whole tiles."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, k, BK):
        x = tl.load(a + rows[:, None] * k + (step + inner)[None, :])
        y = tl.load(b + (step + inner)[:, None] * n + columns[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def scaled(a, b, scales_a, scales_b, c, n, k, BM: tl.constexpr,
           BN: tl.constexpr, BK: tl.constexpr, FORMAT: tl.constexpr,
           BLOCK: tl.constexpr):
    """The same of a[m][k] and b[n][k] with a scale for each BLOCK of k."""
    PACKED: tl.constexpr = 2 if FORMAT == "e2m1" else 1
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK // PACKED)
    blocks = tl.arange(0, BK // BLOCK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, k, BK):
        at = step // PACKED + inner
        x = tl.load(a + rows[:, None] * (k // PACKED) + at[None, :])
        y = tl.load(b + columns[None, :] * (k // PACKED) + at[:, None])
        at = step // BLOCK + blocks
        u = tl.load(scales_a + rows[:, None] * (k // BLOCK) + at[None, :])
        v = tl.load(scales_b + columns[:, None] * (k // BLOCK) + at[None, :])
        sums = tl.dot_scaled(x, u, FORMAT, y, v, FORMAT, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def attention(q, k, v, o, n, scale, BM: tl.constexpr, BN: tl.constexpr,
              D: tl.constexpr):
    """One head: o = softmax(q k^T scale) v, with p in tensor memory."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    keys = tl.arange(0, BN)
    x = tl.load(q + rows[:, None] * D + inner[None, :])
    sums = tl.zeros((BM, D), dtype=tl.float32)
    largest = tl.full((BM, ), -1e30, tl.float32)
    total = tl.zeros((BM, ), tl.float32)
    for step in range(0, n, BN):
        y = tl.load(k + (step + keys)[None, :] * D + inner[:, None])
        s = tl.dot(x, y) * scale
        now = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        shrink = tl.exp(largest - now)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + (step + keys)[:, None] * D + inner[None, :])
        sums = tl.dot(p.to(tl.float16), z, sums * shrink[:, None])
        largest = now
    tl.store(o + rows[:, None] * D + inner[None, :], sums / total[:, None])


@gluon.jit
def pair(a, b, c, n, k, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    """The product of halves; two CTAs make a tile of BM by BN together."""
    la: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0],
                                        cga_layout=[[1, 0]])
    lb: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0],
                                        cga_layout=[[0, 1]])
    sa: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2, cga_layout=[[1, 0]])
    sb: gl.constexpr = gl.NVMMASharedLayout(64, 16, 2, cga_layout=[[0, 1]])
    ld: gl.constexpr = TensorMemoryLayout([128, BN], col_stride=1,
                                          cga_layout=[[1, 0]], two_ctas=True)
    lc: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0],
                                        cga_layout=[[1, 0]])
    x = gl.allocate_shared_memory(gl.float16, [BM, BK], sa)
    y = gl.allocate_shared_memory(gl.float16, [BK, BN], sb)
    sums = allocate_tensor_memory(gl.float32, [BM, BN], ld)
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)
    rows = gl.program_id(1) * BM + gl.arange(0, BM, gl.SliceLayout(1, la))
    ka = gl.arange(0, BK, gl.SliceLayout(0, la))
    kb = gl.arange(0, BK, gl.SliceLayout(1, lb))
    columns = gl.program_id(0) * BN + gl.arange(0, BN, gl.SliceLayout(0, lb))
    phase = 0
    for step in range(0, k, BK):
        x.store(gl.load(a + rows[:, None] * k + (step + ka)[None, :]))
        y.store(gl.load(b + (step + kb)[:, None] * n + columns[None, :]))
        fence_async_shared(cluster=True)
        cluster.barrier()
        tcgen05_mma(x, y, sums, use_acc=(step != 0), mbarriers=[done])
        mbarrier.wait(done, phase)
        phase ^= 1
    out = gl.convert_layout(sums.load(), lc)
    rm = gl.program_id(1) * BM + gl.arange(0, BM, gl.SliceLayout(1, lc))
    rn = gl.program_id(0) * BN + gl.arange(0, BN, gl.SliceLayout(0, lc))
    gl.store(c + rm[:, None] * n + rn[None, :], out)


def compile(kernel, signature, constants, source=ASTSource, **options):
    """Names and types of the parameters; those of `constants` are constexpr."""
    names = kernel.arg_names
    types = signature.split() + ["constexpr"] * len(constants)
    return triton.compile(
        source(fn=kernel, signature=dict(zip(names, types)),
               constexprs=constants),
        target=GPUTarget("cuda", 100, 32), options=options)


def kernels():
    """By name."""
    tile = dict(BM=128, BN=64, BK=64)
    product = "{0} {0} *fp32 i32 i32"
    wide = dict(BM=128, BN=64, BK=128)
    blocks = "{0} {0} {1} {1} *fp32 i32 i32"
    return {
        "f16": lambda: compile(matmul, product.format("*fp16"), tile,
                               num_stages=1),
        "tf32": lambda: compile(matmul, product.format("*fp32"),
                                dict(tile, BK=32), num_stages=1),
        "e4m3": lambda: compile(matmul, product.format("*fp8e4nv"), tile,
                                num_stages=1),
        "mxf8": lambda: compile(scaled, blocks.format("*fp8e4nv", "*u8"),
                                dict(wide, FORMAT="e4m3", BLOCK=32),
                                num_stages=1),
        "mxf4": lambda: compile(scaled, blocks.format("*u8", "*u8"),
                                dict(wide, FORMAT="e2m1", BLOCK=32),
                                num_stages=1),
        "nvf4": lambda: compile(scaled, blocks.format("*u8", "*fp8e4nv"),
                                dict(wide, FORMAT="e2m1", BLOCK=16),
                                num_stages=1),
        "attention": lambda: compile(attention,
                                     "*fp16 *fp16 *fp16 *fp32 i32 fp32",
                                     dict(BM=128, BN=32, D=32), num_stages=1),
        "pair": lambda: compile(pair, product.format("*fp16"),
                                dict(BM=256, BN=64, BK=64), GluonASTSource,
                                num_ctas=2),
    }


if __name__ == "__main__":
    for name, make in kernels().items():
        compiled = make()
        path = pathlib.Path(__file__).with_name(f"triton_sm100_{name}.ptx")
        # Without the debugger's sections and the paths of this machine.
        lines = []
        for line in compiled.asm["ptx"].split("\n"):
            if line.strip().startswith(".section"):
                break
            if not line.strip().startswith((".loc", ".file", "//", "$L__tmp",
                                            "$L__func")):
                lines.append(line.split("//")[0].rstrip())
        text = "\n".join(line for line in lines if line)
        path.write_text(text.rstrip() + "\n")
        print(path.name, "shared", compiled.metadata.shared, "warps",
              compiled.metadata.num_warps, "bytes", len(text))
