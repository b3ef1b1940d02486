// GemmModule: the module and its host function.
#include "nvgpu/GemmModule.h"
#include "lower/Module.h"
#include "support/Error.h"

#include <fmt/ranges.h>

namespace kiln {

using namespace nvgpu_gemm;

namespace {
struct RepairName {
  NvgpuRepair repair;
  std::string_view name;
};
constexpr RepairName kRepairs[] = {
    {NvgpuRepair::init_once, "init-once"},
    {NvgpuRepair::init_fence, "init-fence"},
    {NvgpuRepair::tiles_apart, "tiles-apart"},
    {NvgpuRepair::await_products, "await-products"},
};
} // namespace

std::string_view name(NvgpuRepair repair) {
  for (const RepairName &row : kRepairs)
    if (row.repair == repair)
      return row.name;
  internalError("repair {} has no name", static_cast<int>(repair));
}

NvgpuRepair parse_nvgpu_repair(std::string_view text) {
  std::vector<std::string_view> names;
  for (const RepairName &row : kRepairs) {
    if (row.name == text)
      return row.repair;
    names.push_back(row.name);
  }
  userError("'{}' is not a valid repair; expected one of {}", text,
            fmt::join(names, ", "));
}

const std::set<NvgpuRepair> &all_nvgpu_repairs() {
  static const std::set<NvgpuRepair> all = [] {
    std::set<NvgpuRepair> repairs;
    for (const RepairName &row : kRepairs)
      repairs.insert(row.repair);
    return repairs;
  }();
  return all;
}

std::string NvgpuGemm::name() const {
  return fmt::format("{}_{}x{}x{}_{}x{}x{}_{}",
                     is_warp_specialized ? "warpspecialized" : "multistage", m,
                     n, k, kBlockM, kBlockN, kBlockK, stages);
}

namespace nvgpu_gemm {

Writer::Writer(const NvgpuGemm &gemm, mlir::MLIRContext &context)
    : gemm(gemm), builder(mlir::UnknownLoc::get(&context), &context) {
  mlir::Type f16 = builder.getF16Type(), f32 = builder.getF32Type();
  shared = mlir::gpu::AddressSpaceAttr::get(
      &context, mlir::gpu::GPUDialect::getWorkgroupAddressSpace());
  auto inShared = [&](llvm::ArrayRef<std::int64_t> shape, mlir::Type element) {
    return mlir::MemRefType::get(shape, element,
                                 mlir::MemRefLayoutAttrInterface(), shared);
  };
  a = mlir::MemRefType::get({gemm.m, gemm.k}, f16);
  b = mlir::MemRefType::get({gemm.k, gemm.n}, f16);
  c = mlir::MemRefType::get({gemm.m, gemm.n}, f32);
  bytes = inShared({mlir::ShapedType::kDynamic}, builder.getI8Type());
  tileA = inShared({kBlockM, kBoxColumns}, f16);
  tileB = inShared({kBlockK, kBlockN}, f16);
  boxB = inShared({kBlockK, kBoxColumns}, f16);
  sums = inShared({kBlockM, kBlockN}, f32);
  auto mapOf = [&](mlir::MemRefType tile) {
    auto box = mlir::MemRefType::get(tile.getShape(), f16,
                                     mlir::MemRefLayoutAttrInterface(),
                                     builder.getI64IntegerAttr(3));
    return mlir::nvgpu::TensorMapDescriptorType::get(
        &context, box, mlir::nvgpu::TensorMapSwizzleKind::SWIZZLE_128B,
        mlir::nvgpu::TensorMapL2PromoKind::L2PROMO_NONE,
        mlir::nvgpu::TensorMapOOBKind::OOB_ZERO,
        mlir::nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  };
  mapA = mapOf(tileA);
  mapB = mapOf(boxB);
}

mlir::Value Writer::constant(std::int64_t value) {
  return mlir::arith::ConstantIndexOp::create(builder, value);
}
mlir::Value Writer::truth(bool value) {
  return mlir::arith::ConstantIntOp::create(builder, value, 1);
}
mlir::Value Writer::add(mlir::Value x, mlir::Value y) {
  return mlir::arith::AddIOp::create(builder, x, y);
}
mlir::Value Writer::multiply(mlir::Value x, mlir::Value y) {
  return mlir::arith::MulIOp::create(builder, x, y);
}
mlir::Value Writer::remainder(mlir::Value x, std::int64_t y) {
  return mlir::arith::RemUIOp::create(builder, x, constant(y));
}
mlir::Value Writer::divide(mlir::Value x, std::int64_t y) {
  return mlir::arith::DivUIOp::create(builder, x, constant(y));
}
mlir::Value Writer::both(mlir::Value x, mlir::Value y) {
  return mlir::arith::AndIOp::create(builder, x, y);
}
mlir::Value Writer::compare(mlir::arith::CmpIPredicate how, mlir::Value x,
                            mlir::Value y) {
  return mlir::arith::CmpIOp::create(builder, how, x, y);
}
mlir::Value Writer::equal(mlir::Value x, std::int64_t y) {
  return compare(mlir::arith::CmpIPredicate::eq, x, constant(y));
}

std::int64_t smemBytes(const NvgpuGemm &gemm) {
  std::int64_t tiles = std::max((kTileABytes + kTileBBytes) * gemm.stages,
                                kBlockM * kBlockN * kSumBytes);
  return tiles +
         (gemm.repairs.contains(NvgpuRepair::tiles_apart) ? kBarrierBytes : 0);
}

/// A tensor map of a matrix on the device.
static mlir::Value createMap(Writer &writer, mlir::Value matrix,
                             mlir::nvgpu::TensorMapDescriptorType type) {
  auto &builder = writer.builder;
  mlir::Value any = mlir::memref::CastOp::create(
      builder, mlir::UnrankedMemRefType::get(builder.getF16Type(), {}), matrix);
  llvm::SmallVector<mlir::Value> box;
  for (std::int64_t size : type.getTensor().getShape())
    box.push_back(writer.constant(size));
  return mlir::nvgpu::TmaCreateDescriptorOp::create(builder, type, any, box);
}

/// The launch, with the kernel in it; its token.
static mlir::Value launch(Writer &writer, mlir::Value after,
                          const Operands &operands) {
  auto &builder = writer.builder;
  const NvgpuGemm &gemm = writer.gemm;
  mlir::Value one = writer.constant(1);
  auto smem = mlir::arith::ConstantIntOp::create(builder, smemBytes(gemm), 32);
  auto launch = mlir::gpu::LaunchOp::create(
      builder, writer.constant(gemm.m / kBlockM),
      writer.constant(gemm.n / kBlockN), one,
      writer.constant(kWarpgroup * (gemm.is_warp_specialized ? 2 : 1)), one,
      one, smem, after.getType(), mlir::ValueRange{after});
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&launch.getBody().front());
  if (gemm.is_warp_specialized)
    writeWarpSpecialized(writer, operands);
  else
    writeMultistage(writer, operands);
  mlir::gpu::TerminatorOp::create(builder);
  return launch.getAsyncToken();
}

/// Allocate, copy in, make the maps, launch, copy back, free.
static mlir::func::FuncOp writeProduct(Writer &writer) {
  using namespace mlir::gpu;
  auto &builder = writer.builder;
  auto function = mlir::func::FuncOp::create(
      builder, writer.gemm.name(),
      builder.getFunctionType({writer.a, writer.b, writer.c}, {}));
  function->setAttr("llvm.emit_c_interface", builder.getUnitAttr());
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.addEntryBlock());
  mlir::Type token = AsyncTokenType::get(builder.getContext());
  mlir::Value last = WaitOp::create(builder, token, {}).getAsyncToken();
  auto allocate = [&](mlir::MemRefType type) -> mlir::Value {
    auto made =
        AllocOp::create(builder, type, token, mlir::ValueRange{last}, {}, {});
    last = made.getAsyncToken();
    return made.getMemref();
  };
  mlir::Value a = allocate(writer.a), b = allocate(writer.b),
              c = allocate(writer.c);
  auto copy = [&](mlir::Value to, mlir::Value from) {
    last = MemcpyOp::create(builder, token, mlir::ValueRange{last}, to, from)
               .getAsyncToken();
  };
  copy(a, function.getArgument(0));
  copy(b, function.getArgument(1));
  last = WaitOp::create(builder, token, mlir::ValueRange{last}).getAsyncToken();
  mlir::Value mapA = createMap(writer, a, writer.mapA);
  mlir::Value mapB = createMap(writer, b, writer.mapB);
  mlir::Value launched = launch(writer, last, {c, mapA, mapB});
  mlir::Value done = WaitOp::create(builder, token, mlir::ValueRange{launched})
                         .getAsyncToken();
  last = done;
  copy(function.getArgument(2), c);
  auto free = [&](mlir::Value memory) {
    DeallocOp::create(builder, token, mlir::ValueRange{done}, memory);
  };
  free(a);
  free(b);
  WaitOp::create(builder, mlir::Type(), mlir::ValueRange{last});
  free(c);
  mlir::func::ReturnOp::create(builder);
  return function;
}

} // namespace nvgpu_gemm

/// Refuse what the kernels do not do.
static void check(const NvgpuGemm &gemm) {
  auto multiple = [](char letter, std::int64_t size, std::int64_t of) {
    if (size < of || size % of != 0)
      userError("{} is {}; the NVGPU kernels take multiples of {}", letter,
                size, of);
  };
  multiple('M', gemm.m, kBlockM);
  multiple('N', gemm.n, kBlockN);
  multiple('K', gemm.k, kBlockK);
  constexpr int kMostStages = 6;
  if (gemm.stages < 1 || gemm.stages > kMostStages)
    userError("{} stages were asked for; the NVGPU kernels take 1 to {}, which "
              "fit into shared memory",
              gemm.stages, kMostStages);
  if (!gemm.is_warp_specialized && gemm.k / kBlockK < gemm.stages - 1)
    userError("K of {} has {} tiles, and the multistage kernel with {} stages "
              "loads {} ahead; use fewer stages",
              gemm.k, gemm.k / kBlockK, gemm.stages, gemm.stages - 1);
}

std::string nvgpu_module(const NvgpuGemm &gemm) {
  check(gemm);
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  context
      ->loadDialect<mlir::func::FuncDialect, mlir::memref::MemRefDialect,
                    mlir::nvgpu::NVGPUDialect, mlir::vector::VectorDialect>();
  Writer writer(gemm, *context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(writer.builder.getLoc());
  writer.builder.setInsertionPointToStart(module->getBody());
  writeMain(writer, writeProduct(writer));
  if (failed(mlir::verify(*module)))
    internalError("the NVGPU module {} does not verify", gemm.name());
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  return text + "\n";
}

} // namespace kiln
