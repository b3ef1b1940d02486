// A reduction with an operation of its own: the bits of all threads.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %x = gpu.alloc host_shared () : memref<1xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %n = arith.index_cast %tx : index to i32
    %one = arith.constant 1 : i32
    %thirty = arith.constant 30 : i32
    %place = arith.andi %n, %thirty : i32
    %bit = arith.shli %one, %place : i32
    %bits = gpu.all_reduce %bit uniform {
    ^bb(%a: i32, %b: i32):
      %or = arith.ori %a, %b : i32
      gpu.yield %or : i32
    } : (i32) -> (i32)
    memref.store %bits, %x[%c0] : memref<1xi32>
    gpu.terminator
  }
  %u = memref.cast %x : memref<1xi32> to memref<*xi32>
  // CHECK: [1431655765]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
