// Two chains of tokens are two streams; a third kernel waits for both, through
// events.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %host = memref.alloc() : memref<32xi32>
  %s0 = gpu.wait async
  %x, %s1 = gpu.alloc async [%s0] () : memref<32xi32>
  %s2 = gpu.launch async [%s1] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %n = arith.index_cast %tx : index to i32
    memref.store %n, %x[%tx] : memref<32xi32>
    gpu.terminator
  }
  %r0 = gpu.wait async
  %y, %r1 = gpu.alloc async [%r0] () : memref<32xi32>
  %r2 = gpu.launch async [%r1] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c100 = arith.constant 100 : i32
    memref.store %c100, %y[%tx] : memref<32xi32>
    gpu.terminator
  }
  %both = gpu.wait async [%s2, %r2]
  %b1 = gpu.launch async [%both] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.load %x[%tx] : memref<32xi32>
    %b = memref.load %y[%tx] : memref<32xi32>
    %s = arith.addi %a, %b : i32
    memref.store %s, %x[%tx] : memref<32xi32>
    gpu.terminator
  }
  %b2 = gpu.memcpy async [%b1] %host, %x : memref<32xi32>, memref<32xi32>
  gpu.wait [%b2]
  %u = memref.cast %host : memref<32xi32> to memref<*xi32>
  // CHECK: [100,  101,  102,
  // CHECK-SAME: 131]
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
// STDERR: 3 launches, 3 checked: 0 errors, 0 warnings
