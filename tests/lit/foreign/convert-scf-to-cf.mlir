// Loops that carry values and branches become blocks; the loop is not unrolled.
// So do a while around a branch and, by MLIR's own pass, a switch around a loop.
// RUN: split-file %s %t
// RUN: %kiln emit %t/for.mlir --target sm_90 --ir ptx | FileCheck %s
// RUN: %kiln emit %t/while.mlir --target sm_90 --ir nvvm | FileCheck %s --check-prefix=WHILE
// RUN: %kiln emit %t/switch.mlir --target sm_90 --ir nvvm | FileCheck %s --check-prefix=SWITCH

// CHECK: .visible .entry sum_of_positive(
// CHECK: [[LOOP:\$L__BB0_[0-9]+]]:
// CHECK-COUNT-1: ld.global.b32
// CHECK-NOT: ld.global.b32
// CHECK: bra [[LOOP]];
// CHECK: st.global.b32

// WHILE: llvm.br ^[[HEAD:bb[0-9]+]]({{.*}} : i32)
// WHILE: ^[[HEAD]](%[[N:.*]]: i32
// WHILE: llvm.icmp "sgt" %[[N]],
// WHILE: llvm.cond_br {{.*}}, ^{{bb[0-9]+}}, ^[[REST:bb[0-9]+]]
// WHILE: llvm.cond_br
// WHILE: llvm.br ^[[HEAD]](
// WHILE: ^[[REST]]:
// WHILE: llvm.store %[[N]],
// WHILE-NOT: scf.

// SWITCH: llvm.switch
// SWITCH: llvm.br ^[[HEAD:bb[0-9]+]](
// SWITCH: llvm.br ^[[HEAD]](
// SWITCH-NOT: scf.

//--- for.mlir
gpu.module @foreign {
  gpu.func @sum_of_positive(%x: memref<?xf32, 1>, %n: index,
                            %out: memref<1xf32, 1>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %nothing = arith.constant 0.0 : f32
    %sum = scf.for %i = %zero to %n step %one iter_args(%s = %nothing) -> f32 {
      %element = memref.load %x[%i] : memref<?xf32, 1>
      %positive = arith.cmpf ogt, %element, %nothing : f32
      %next = scf.if %positive -> f32 {
        %more = arith.addf %s, %element : f32
        scf.yield %more : f32
      } else {
        scf.yield %s : f32
      }
      scf.yield %next : f32
    }
    memref.store %sum, %out[%zero] : memref<1xf32, 1>
    gpu.return
  }
}

//--- while.mlir
gpu.module @foreign {
  gpu.func @halve(%out: memref<1xi32, 1>, %from: i32) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %last = scf.while (%n = %from) : (i32) -> i32 {
      %more = arith.cmpi sgt, %n, %one : i32
      scf.condition(%more) %n : i32
    } do {
    ^bb0(%n: i32):
      %odd = arith.trunci %n : i32 to i1
      scf.if %odd {
        memref.store %n, %out[%zero] : memref<1xi32, 1>
      }
      %half = arith.shrui %n, %one : i32
      scf.yield %half : i32
    }
    memref.store %last, %out[%zero] : memref<1xi32, 1>
    gpu.return
  }
}

//--- switch.mlir
gpu.module @foreign {
  gpu.func @choose(%out: memref<?xf32, 1>, %which: index, %n: index) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %value = arith.constant 1.0 : f32
    scf.index_switch %which
    case 7 {
      scf.for %i = %zero to %n step %one {
        memref.store %value, %out[%i] : memref<?xf32, 1>
      }
      scf.yield
    }
    default {
    }
    gpu.return
  }
}
