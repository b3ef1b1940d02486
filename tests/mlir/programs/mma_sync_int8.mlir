// mma.sync of 8-bit integers, 16 x 8 over 32: all ones, and a sum before.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %x = gpu.alloc host_shared () : memref<32xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = arith.constant dense<1> : vector<4x4xi8>
    %b = arith.constant dense<-2> : vector<2x4xi8>
    %c = arith.constant dense<5> : vector<2x2xi32>
    %d = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
    %v = vector.extract %d[1, 1] : i32 from vector<2x2xi32>
    memref.store %v, %x[%tx] : memref<32xi32>
    gpu.terminator
  }
  %v = memref.load %x[%c1] : memref<32xi32>
  // CHECK: -59
  vector.print %v : i32
  return
}
