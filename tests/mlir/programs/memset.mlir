// gpu.memset of 32 and 16 bits, on a stream.
func.func @main() {
  %x = memref.alloc() : memref<5xi32>
  %h = memref.alloc() : memref<6xf16>
  %nine = arith.constant 9 : i32
  %two = arith.constant 2.0 : f16
  %c1 = arith.constant 1 : index
  %t0 = gpu.wait async
  %dx, %t1 = gpu.alloc async [%t0] () : memref<5xi32>
  %dh, %t2 = gpu.alloc async [%t1] () : memref<6xf16>
  %t3 = gpu.memset async [%t2] %dx, %nine : memref<5xi32>, i32
  %t4 = gpu.memset async [%t3] %dh, %two : memref<6xf16>, f16
  %t5 = gpu.launch async [%t4] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    memref.store %one, %dx[%c0] : memref<5xi32>
    gpu.terminator
  }
  %t6 = gpu.memcpy async [%t5] %x, %dx : memref<5xi32>, memref<5xi32>
  %t7 = gpu.memcpy async [%t6] %h, %dh : memref<6xf16>, memref<6xf16>
  gpu.wait [%t7]
  %u = memref.cast %x : memref<5xi32> to memref<*xi32>
  // CHECK: [1,  9,  9,  9,  9]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  %c5 = arith.constant 5 : index
  %last = memref.load %h[%c5] : memref<6xf16>
  %f = arith.extf %last : f16 to f32
  // CHECK: 2
  vector.print %f : f32
  return
}
func.func private @printMemrefI32(memref<*xi32>)
