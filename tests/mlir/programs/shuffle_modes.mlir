// up, down and idx, with what a lane without a partner is told.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %x = gpu.alloc host_shared () : memref<4x32xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %n = arith.index_cast %tx : index to i32
    %width = arith.constant 32 : i32
    %five = arith.constant 5 : i32
    %up, %hasUp = gpu.shuffle up %n, %five, %width : i32
    %down, %hasDown = gpu.shuffle down %n, %five, %width : i32
    %five_of_all, %has = gpu.shuffle idx %n, %five, %width : i32
    %told = arith.extui %hasUp : i1 to i32
    memref.store %up, %x[%c0, %tx] : memref<4x32xi32>
    memref.store %down, %x[%c1, %tx] : memref<4x32xi32>
    memref.store %five_of_all, %x[%c2, %tx] : memref<4x32xi32>
    memref.store %told, %x[%c3, %tx] : memref<4x32xi32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<4x32xi32> to memref<*xi32>
  // CHECK: {{\[\[}}0,   1,   2,   3,   4,   0,   1,
  // CHECK-NEXT: [5,   6,   7,
  // CHECK-NEXT: [5,   5,   5,
  // CHECK-NEXT: [0,   0,   0,   0,   0,   1,   1,
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
