// Two gpu.modules with kernels of the same name, launched by turns.
module attributes {gpu.container_module} {
  gpu.module @first {
    gpu.func @kernel(%x: memref<8xi32>) kernel {
      %t = gpu.thread_id x
      %one = arith.constant 1 : i32
      %v = memref.load %x[%t] : memref<8xi32>
      %s = arith.addi %v, %one : i32
      memref.store %s, %x[%t] : memref<8xi32>
      gpu.return
    }
  }
  gpu.module @second {
    gpu.func @kernel(%x: memref<8xi32>) kernel {
      %t = gpu.thread_id x
      %ten = arith.constant 10 : i32
      %v = memref.load %x[%t] : memref<8xi32>
      %s = arith.muli %v, %ten : i32
      memref.store %s, %x[%t] : memref<8xi32>
      gpu.return
    }
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0 : i32
    %x = gpu.alloc host_shared () : memref<8xi32>
    scf.for %i = %c0 to %c8 step %c1 {
      memref.store %zero, %x[%i] : memref<8xi32>
    }
    gpu.launch_func @first::@kernel blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1) args(%x : memref<8xi32>)
    gpu.launch_func @second::@kernel blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1) args(%x : memref<8xi32>)
    gpu.launch_func @first::@kernel blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1) args(%x : memref<8xi32>)
    %u = memref.cast %x : memref<8xi32> to memref<*xi32>
    // CHECK: [11,  11,  11,  11,  11,  11,  11,  11]
    call @printMemrefI32(%u) : (memref<*xi32>) -> ()
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
}
// STDERR: 3 launches, 3 checked: 0 errors, 0 warnings
