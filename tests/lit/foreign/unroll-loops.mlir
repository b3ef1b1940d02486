// A loop that asks for copies of its body gets them, also around assembly and
// with a number of turns nobody knows.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// CHECK-COUNT-3: red.global.add.u32
// CHECK-NOT: red.global.add.u32
// CHECK: }
gpu.module @foreign {
  gpu.func @count(%x: memref<8xi32, 1>, %n: index) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %value = arith.constant 7 : i32
    scf.for %i = %zero to %n step %one {
      llvm.inline_asm has_side_effects "red.global.add.u32 [0], $0;", "r" %value
        : (i32) -> ()
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <count = 2 : i32>>}
    gpu.return
  }
}
