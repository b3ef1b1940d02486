// A grid of clusters; each CTA tells its place in its cluster.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %x = gpu.alloc host_shared () : memref<8x2xi32>
  gpu.launch clusters(%cx, %cy, %cz) in (%csx = %c2, %csy = %c1, %csz = %c1)
      blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %cluster = gpu.cluster_id x
    %place = gpu.cluster_block_id x
    %a = arith.index_cast %cluster : index to i32
    %b = arith.index_cast %place : index to i32
    memref.store %a, %x[%bx, %c0] : memref<8x2xi32>
    memref.store %b, %x[%bx, %c1] : memref<8x2xi32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<8x2xi32> to memref<*xi32>
  // CHECK: {{\[\[}}0,   0],
  // CHECK-NEXT: [0,   1],
  // CHECK-NEXT: [1,   0],
  // CHECK: [3,   1]]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
