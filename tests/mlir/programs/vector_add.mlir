// Two vectors are added, with every step on one chain of async tokens.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %half = arith.constant 0.5 : f32
  %x = memref.alloc() : memref<128xf32>
  %y = memref.alloc() : memref<128xf32>
  scf.for %i = %c0 to %c128 step %c1 {
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    memref.store %f, %x[%i] : memref<128xf32>
    memref.store %half, %y[%i] : memref<128xf32>
  }
  %t0 = gpu.wait async
  %dx, %t1 = gpu.alloc async [%t0] () : memref<128xf32>
  %dy, %t2 = gpu.alloc async [%t1] () : memref<128xf32>
  %t3 = gpu.memcpy async [%t2] %dx, %x : memref<128xf32>, memref<128xf32>
  %t4 = gpu.memcpy async [%t3] %dy, %y : memref<128xf32>, memref<128xf32>
  %c2 = arith.constant 2 : index
  %t5 = gpu.launch async [%t4] blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %base = arith.muli %bx, %sx : index
    %i = arith.addi %base, %tx : index
    %a = memref.load %dx[%i] : memref<128xf32>
    %b = memref.load %dy[%i] : memref<128xf32>
    %s = arith.addf %a, %b : f32
    memref.store %s, %dx[%i] : memref<128xf32>
    gpu.terminator
  }
  %t6 = gpu.memcpy async [%t5] %x, %dx : memref<128xf32>, memref<128xf32>
  %t7 = gpu.dealloc async [%t6] %dx : memref<128xf32>
  %t8 = gpu.dealloc async [%t7] %dy : memref<128xf32>
  gpu.wait [%t8]
  %u = memref.cast %x : memref<128xf32> to memref<*xf32>
  // CHECK: sizes = [128]
  // CHECK-NEXT: [0.5,  1.5,  2.5,  3.5
  // CHECK-SAME: 126.5,  127.5]
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
