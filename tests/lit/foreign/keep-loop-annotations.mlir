// What a loop says about its unrolling is still said by its branch, and by the
// PTX.
// RUN: %kiln emit %s --target sm_90 --ir nvvm | FileCheck %s
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s --check-prefix=PTX

// CHECK: llvm.br {{.*}}loop_annotation = #
// CHECK-NOT: llvm.loop_annotation =
// PTX: .pragma "nounroll";
gpu.module @foreign {
  gpu.func @count(%x: memref<8xi32, 1>, %n: index) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %value = arith.constant 7 : i32
    scf.for %i = %zero to %n step %one {
      %old = memref.atomic_rmw addi %value, %x[%i]
        : (i32, memref<8xi32, 1>) -> i32
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
    gpu.return
  }
}
