// Sums of each warp, by redux.sync: MLIR's pipeline alone lowers none of them.
// kiln: the option is set by `kiln run`
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %x = gpu.alloc host_shared () : memref<64xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %n = arith.index_cast %tx : index to i32
    %sum = gpu.subgroup_reduce add %n uniform : (i32) -> (i32)
    memref.store %sum, %x[%tx] : memref<64xi32>
    gpu.terminator
  }
  %first = memref.load %x[%c0] : memref<64xi32>
  %second = memref.load %x[%c32] : memref<64xi32>
  // CHECK: 496
  vector.print %first : i32
  // CHECK-NEXT: 1520
  vector.print %second : i32
  return
}
