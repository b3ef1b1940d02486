// Affine loops, maps and accesses become arithmetic and branches.
// RUN: %kiln emit %s --target sm_90 --ir nvvm | FileCheck %s --check-prefix=NVVM
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// NVVM-NOT: {{ }}affine.
// NVVM: llvm.cond_br

// CHECK: .visible .entry scale(
// CHECK: [[LOOP:\$L__BB0_[0-9]+]]:
// CHECK: mul.rn.f32
// CHECK: bra [[LOOP]];
#twice = affine_map<(d0) -> (d0 * 2 + 1)>
gpu.module @foreign {
  gpu.func @scale(%x: memref<256xf32, 1>, %by: f32) kernel {
    affine.for %i = 0 to 100 {
      %at = affine.apply #twice(%i)
      %old = affine.load %x[%at] : memref<256xf32, 1>
      %new = arith.mulf %old, %by : f32
      affine.store %new, %x[%at] : memref<256xf32, 1>
    }
    gpu.return
  }
}
