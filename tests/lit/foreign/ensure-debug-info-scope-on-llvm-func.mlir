// The lines of a file somebody wrote reach PTX, without a debug target.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

gpu.module @foreign {
  gpu.func @store(%x: memref<8xf32, 1>, %value: f32) kernel {
    %i = gpu.thread_id x
    // CHECK: .target sm_90{{$}}
    // CHECK: .visible .entry store(
    // CHECK: .loc [[FILE:[0-9]+]] [[#@LINE+2]] 5
    // CHECK: st.global.b32
    memref.store %value, %x[%i] : memref<8xf32, 1>
    gpu.return
  }
}
// CHECK: .file [[FILE]] "{{.*}}ensure-debug-info-scope-on-llvm-func.mlir"
