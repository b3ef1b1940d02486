// A product in the nvgpu dialect, for MLIR's own pipeline: one stage, TMA, an
// mbarrier and a warpgroup. C[m][n] = A[m][k] * B[k][n], 64 x 64 tiles.
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!desc = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>
!acc = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

module {
  memref.global "private" @tile_a : memref<64x64xf16, 3> {alignment = 1024 : i64}
  memref.global "private" @tile_b : memref<64x64xf16, 3> {alignment = 1024 : i64}
  func.func @nvgpu_gemm(%from_a: memref<*xf16>, %from_b: memref<*xf16>, %c: memref<?x?xf32>, %k: index, %rows: index, %columns: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %map_a = nvgpu.tma.create.descriptor %from_a box[%c64, %c64] : memref<*xf16> -> !map
    %map_b = nvgpu.tma.create.descriptor %from_b box[%c64, %c64] : memref<*xf16> -> !map
    gpu.launch blocks(%block_x, %block_y, %block_z) in (%gx = %columns, %gy = %rows, %gz = %c1)
        threads(%thread, %ty, %tz) in (%bx = %c128, %by = %c1, %bz = %c1) {
      %bytes = arith.constant 16384 : index
      %ticks = arith.constant 10000000 : index
      %false = arith.constant false
      %true = arith.constant true
      %first = arith.cmpi eq, %thread, %c0 : index
      %row = arith.muli %block_y, %c64 : index
      %column = arith.muli %block_x, %c64 : index
      %a = memref.get_global @tile_a : memref<64x64xf16, 3>
      %b = memref.get_global @tile_b : memref<64x64xf16, 3>
      %barrier = nvgpu.mbarrier.create -> !group
      nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %first : !group
      gpu.barrier
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !acc
      %sum, %last = scf.for %at = %c0 to %k step %c64 iter_args(%acc = %zero, %phase = %false) -> (!acc, i1) {
        nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes, predicate = %first : !group
        nvgpu.tma.async.load %map_a[%at, %row], %barrier[%c0] to %a, predicate = %first : !map, !group -> memref<64x64xf16, 3>
        nvgpu.tma.async.load %map_b[%column, %at], %barrier[%c0] to %b, predicate = %first : !map, !group -> memref<64x64xf16, 3>
        nvgpu.mbarrier.try_wait.parity %barrier[%c0], %phase, %ticks : !group
        %da = nvgpu.warpgroup.generate.descriptor %a, %map_a : memref<64x64xf16, 3>, !map -> !desc
        %db = nvgpu.warpgroup.generate.descriptor %b, %map_b : memref<64x64xf16, 3>, !map -> !desc
        %next = nvgpu.warpgroup.mma %da, %db, %acc {transposeB, waitGroup = 0 : i64} : !desc, !desc, !acc -> !acc
        gpu.barrier
        %other = arith.xori %phase, %true : i1
        scf.yield %next, %other : !acc, i1
      }
      %tile = memref.subview %c[%row, %column] [64, 64] [1, 1] : memref<?x?xf32> to memref<64x64xf32, strided<[?, 1], offset: ?>>
      nvgpu.warpgroup.mma.store %sum, %tile : !acc to memref<64x64xf32, strided<[?, 1], offset: ?>>
      gpu.terminator
    }
    return
  }
}
