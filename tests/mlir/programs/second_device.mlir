// Device 1 is not there: it is told, and the program goes on with device 0.
func.func @main() {
  %device = arith.constant 1 : i32
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
// status: 3
// STDERR: kiln: mgpuSetDefaultDevice: there is no device 1; Kiln has one, number 0
// STDERR: kiln: 1 launch, 1 checked: 0 errors, 0 warnings; 1 call failed
