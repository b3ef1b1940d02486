// Sizes that are known at run time alone, and a function between main and the
// kernel.
func.func @scale(%x: memref<?x?xf32>, %rows: index, %columns: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %rows, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %columns, %sy = %c1, %sz = %c1) {
    %row = arith.index_cast %bx : index to i32
    %f = arith.sitofp %row : i32 to f32
    %v = memref.load %x[%bx, %tx] : memref<?x?xf32>
    %s = arith.addf %v, %f : f32
    memref.store %s, %x[%bx, %tx] : memref<?x?xf32>
    gpu.terminator
  }
  return
}
func.func @main() {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] (%c3, %c2) : memref<?x?xf32>
  %t2 = gpu.memset async [%t1] %x, %one : memref<?x?xf32>, f32
  gpu.wait [%t2]
  call @scale(%x, %c3, %c2) : (memref<?x?xf32>, index, index) -> ()
  %host = memref.alloc(%c3, %c2) : memref<?x?xf32>
  %t3 = gpu.wait async
  %t4 = gpu.memcpy async [%t3] %host, %x : memref<?x?xf32>, memref<?x?xf32>
  gpu.wait [%t4]
  %u = memref.cast %host : memref<?x?xf32> to memref<*xf32>
  // CHECK: {{\[\[}}1,   1],
  // CHECK-NEXT: [2,   2],
  // CHECK-NEXT: [3,   3]]
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
