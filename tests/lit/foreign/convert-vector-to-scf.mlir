// A transfer across rows becomes a loop over elements.
// RUN: %kiln emit %s --target sm_90 --ir nvvm | FileCheck %s --check-prefix=NVVM
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// NVVM-NOT: {{ }}vector.
// NVVM: llvm.cond_br

// CHECK: .visible .entry column(
// CHECK: [[LOOP:\$L__BB0_[0-9]+]]:
// CHECK: ld.global.b32
// CHECK: bra [[LOOP]];
// CHECK-COUNT-4: st.global.b32
gpu.module @foreign {
  gpu.func @column(%x: memref<64x8xf32, 1>, %y: memref<8x64xf32, 1>) kernel {
    %zero = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %column = gpu.thread_id x
    %elements = vector.transfer_read %x[%zero, %column], %pad
      {in_bounds = [true], permutation_map = affine_map<(r, c) -> (r)>}
      : memref<64x8xf32, 1>, vector<4xf32>
    vector.store %elements, %y[%column, %zero]
      : memref<8x64xf32, 1>, vector<4xf32>
    gpu.return
  }
}
