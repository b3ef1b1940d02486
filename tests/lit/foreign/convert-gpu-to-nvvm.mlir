// The gpu dialect becomes special registers, barriers, shuffles and vprintf,
// beside arith, cf, index and memref in the same conversion.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// CHECK: .target sm_90{{$}}
// CHECK: .extern .func{{.*}}vprintf
// CHECK: .visible .entry everything(
// CHECK-DAG: %ntid.x;
// CHECK-DAG: %ctaid.x;
// CHECK: bar{{(rier)?}}.sync 0;
// CHECK: shfl.sync.bfly.b32
// CHECK: add.rn.f32
// CHECK: vprintf,
gpu.module @foreign {
  gpu.func @everything(%x: memref<?xf32, 1>) kernel {
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %threads = gpu.block_dim x
    %start = index.mul %block, %threads
    %i = index.add %start, %thread
    %mine = memref.load %x[%i] : memref<?xf32, 1>
    gpu.barrier
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %other, %valid = gpu.shuffle xor %mine, %one, %width : f32
    %sum = arith.addf %mine, %other : f32
    cf.cond_br %valid, ^store, ^end
  ^store:
    memref.store %sum, %x[%i] : memref<?xf32, 1>
    gpu.printf "thread %d\n", %thread : index
    cf.br ^end
  ^end:
    gpu.return
  }
}
