// cp.async in two groups, awaited one after the other.
memref.global "private" @tile : memref<2x32x4xf32, 3>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %x = gpu.alloc host_shared () : memref<2x32x4xf32>
  %y = gpu.alloc host_shared () : memref<32xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      scf.for %k = %c0 to %c4 step %c1 {
        %n = arith.index_cast %j : index to i32
        %f = arith.sitofp %n : i32 to f32
        memref.store %f, %x[%i, %j, %k] : memref<2x32x4xf32>
      }
    }
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %tile = memref.get_global @tile : memref<2x32x4xf32, 3>
    %a = nvgpu.device_async_copy %x[%c0, %tx, %c0], %tile[%c0, %tx, %c0], 4 {bypassL1} : memref<2x32x4xf32> to memref<2x32x4xf32, 3>
    %ga = nvgpu.device_async_create_group %a
    %b = nvgpu.device_async_copy %x[%c1, %tx, %c0], %tile[%c1, %tx, %c0], 4 {bypassL1} : memref<2x32x4xf32> to memref<2x32x4xf32, 3>
    %gb = nvgpu.device_async_create_group %b
    nvgpu.device_async_wait %ga {numGroups = 1 : i32}
    %v = memref.load %tile[%c0, %tx, %c1] : memref<2x32x4xf32, 3>
    nvgpu.device_async_wait %gb {numGroups = 0 : i32}
    %w = memref.load %tile[%c1, %tx, %c2] : memref<2x32x4xf32, 3>
    %s = arith.addf %v, %w : f32
    memref.store %s, %y[%tx] : memref<32xf32>
    gpu.terminator
  }
  %u = memref.cast %y : memref<32xf32> to memref<*xf32>
  // CHECK: [0,  2,  4,
  // CHECK-SAME: 62]
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
