// Transfers of whole rows become vector accesses of the memory they lie in.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// CHECK: .visible .entry add_rows(
// CHECK: add.rn.f32
// CHECK: st.global
gpu.module @foreign {
  gpu.func @add_rows(%x: memref<64x4xf32, 1>, %y: memref<64x4xf32, 1>) kernel {
    %zero = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %row = gpu.thread_id x
    %a = vector.transfer_read %x[%row, %zero], %pad {in_bounds = [true, true]}
      : memref<64x4xf32, 1>, vector<2x4xf32>
    %b = vector.transfer_read %y[%row, %zero], %pad {in_bounds = [true, true]}
      : memref<64x4xf32, 1>, vector<2x4xf32>
    %sum = arith.addf %a, %b : vector<2x4xf32>
    vector.transfer_write %sum, %y[%row, %zero] {in_bounds = [true, true]}
      : vector<2x4xf32>, memref<64x4xf32, 1>
    gpu.return
  }
}
