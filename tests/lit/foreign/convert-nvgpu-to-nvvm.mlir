// nvgpu operations become nvvm ones: barriers of their own in shared memory.
// RUN: %kiln emit %s --target sm_90 --ir ptx | FileCheck %s

// CHECK: .visible .entry barriers(
// CHECK: .shared .align 8 .b8 [[BARRIERS:[a-zA-Z0-9_]+]][16];
// CHECK: mbarrier.init.shared.b64 [[[BARRIERS]]], %{{r[0-9]+}};
// CHECK: bar.sync 0;
// CHECK: mbarrier.arrive.shared.b64 %{{rd[0-9]+}}, [[[BARRIERS]]];
// CHECK: mbarrier.try_wait.parity.shared
!barriers = !nvgpu.mbarrier.group<
  memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!token = !nvgpu.mbarrier.token
gpu.module @foreign {
  gpu.func @barriers() kernel {
    %zero = arith.constant 0 : index
    %count = arith.constant 128 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant false
    %barriers = nvgpu.mbarrier.create -> !barriers
    nvgpu.mbarrier.init %barriers[%zero], %count : !barriers
    gpu.barrier
    %token = nvgpu.mbarrier.arrive %barriers[%zero] : !barriers -> !token
    nvgpu.mbarrier.try_wait.parity %barriers[%zero], %phase, %ticks : !barriers
    gpu.return
  }
}
