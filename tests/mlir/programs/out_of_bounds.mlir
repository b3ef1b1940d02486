// A kernel writes behind its memory. What follows on the device is left out, the
// program goes on, and the exit status tells.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  %zero = arith.constant 0 : i32
  %host = memref.alloc() : memref<64xi32>
  memref.store %zero, %host[%c0] : memref<64xi32>
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] () : memref<64xi32>
  gpu.wait [%t1]
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c65, %sy = %c1, %sz = %c1) {
    %n = arith.index_cast %tx : index to i32
    memref.store %n, %x[%tx] : memref<64xi32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.printf "never\n"
    gpu.terminator
  }
  %t2 = gpu.wait async
  %t3 = gpu.memcpy async [%t2] %host, %x : memref<64xi32>, memref<64xi32>
  %t4 = gpu.dealloc async [%t3] %x : memref<64xi32>
  gpu.wait [%t4]
  // CHECK-NOT: never
  // CHECK: went on
  vector.print str "went on\n"
  return
}
// status: 2
// sim: a GPU may have memory there
// LINES: error out-of-bounds at {{.*}}out_of_bounds.mlir:16:
// STDERR: error out-of-bounds at
// STDERR: kiln: an error has ended a launch: launches and copies that follow are left out, as on a GPU
// STDERR: kiln: 1 launch, 1 checked: 1 error, 0 warnings; 1 ended by an error
