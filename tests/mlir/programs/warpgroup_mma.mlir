// One product of a warpgroup, 64 x 64 over 64, stored straight from registers.
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!desc = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>
!acc = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
memref.global "private" @tile_a : memref<64x64xf16, 3> {alignment = 1024 : i64}
memref.global "private" @tile_b : memref<64x64xf16, 3> {alignment = 1024 : i64}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %a = gpu.alloc host_shared () : memref<64x64xf16>
  %b = gpu.alloc host_shared () : memref<64x64xf16>
  %d = gpu.alloc host_shared () : memref<64x64xf32>
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %x = arith.muli %i, %c3 : index
      %s = arith.addi %x, %j : index
      %m = arith.remui %s, %c7 : index
      %n = arith.index_cast %m : index to i32
      %f = arith.sitofp %n : i32 to f16
      memref.store %f, %a[%i, %j] : memref<64x64xf16>
      %y = arith.muli %j, %c5 : index
      %t = arith.addi %y, %i : index
      %o = arith.remui %t, %c5 : index
      %p = arith.index_cast %o : index to i32
      %g = arith.sitofp %p : i32 to f16
      memref.store %g, %b[%i, %j] : memref<64x64xf16>
    }
  }
  %ranked_a = memref.cast %a : memref<64x64xf16> to memref<*xf16>
  %ranked_b = memref.cast %b : memref<64x64xf16> to memref<*xf16>
  %map_a = nvgpu.tma.create.descriptor %ranked_a box[%c64, %c64] : memref<*xf16> -> !map
  %map_b = nvgpu.tma.create.descriptor %ranked_b box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 16384 : index
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %isFirst = arith.cmpi eq, %tx, %c0 : index
    %ta = memref.get_global @tile_a : memref<64x64xf16, 3>
    %tb = memref.get_global @tile_b : memref<64x64xf16, 3>
    %barrier = nvgpu.mbarrier.create -> !group
    nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %isFirst : !group
    nvvm.fence.mbarrier.init
    gpu.barrier
    nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes, predicate = %isFirst : !group
    nvgpu.tma.async.load %map_a[%c0, %c0], %barrier[%c0] to %ta, predicate = %isFirst : !map, !group -> memref<64x64xf16, 3>
    nvgpu.tma.async.load %map_b[%c0, %c0], %barrier[%c0] to %tb, predicate = %isFirst : !map, !group -> memref<64x64xf16, 3>
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !group
    %da = nvgpu.warpgroup.generate.descriptor %ta, %map_a : memref<64x64xf16, 3>, !map -> !desc
    %db = nvgpu.warpgroup.generate.descriptor %tb, %map_b : memref<64x64xf16, 3>, !map -> !desc
    %none = nvgpu.warpgroup.mma.init.accumulator -> !acc
    %sum = nvgpu.warpgroup.mma %da, %db, %none {transposeB, waitGroup = 0 : i64} : !desc, !desc, !acc -> !acc
    nvgpu.warpgroup.mma.store %sum, %d : !acc to memref<64x64xf32>
    gpu.terminator
  }
  %wrong = scf.for %i = %c0 to %c64 step %c1 iter_args(%bad = %c0) -> (index) {
    %row = scf.for %j = %c0 to %c64 step %c1 iter_args(%rowBad = %bad) -> (index) {
      %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%part = %zero) -> (f32) {
        %x = memref.load %a[%i, %k] : memref<64x64xf16>
        %y = memref.load %b[%k, %j] : memref<64x64xf16>
        %f = arith.extf %x : f16 to f32
        %g = arith.extf %y : f16 to f32
        %p = arith.mulf %f, %g : f32
        %next = arith.addf %part, %p : f32
        scf.yield %next : f32
      }
      %got = memref.load %d[%i, %j] : memref<64x64xf32>
      %differs = arith.cmpf une, %got, %sum : f32
      %more = arith.addi %rowBad, %c1 : index
      %count = arith.select %differs, %more, %rowBad : index
      scf.yield %count : index
    }
    scf.yield %row : index
  }
  // CHECK: wrong elements: 0
  vector.print str "wrong elements: "
  vector.print %wrong : index
  return
}
