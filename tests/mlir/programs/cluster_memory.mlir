// Each CTA of a cluster reads what the other wrote into its shared memory.
memref.global "private" @word : memref<1xi32, 3>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = gpu.alloc host_shared () : memref<2xi32>
  gpu.launch clusters(%cx, %cy, %cz) in (%csx = %c2, %csy = %c1, %csz = %c1)
      blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %word = memref.get_global @word : memref<1xi32, 3>
    %rank = arith.index_cast %bx : index to i32
    %forty = arith.constant 40 : i32
    %one = arith.constant 1 : i32
    %mine = arith.addi %rank, %forty : i32
    memref.store %mine, %word[%c0] : memref<1xi32, 3>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %other = arith.xori %rank, %one : i32
    %at = memref.extract_aligned_pointer_as_index %word : memref<1xi32, 3> -> index
    %i = arith.index_cast %at : index to i64
    %p = llvm.inttoptr %i : i64 to !llvm.ptr<3>
    %theirs = nvvm.mapa %p, %other : !llvm.ptr<3> -> !llvm.ptr<7>
    %v = llvm.load %theirs : !llvm.ptr<7> -> i32
    memref.store %v, %x[%bx] : memref<2xi32>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.terminator
  }
  %u = memref.cast %x : memref<2xi32> to memref<*xi32>
  // CHECK: [41,  40]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
