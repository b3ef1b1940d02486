// Memory that the host and a kernel use at one address, without a copy.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %seven = arith.constant 7 : i32
  %x = gpu.alloc host_shared () : memref<16xi32>
  scf.for %i = %c0 to %c16 step %c1 {
    memref.store %seven, %x[%i] : memref<16xi32>
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%tx] : memref<16xi32>
    %n = arith.index_cast %tx : index to i32
    %s = arith.addi %v, %n : i32
    memref.store %s, %x[%tx] : memref<16xi32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<16xi32> to memref<*xi32>
  // CHECK: [7,  8,  9,  10,  11,  12,  13,  14,  15,  16,  17,  18,  19,  20,  21,  22]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  %t0 = gpu.wait async
  %t1 = gpu.dealloc async [%t0] %x : memref<16xi32>
  gpu.wait [%t1]
  return
}
func.func private @printMemrefI32(memref<*xi32>)
