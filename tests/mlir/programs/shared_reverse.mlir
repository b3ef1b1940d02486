// A block turns its numbers around through shared memory.
memref.global "private" @tile : memref<64xi32, 3>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %x = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %tile = memref.get_global @tile : memref<64xi32, 3>
    %n = arith.index_cast %tx : index to i32
    memref.store %n, %tile[%tx] : memref<64xi32, 3>
    gpu.barrier
    %from = arith.subi %c63, %tx : index
    %v = memref.load %tile[%from] : memref<64xi32, 3>
    memref.store %v, %x[%tx] : memref<64xi32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<64xi32> to memref<*xi32>
  // CHECK: [63,  62,  61,
  // CHECK-SAME: 1,  0]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
