// Two boxes of a matrix are loaded by TMA; the second one hangs over its edge,
// and reads zeros there.
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x16xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
memref.global "private" @tile : memref<2x8x16xf32, 3> {alignment = 128 : i64}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %host = memref.alloc() : memref<12x32xf32>
  scf.for %i = %c0 to %c12 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %row = arith.muli %i, %c32 : index
      %at = arith.addi %row, %j : index
      %n = arith.index_cast %at : index to i32
      %f = arith.sitofp %n : i32 to f32
      memref.store %f, %host[%i, %j] : memref<12x32xf32>
    }
  }
  %out = memref.alloc() : memref<2x8x16xf32>
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] () : memref<12x32xf32>
  %y, %t2 = gpu.alloc async [%t1] () : memref<2x8x16xf32>
  %t3 = gpu.memcpy async [%t2] %x, %host : memref<12x32xf32>, memref<12x32xf32>
  gpu.wait [%t3]
  %ranked = memref.cast %x : memref<12x32xf32> to memref<*xf32>
  %map = nvgpu.tma.create.descriptor %ranked box[%c8, %c16] : memref<*xf32> -> !map
  %s0 = gpu.wait async
  %s1 = gpu.launch async [%s0] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 1024 : index
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %isFirst = arith.cmpi eq, %tx, %c0 : index
    %tile = memref.get_global @tile : memref<2x8x16xf32, 3>
    %first = memref.subview %tile[0, 0, 0] [1, 8, 16] [1, 1, 1] : memref<2x8x16xf32, 3> to memref<8x16xf32, strided<[16, 1]>, 3>
    %second = memref.subview %tile[1, 0, 0] [1, 8, 16] [1, 1, 1] : memref<2x8x16xf32, 3> to memref<8x16xf32, strided<[16, 1], offset: 128>, 3>
    %barrier = nvgpu.mbarrier.create -> !group
    nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %isFirst : !group
    nvvm.fence.mbarrier.init
    gpu.barrier
    nvgpu.tma.prefetch.descriptor %map, predicate = %isFirst : !map
    nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes, predicate = %isFirst : !group
    nvgpu.tma.async.load %map[%c0, %c0], %barrier[%c0] to %first, predicate = %isFirst : !map, !group -> memref<8x16xf32, strided<[16, 1]>, 3>
    nvgpu.tma.async.load %map[%c16, %c8], %barrier[%c0] to %second, predicate = %isFirst : !map, !group -> memref<8x16xf32, strided<[16, 1], offset: 128>, 3>
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !group
    %c2 = arith.constant 2 : index
    scf.for %b = %c0 to %c2 step %c1 {
      scf.for %i = %c0 to %c8 step %c1 {
        %v = memref.load %tile[%b, %i, %tx] : memref<2x8x16xf32, 3>
        memref.store %v, %y[%b, %i, %tx] : memref<2x8x16xf32>
      }
    }
    gpu.terminator
  }
  %s2 = gpu.memcpy async [%s1] %out, %y : memref<2x8x16xf32>, memref<2x8x16xf32>
  gpu.wait [%s2]
  %u = memref.cast %out : memref<2x8x16xf32> to memref<*xf32>
  // CHECK: {{\[\[\[}}0,    1,    2,
  // CHECK-NEXT: [32,    33,
  // CHECK: [224,
  // CHECK-NEXT: {{\[\[}}272,    273,
  // CHECK: [368,
  // CHECK-NEXT: [0,    0,    0,
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
