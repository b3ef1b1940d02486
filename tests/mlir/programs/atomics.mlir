// Every thread of four blocks adds to one number.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %x = gpu.alloc host_shared () : memref<1xf32>
  memref.store %zero, %x[%c0] : memref<1xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %half = arith.constant 0.5 : f32
    %old = memref.atomic_rmw addf %half, %x[%c0] : (f32, memref<1xf32>) -> f32
    gpu.terminator
  }
  %v = memref.load %x[%c0] : memref<1xf32>
  // CHECK: 128
  vector.print %v : f32
  return
}
