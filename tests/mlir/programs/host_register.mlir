// Memory of the heap, registered, used by a kernel at its own address, and
// unregistered again.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %x = memref.alloc() : memref<3x4xf32>
  %u = memref.cast %x : memref<3x4xf32> to memref<*xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      memref.store %f, %x[%i, %j] : memref<3x4xf32>
    }
  }
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%bx, %tx] : memref<3x4xf32>
    %d = arith.addf %v, %v : f32
    memref.store %d, %x[%bx, %tx] : memref<3x4xf32>
    gpu.terminator
  }
  gpu.host_unregister %u : memref<*xf32>
  // CHECK: {{\[\[}}0,   0,   0,   0],
  // CHECK-NEXT: [2,   2,   2,   2],
  // CHECK-NEXT: [4,   4,   4,   4]]
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
