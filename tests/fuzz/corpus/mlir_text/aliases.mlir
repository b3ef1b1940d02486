#a = affine_map<(d0) -> (d0)>
!t0 = !llvm.struct<(i32)>
!t1 = !llvm.struct<(!t0, !t0)>
// a ">" in a comment and "(" in a "string \" ("
module { gpu.module @k { gpu.func @f(%x: !t1, %m: memref<4xf32, #a>) kernel { gpu.return } } }
