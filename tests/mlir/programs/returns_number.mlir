// A main that returns a number: the runner prints it.
func.func @main() -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = gpu.alloc host_shared () : memref<1xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = arith.constant 42 : i32
    memref.store %v, %x[%c0] : memref<1xi32>
    gpu.terminator
  }
  %v = memref.load %x[%c0] : memref<1xi32>
  // CHECK: 42
  return %v : i32
}
