// Device 0 is there.
func.func @main() {
  %device = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  gpu.set_default_device %device
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // CHECK: here
    gpu.printf "here\n"
    gpu.terminator
  }
  return
}
