// Casts between index and i64 that cancel disappear; one that means nothing is
// refused with its line.
// RUN: split-file %s %t
// RUN: %kiln emit %t/cancels.mlir --target sm_90 --ir nvvm | FileCheck %s
// RUN: %refused emit %t/stays.mlir --ir ptx | FileCheck %s --check-prefix=STAYS

// CHECK-NOT: unrealized_conversion_cast
// CHECK: llvm.store %[[INDEX:[a-z0-9]+]], %{{.*}} : i64, !llvm.ptr<1>

//--- cancels.mlir
gpu.module @foreign {
  gpu.func @copy(%x: memref<8xi64, 1>, %i: index) kernel {
    %bits = builtin.unrealized_conversion_cast %i : index to i64
    memref.store %bits, %x[%i] : memref<8xi64, 1>
    gpu.return
  }
}

//--- stays.mlir
// STAYS: kiln: error: {{.*}}stays.mlir:5: the module cannot be
// STAYS: stays.mlir:5: {{.*}}unrealized_conversion_cast
gpu.module @foreign {
  llvm.func @bad(%x: f32) attributes {nvvm.kernel} {
    %bits = builtin.unrealized_conversion_cast %x : f32 to i32
    llvm.inline_asm has_side_effects "// $0", "r" %bits : (i32) -> ()
    llvm.return
  }
}
