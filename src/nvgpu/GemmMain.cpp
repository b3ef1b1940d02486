// GemmMain: the main of an NVGPU product: small whole numbers, whose sums are
// exact, and every element compared.
#include "nvgpu/GemmModule.h"

namespace kiln::nvgpu_gemm {

using namespace mlir;

/// A loop over [0, end) that carries a value.
template <typename Body>
static Value overRange(Writer &writer, std::int64_t end, Value carried,
                       const Body &body) {
  auto &builder = writer.builder;
  auto loop = scf::ForOp::create(builder, writer.constant(0),
                                 writer.constant(end), writer.constant(1),
                                 carried ? ValueRange{carried} : ValueRange{});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  if (!carried) {
    body(at, Value());
    return Value();
  }
  Value next = body(at, loop.getRegionIterArgs()[0]);
  scf::YieldOp::create(builder, next);
  return loop.getResult(0);
}

/// Element (i, j) is (factor i + j + i j) mod range - 3.
static void fill(Writer &writer, Value matrix, std::int64_t factor,
                 std::int64_t range) {
  auto &builder = writer.builder;
  auto type = cast<MemRefType>(matrix.getType());
  overRange(writer, type.getDimSize(0), {}, [&](Value i, Value) {
    overRange(writer, type.getDimSize(1), {}, [&](Value j, Value) {
      Value scaled = writer.multiply(i, writer.constant(factor));
      Value mixed = writer.add(writer.add(scaled, j), writer.multiply(i, j));
      Value number = arith::IndexCastOp::create(builder, builder.getI32Type(),
                                                writer.remainder(mixed, range));
      Value three = arith::ConstantIntOp::create(builder, 3, 32);
      Value signedOne = arith::SubIOp::create(builder, number, three);
      Value element =
          arith::SIToFPOp::create(builder, builder.getF16Type(), signedOne);
      memref::StoreOp::create(builder, element, matrix, ValueRange{i, j});
      return Value();
    });
    return Value();
  });
}

/// How many elements of C are not what A and B give.
static Value countWrong(Writer &writer, Value a, Value b, Value c) {
  auto &builder = writer.builder;
  const NvgpuGemm &gemm = writer.gemm;
  Type f32 = builder.getF32Type();
  auto element = [&](Value matrix, Value i, Value j) -> Value {
    Value half = memref::LoadOp::create(builder, matrix, ValueRange{i, j});
    return arith::ExtFOp::create(builder, f32, half);
  };
  Value zero = arith::ConstantOp::create(builder, builder.getF32FloatAttr(0));
  return overRange(
      writer, gemm.m, writer.constant(0), [&](Value i, Value wrongAbove) {
        return overRange(
            writer, gemm.n, wrongAbove, [&](Value j, Value wrong) -> Value {
              Value sum = overRange(
                  writer, gemm.k, zero, [&](Value k, Value part) -> Value {
                    Value product = arith::MulFOp::create(
                        builder, element(a, i, k), element(b, k, j));
                    return arith::AddFOp::create(builder, part, product);
                  });
              Value found =
                  memref::LoadOp::create(builder, c, ValueRange{i, j});
              Value differs = arith::CmpFOp::create(
                  builder, arith::CmpFPredicate::UNE, found, sum);
              return arith::SelectOp::create(
                  builder, differs, writer.add(wrong, writer.constant(1)),
                  wrong);
            });
      });
}

void writeMain(Writer &writer, func::FuncOp product) {
  auto &builder = writer.builder;
  auto function =
      func::FuncOp::create(builder, "main", builder.getFunctionType({}, {}));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.addEntryBlock());
  Value a = memref::AllocOp::create(builder, writer.a);
  Value b = memref::AllocOp::create(builder, writer.b);
  Value c = memref::AllocOp::create(builder, writer.c);
  fill(writer, a, 13, 7);
  fill(writer, b, 5, 5);
  func::CallOp::create(builder, product, ValueRange{a, b, c});
  Value wrong = countWrong(writer, a, b, c);
  auto branch = scf::IfOp::create(builder, writer.equal(wrong, 0),
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inside(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    vector::PrintOp::create(builder, StringRef("PASS\n"));
    builder.setInsertionPointToStart(branch.elseBlock());
    vector::PrintOp::create(builder, StringRef("FAIL, wrong elements: "));
    vector::PrintOp::create(builder, wrong);
  }
  for (Value memory : {a, b, c})
    memref::DeallocOp::create(builder, memory);
  func::ReturnOp::create(builder);
}

} // namespace kiln::nvgpu_gemm
