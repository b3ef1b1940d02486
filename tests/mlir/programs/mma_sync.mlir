// ldmatrix from shared memory and mma.sync: 16 x 8 products over 16.
memref.global "private" @tile_a : memref<16x16xf16, 3>
memref.global "private" @tile_b : memref<8x16xf16, 3>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %a = gpu.alloc host_shared () : memref<16x16xf16>
  %b = gpu.alloc host_shared () : memref<8x16xf16>
  %d = gpu.alloc host_shared () : memref<16x8xf32>
  // A's rows are their number; of B^T row n is n at k = 0, and 1 elsewhere.
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c16 step %c1 {
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f16
      memref.store %f, %a[%i, %j] : memref<16x16xf16>
    }
  }
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c16 step %c1 {
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f16
      %one = arith.constant 1.0 : f16
      %isFirst = arith.cmpi eq, %j, %c0 : index
      %v = arith.select %isFirst, %f, %one : f16
      memref.store %v, %b[%i, %j] : memref<8x16xf16>
    }
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %ta = memref.get_global @tile_a : memref<16x16xf16, 3>
    %tb = memref.get_global @tile_b : memref<8x16xf16, 3>
    %row = arith.remui %tx, %c16 : index
    %half = arith.divui %tx, %c16 : index
    %column = arith.muli %half, %c8 : index
    scf.for %k = %c0 to %c8 step %c1 {
      %at = arith.addi %column, %k : index
      %v = memref.load %a[%row, %at] : memref<16x16xf16>
      memref.store %v, %ta[%row, %at] : memref<16x16xf16, 3>
    }
    %rowb = arith.remui %tx, %c8 : index
    %part = arith.divui %tx, %c8 : index
    %from = arith.muli %part, %c4 : index
    scf.for %k = %c0 to %c4 step %c1 {
      %at = arith.addi %from, %k : index
      %v = memref.load %b[%rowb, %at] : memref<8x16xf16>
      memref.store %v, %tb[%rowb, %at] : memref<8x16xf16, 3>
    }
    gpu.barrier
    %fa = nvgpu.ldmatrix %ta[%row, %column] {numTiles = 4 : i32, transpose = false} : memref<16x16xf16, 3> -> vector<4x2xf16>
    %middle = arith.remui %part, %c2 : index
    %columnb = arith.muli %middle, %c8 : index
    %fb = nvgpu.ldmatrix %tb[%rowb, %columnb] {numTiles = 2 : i32, transpose = false} : memref<8x16xf16, 3> -> vector<2x2xf16>
    %zero = arith.constant dense<0.0> : vector<2x2xf32>
    %sum = nvgpu.mma.sync (%fa, %fb, %zero) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %group = arith.divui %tx, %c4 : index
    %lane = arith.remui %tx, %c4 : index
    %n = arith.muli %lane, %c2 : index
    %lower = arith.addi %group, %c8 : index
    %top = vector.extract %sum[0] : vector<2xf32> from vector<2x2xf32>
    %bottom = vector.extract %sum[1] : vector<2xf32> from vector<2x2xf32>
    vector.store %top, %d[%group, %n] : memref<16x8xf32>, vector<2xf32>
    vector.store %bottom, %d[%lower, %n] : memref<16x8xf32>, vector<2xf32>
    gpu.terminator
  }
  %u = memref.cast %d : memref<16x8xf32> to memref<*xf32>
  // CHECK: {{\[\[}}0,   0,
  // CHECK-NEXT: [15,   16,   17,   18,   19,   20,   21,   22],
  // CHECK-NEXT: [30,   32,   34,
  // CHECK: [225,   240,   255,   270,   285,   300,   315,   330]]
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
