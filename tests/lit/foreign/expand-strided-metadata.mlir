// A subview becomes arithmetic on the address: row tid * 128 * 4 bytes.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// CHECK: .visible .entry fill_corner(
// CHECK: mov.u32 [[TID:%r[0-9]+]], %tid.x;
// CHECK: shl.b32 [[ROW:%r[0-9]+]], [[TID]], 7;
// CHECK: mul.wide.u32 [[OFFSET:%rd[0-9]+]], [[ROW]], 4;
// CHECK: add.s64 [[AT:%rd[0-9]+]], %{{rd[0-9]+}}, [[OFFSET]];
// CHECK: st.global.b32 [[[AT]]+16],
!corner = memref<1x4xf32, strided<[128, 1], offset: ?>, 1>
gpu.module @foreign {
  gpu.func @fill_corner(%x: memref<64x128xf32, 1>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %row = gpu.thread_id x
    %corner = memref.subview %x[%row, 4] [1, 4] [1, 1]
      : memref<64x128xf32, 1> to !corner
    memref.store %one, %corner[%zero, %zero] : !corner
    gpu.return
  }
}
