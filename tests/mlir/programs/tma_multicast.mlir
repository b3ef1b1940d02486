// One CTA of a cluster loads a box for both.
!map = !nvgpu.tensormap.descriptor<tensor = memref<4x8xi32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
memref.global "private" @tile : memref<4x8xi32, 3> {alignment = 128 : i64}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %x = gpu.alloc host_shared () : memref<4x8xi32>
  %y = gpu.alloc host_shared () : memref<2x8xi32>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %row = arith.muli %i, %c8 : index
      %at = arith.addi %row, %j : index
      %n = arith.index_cast %at : index to i32
      memref.store %n, %x[%i, %j] : memref<4x8xi32>
    }
  }
  %ranked = memref.cast %x : memref<4x8xi32> to memref<*xi32>
  %map = nvgpu.tma.create.descriptor %ranked box[%c4, %c8] : memref<*xi32> -> !map
  gpu.launch clusters(%cx, %cy, %cz) in (%csx = %c2, %csy = %c1, %csz = %c1)
      blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 128 : index
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %both = arith.constant 3 : i16
    %tile = memref.get_global @tile : memref<4x8xi32, 3>
    %isFirst = arith.cmpi eq, %tx, %c0 : index
    %isLeader = arith.cmpi eq, %bx, %c0 : index
    %loads = arith.andi %isFirst, %isLeader : i1
    %barrier = nvgpu.mbarrier.create -> !group
    nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %isFirst : !group
    nvvm.fence.mbarrier.init
    nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes, predicate = %isFirst : !group
    nvvm.cluster.arrive
    nvvm.cluster.wait
    nvgpu.tma.async.load %map[%c0, %c0], %barrier[%c0] to %tile multicast_mask = %both, predicate = %loads : !map, !group -> memref<4x8xi32, 3>
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !group
    %three = arith.constant 3 : index
    %v = memref.load %tile[%three, %tx] : memref<4x8xi32, 3>
    memref.store %v, %y[%bx, %tx] : memref<2x8xi32>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.terminator
  }
  %u = memref.cast %y : memref<2x8xi32> to memref<*xi32>
  // CHECK: {{\[\[}}24,   25,   26,   27,   28,   29,   30,   31],
  // CHECK-NEXT: [24,   25,   26,   27,   28,   29,   30,   31]]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
