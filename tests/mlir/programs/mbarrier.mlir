// Threads of two warps hand a number over an mbarrier.
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!token = !nvgpu.mbarrier.token
memref.global "private" @word : memref<64xi32, 3>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %x = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %word = memref.get_global @word : memref<64xi32, 3>
    %isFirst = arith.cmpi eq, %tx, %c0 : index
    %barrier = nvgpu.mbarrier.create -> !group
    nvgpu.mbarrier.init %barrier[%c0], %c64, predicate = %isFirst : !group
    gpu.barrier
    %n = arith.index_cast %tx : index to i32
    memref.store %n, %word[%tx] : memref<64xi32, 3>
    %token = nvgpu.mbarrier.arrive %barrier[%c0] : !group -> !token
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !group
    %from = arith.subi %c63, %tx : index
    %v = memref.load %word[%from] : memref<64xi32, 3>
    memref.store %v, %x[%tx] : memref<64xi32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<64xi32> to memref<*xi32>
  // CHECK: [63,  62,
  // CHECK-SAME: 1,  0]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
