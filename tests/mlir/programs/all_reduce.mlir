// Sums and largest values of a block, of more than one warp.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %x = gpu.alloc host_shared () : memref<2x2xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c100, %sy = %c1, %sz = %c1) {
    %b = arith.muli %bx, %sx : index
    %i = arith.addi %b, %tx : index
    %n = arith.index_cast %i : index to i32
    %sum = gpu.all_reduce add %n uniform {} : (i32) -> (i32)
    %most = gpu.all_reduce maxsi %n uniform {} : (i32) -> (i32)
    %isFirst = arith.cmpi eq, %tx, %c0 : index
    scf.if %isFirst {
      memref.store %sum, %x[%bx, %c0] : memref<2x2xi32>
      memref.store %most, %x[%bx, %c1] : memref<2x2xi32>
    }
    gpu.terminator
  }
  %u = memref.cast %x : memref<2x2xi32> to memref<*xi32>
  // CHECK: {{\[\[}}4950,   99],
  // CHECK-NEXT: [14950,   199]]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
