// A tile that threads wrote goes to global memory by TMA.
!map = !nvgpu.tensormap.descriptor<tensor = memref<4x8xi32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
memref.global "private" @tile : memref<4x8xi32, 3> {alignment = 128 : i64}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i32
  %x = gpu.alloc host_shared () : memref<8x8xi32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      memref.store %zero, %x[%i, %j] : memref<8x8xi32>
    }
  }
  %ranked = memref.cast %x : memref<8x8xi32> to memref<*xi32>
  %map = nvgpu.tma.create.descriptor %ranked box[%c4, %c8] : memref<*xi32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c4, %sz = %c1) {
    %tile = memref.get_global @tile : memref<4x8xi32, 3>
    %row = arith.muli %ty, %c8 : index
    %at = arith.addi %row, %tx : index
    %n = arith.index_cast %at : index to i32
    memref.store %n, %tile[%ty, %tx] : memref<4x8xi32, 3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    %isFirst = arith.cmpi eq, %at, %c0 : index
    nvgpu.tma.async.store %tile to %map[%c0, %c4], predicate = %isFirst : memref<4x8xi32, 3> -> !map
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.terminator
  }
  %u = memref.cast %x : memref<8x8xi32> to memref<*xi32>
  // CHECK: {{\[\[}}0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK: [0,   1,   2,   3,   4,   5,   6,   7],
  // CHECK: [24,   25,   26,   27,   28,   29,   30,   31]]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
