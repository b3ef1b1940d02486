// What threads print, with numbers of several types.
func.func @main() {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
    %n = arith.index_cast %tx : index to i32
    %f = arith.sitofp %n : i32 to f32
    %half = arith.constant 0.5 : f32
    %h = arith.mulf %f, %half : f32
    %w = arith.extf %h : f32 to f64
    // CHECK-DAG: thread 0 has 0.00
    // CHECK-DAG: thread 1 has 0.50
    // CHECK-DAG: thread 2 has 1.00
    gpu.printf "thread %d has %.2f\n", %n, %w : i32, f64
    gpu.terminator
  }
  return
}
