# A product of TileLang for sm_100a, compiled without a GPU by way of nvcc.
# Writes tilelang_sm100.ptx beside this file.
import pathlib
import subprocess

import tilelang
import tilelang.language as T
from tilelang import tvm

M, N, K = 256, 256, 192
BM, BN, BK, SLOTS = 128, 128, 64, 2


@T.prim_func
def product(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"),
            C: T.Tensor((M, N), "float16")):
    """C = A B^T: a warp loads, a warp multiplies, a warpgroup stores."""
    with T.Kernel(N // BN, M // BM, threads=256) as (bx, by):
        a = T.alloc_shared((SLOTS, BM, BK), "float16")
        b = T.alloc_shared((SLOTS, BN, BK), "float16")
        sums = T.alloc_tmem([BM, BN], "float32")
        tile = T.alloc_fragment((BM, BN), "float32")
        half = T.alloc_shared((BM, BN), "float16")
        full = T.alloc_barrier([32] * SLOTS)
        free = T.alloc_barrier([1] * SLOTS)
        done = T.alloc_barrier([1])
        thread = T.get_thread_binding()
        if thread < 32:
            for k in T.serial(K // BK):
                T.mbarrier_wait_parity(free[k % SLOTS], ((k // SLOTS) & 1) ^ 1)
                T.tma_copy(A[by * BM:(by + 1) * BM, k * BK:(k + 1) * BK],
                           a[k % SLOTS, :, :], barrier=full[k % SLOTS])
                T.tma_copy(B[bx * BN:(bx + 1) * BN, k * BK:(k + 1) * BK],
                           b[k % SLOTS, :, :], barrier=full[k % SLOTS])
                T.mbarrier_arrive(full[k % SLOTS])
        elif thread < 64:
            for k in T.serial(K // BK):
                T.mbarrier_wait_parity(full[k % SLOTS], (k // SLOTS) & 1)
                T.tcgen05_gemm(a[k % SLOTS, :, :], b[k % SLOTS, :, :], sums,
                               transpose_B=True, mbar=free[k % SLOTS],
                               clear_accum=k == 0)
            T.tcgen05_mma_arrive(done)
        T.mbarrier_wait_parity(done, 0)
        T.sync_threads()
        if thread >= 128:
            T.copy(sums, tile)
            T.copy(tile, half)
            T.copy(half, C[by * BM, bx * BN])
        T.sync_threads()


here = pathlib.Path(__file__).parent
target = tvm.target.Target({"kind": "cuda", "arch": "sm_100a"})
with target:
    source = tilelang.lower(product, target=target).kernel_source
package = pathlib.Path(tilelang.__file__).parent
subprocess.run([
    "nvcc", "-ptx", "-w", "-x", "cu", "-arch=sm_100a", "-std=c++17",
    "--expt-relaxed-constexpr", f"-I{package}/src",
    f"-I{package}/3rdparty/cutlass/include", "-o", here / "tilelang_sm100.ptx",
    "-"
], input=source, text=True, check=True)
