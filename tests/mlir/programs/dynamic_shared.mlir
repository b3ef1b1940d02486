// Two views of dynamic shared memory.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %bytes = arith.constant 256 : i32
  %x = gpu.alloc host_shared () : memref<32xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
      dynamic_shared_memory_size %bytes {
    %all = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %c128 = arith.constant 128 : index
    %c31 = arith.constant 31 : index
    %a = memref.view %all[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xi32, #gpu.address_space<workgroup>>
    %b = memref.view %all[%c128][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xi32, #gpu.address_space<workgroup>>
    %n = arith.index_cast %tx : index to i32
    %ten = arith.constant 10 : i32
    %m = arith.muli %n, %ten : i32
    memref.store %n, %a[%tx] : memref<32xi32, #gpu.address_space<workgroup>>
    memref.store %m, %b[%tx] : memref<32xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %other = arith.subi %c31, %tx : index
    %v = memref.load %a[%other] : memref<32xi32, #gpu.address_space<workgroup>>
    %w = memref.load %b[%other] : memref<32xi32, #gpu.address_space<workgroup>>
    %s = arith.addi %v, %w : i32
    memref.store %s, %x[%tx] : memref<32xi32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<32xi32> to memref<*xi32>
  // CHECK: [341,  330,
  // CHECK-SAME: 11,  0]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
