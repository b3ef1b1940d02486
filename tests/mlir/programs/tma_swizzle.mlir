// A tile of 128-byte rows is swizzled in shared memory: chunk c of row r lies at
// c xor r.
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
memref.global "private" @tile : memref<8x64xf16, 3> {alignment = 1024 : i64}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %x = gpu.alloc host_shared () : memref<8x64xf16>
  %y = gpu.alloc host_shared () : memref<8x8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %chunk = arith.divui %j, %c8 : index
      %n = arith.index_cast %chunk : index to i32
      %f = arith.sitofp %n : i32 to f16
      memref.store %f, %x[%i, %j] : memref<8x64xf16>
    }
  }
  %ranked = memref.cast %x : memref<8x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %ranked box[%c8, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 1024 : index
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %isFirst = arith.cmpi eq, %tx, %c0 : index
    %tile = memref.get_global @tile : memref<8x64xf16, 3>
    %barrier = nvgpu.mbarrier.create -> !group
    nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %isFirst : !group
    nvvm.fence.mbarrier.init
    gpu.barrier
    nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes, predicate = %isFirst : !group
    nvgpu.tma.async.load %map[%c0, %c0], %barrier[%c0] to %tile, predicate = %isFirst : !map, !group -> memref<8x64xf16, 3>
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !group
    scf.for %chunk = %c0 to %c8 step %c1 {
      %at = arith.muli %chunk, %c8 : index
      %v = memref.load %tile[%tx, %at] : memref<8x64xf16, 3>
      %f = arith.extf %v : f16 to f32
      memref.store %f, %y[%tx, %chunk] : memref<8x8xf32>
    }
    gpu.terminator
  }
  %u = memref.cast %y : memref<8x8xf32> to memref<*xf32>
  // CHECK: {{\[\[}}0,   1,   2,   3,   4,   5,   6,   7],
  // CHECK-NEXT: [1,   0,   3,   2,   5,   4,   7,   6],
  // CHECK-NEXT: [2,   3,   0,   1,   6,   7,   4,   5],
  // CHECK: [7,   6,   5,   4,   3,   2,   1,   0]]
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
