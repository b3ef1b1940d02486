# Triton kernels of the corpus, compiled for sm_90 without a GPU: a product and
# a softmax. Writes triton_matmul.ptx and triton_softmax.ptx beside this file.
import pathlib

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    """c[m][n] = a[m][k] * b[k][n], row-major; edges are masked."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    at = a + rows[:, None] * k + inner[None, :]
    bt = b + inner[:, None] * n + columns[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        left = k - step * BK
        x = tl.load(at, mask=(rows[:, None] < m) & (inner[None, :] < left),
                    other=0.0)
        y = tl.load(bt, mask=(inner[:, None] < left) & (columns[None, :] < n),
                    other=0.0)
        sums = tl.dot(x, y, sums)
        at += BK
        bt += BK * n
    place = c + rows[:, None] * n + columns[None, :]
    tl.store(place, sums.to(tl.float16),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def softmax(out, x, pitch, columns, BLOCK: tl.constexpr):
    """One row per program."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * pitch + at, mask=at < columns,
                     other=-float("inf"))
    values = values - tl.max(values, axis=0)
    powers = tl.exp(values)
    tl.store(out + row * pitch + at, powers / tl.sum(powers, axis=0),
             mask=at < columns)


def compile(kernel, signature, constants, attrs, **options):
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants,
                       attrs=attrs)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32),
                              options=options)
    ptx = compiled.asm["ptx"]
    path = pathlib.Path(__file__).with_name(f"triton_{kernel.__name__}.ptx")
    # Without the debugger's sections and the paths of this machine.
    lines = []
    for line in ptx.split("\n"):
        if line.strip().startswith(".section"):
            break
        if not line.strip().startswith((".loc", ".file")):
            lines.append(line)
    path.write_text("\n".join(lines).rstrip() + "\n")
    print(path.name, "shared", compiled.metadata.shared, "warps",
          compiled.metadata.num_warps)


if __name__ == "__main__":
    sixteen = [["tt.divisibility", 16]]
    compile(matmul,
            {"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32",
             "k": "i32", "BM": "constexpr", "BN": "constexpr",
             "BK": "constexpr"},
            {(6,): 64, (7,): 64, (8,): 32},
            {(i,): sixteen for i in range(6)}, num_warps=4, num_stages=3)
    compile(softmax,
            {"out": "*fp32", "x": "*fp32", "pitch": "i32", "columns": "i32",
             "BLOCK": "constexpr"},
            {(4,): 256}, {(0,): sixteen, (1,): sixteen}, num_warps=4)
