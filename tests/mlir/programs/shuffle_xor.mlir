// A butterfly: every lane of a warp gets the sum of all.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %x = gpu.alloc host_shared () : memref<32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %n = arith.index_cast %tx : index to i32
    %f = arith.sitofp %n : i32 to f32
    %width = arith.constant 32 : i32
    %i1 = arith.constant 1 : i32
    %s1, %p1 = gpu.shuffle xor %f, %i1, %width : f32
    %v1 = arith.addf %f, %s1 : f32
    %i2 = arith.constant 2 : i32
    %s2, %p2 = gpu.shuffle xor %v1, %i2, %width : f32
    %v2 = arith.addf %v1, %s2 : f32
    %i4 = arith.constant 4 : i32
    %s3, %p3 = gpu.shuffle xor %v2, %i4, %width : f32
    %v3 = arith.addf %v2, %s3 : f32
    %i8 = arith.constant 8 : i32
    %s4, %p4 = gpu.shuffle xor %v3, %i8, %width : f32
    %v4 = arith.addf %v3, %s4 : f32
    %i16 = arith.constant 16 : i32
    %s5, %p5 = gpu.shuffle xor %v4, %i16, %width : f32
    %v5 = arith.addf %v4, %s5 : f32
    memref.store %v5, %x[%tx] : memref<32xf32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<32xf32> to memref<*xf32>
  // CHECK: [496,  496,  496
  // CHECK-NOT: 0,
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
