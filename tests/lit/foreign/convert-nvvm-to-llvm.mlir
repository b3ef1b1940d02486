// nvvm operations that LLVM has no intrinsic for become their PTX.
// RUN: %kiln emit %s --ir nvvm | FileCheck %s --check-prefix=NVVM
// RUN: %kiln emit %s --ir ptx | FileCheck %s

// NVVM-NOT: {{ }}nvvm.mbarrier
// NVVM: llvm.inline_asm has_side_effects {{.*}}mbarrier.try_wait.parity.shared

// CHECK: .target sm_90a
// CHECK: .visible .entry wait(
// CHECK: // begin inline asm
// CHECK: mbarrier.try_wait.parity.shared.b64 [[DONE:[A-Z0-9]+]], [%{{r[0-9]+}}], %{{r[0-9]+}}, 1000000;
// CHECK-NEXT: @[[DONE]] bra
gpu.module @foreign {
  llvm.func @wait(%barrier: !llvm.ptr<3>, %phase: i32)
      attributes {nvvm.kernel} {
    %ticks = llvm.mlir.constant(1000000 : i32) : i32
    nvvm.mbarrier.try_wait.parity %barrier, %phase, %ticks
      : !llvm.ptr<3>, i32, i32
    llvm.return
  }
}
