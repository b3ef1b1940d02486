// Accesses have the alignment of the target: eight bytes are not split in two.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// CHECK: .visible .entry copy(
// CHECK: ld.global.b64
// CHECK: st.global.b64
gpu.module @foreign {
  gpu.func @copy(%x: memref<8xi64, 1>, %y: memref<8xi64, 1>) kernel {
    %i = gpu.thread_id x
    %element = memref.load %x[%i] : memref<8xi64, 1>
    memref.store %element, %y[%i] : memref<8xi64, 1>
    gpu.return
  }
}
