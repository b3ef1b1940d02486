// Loops that carry values and branches become blocks; the loop is not unrolled.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// CHECK: .visible .entry sum_of_positive(
// CHECK: [[LOOP:\$L__BB0_[0-9]+]]:
// CHECK-COUNT-1: ld.global.b32
// CHECK-NOT: ld.global.b32
// CHECK: bra [[LOOP]];
// CHECK: st.global.b32
gpu.module @foreign {
  gpu.func @sum_of_positive(%x: memref<?xf32, 1>, %n: index,
                            %out: memref<1xf32, 1>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %nothing = arith.constant 0.0 : f32
    %sum = scf.for %i = %zero to %n step %one iter_args(%s = %nothing) -> f32 {
      %element = memref.load %x[%i] : memref<?xf32, 1>
      %positive = arith.cmpf ogt, %element, %nothing : f32
      %next = scf.if %positive -> f32 {
        %more = arith.addf %s, %element : f32
        scf.yield %more : f32
      } else {
        scf.yield %s : f32
      }
      scf.yield %next : f32
    }
    memref.store %sum, %out[%zero] : memref<1xf32, 1>
    gpu.return
  }
}
