// GemmKernel: the two published kernels, in operations of the nvgpu dialect.
//
// Multistage: one warpgroup loads stages - 1 tiles ahead, then multiplies one
// and loads another. Warp-specialized: the second warpgroup loads, the first
// multiplies, and each tells the other over mbarriers.
#include "nvgpu/GemmModule.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::nvgpu_gemm {

using namespace mlir;
using arith::CmpIPredicate;

namespace {
/// Values that every part of a kernel uses.
struct Kernel {
  Writer &writer;
  const Operands &operands;
  Value smem, thread, row, column;
  Value ticks; ///< that a wait may sleep

  Kernel(Writer &writer, const Operands &operands);

  Value barriers();
  void init(Value barriers, std::int64_t count, Value predicate);
  /// A tile of a stage, as a type.
  Value view(MemRefType type, Value offset);
  Value offsetA(Value slot);
  Value offsetB(Value slot);
  /// Copy tile `step` of A and B into a slot.
  void load(Value full, Value slot, Value step, Value predicate,
            bool isExpectedFirst);
  /// Wait for a slot and multiply it onto the accumulators.
  Value multiply(Value full, Value slot, Value parity, Value sums);
  Value nextParity(Value parity, Value slot);
  void storeSums(Value sums);
  void copyOut(std::int64_t threads);
  void awaitProducts();

private:
  std::int64_t stages() const { return writer.gemm.stages; }
  Value base_; ///< of the tiles
};
} // namespace

Kernel::Kernel(Writer &writer, const Operands &operands)
    : writer(writer), operands(operands) {
  auto &builder = writer.builder;
  smem = gpu::DynamicSharedMemoryOp::create(builder, writer.bytes);
  base_ =
      writer.constant(writer.has(NvgpuRepair::tiles_apart) ? kBarrierBytes : 0);
  ticks = writer.constant(10000000);
  thread = gpu::ThreadIdOp::create(builder, gpu::Dimension::x);
  row = writer.multiply(gpu::BlockIdOp::create(builder, gpu::Dimension::x),
                        writer.constant(kBlockM));
  column = writer.multiply(gpu::BlockIdOp::create(builder, gpu::Dimension::y),
                           writer.constant(kBlockN));
}

Value Kernel::barriers() {
  auto type = mlir::nvgpu::MBarrierGroupType::get(
      writer.builder.getContext(), writer.shared,
      static_cast<unsigned>(stages()));
  return mlir::nvgpu::MBarrierCreateOp::create(writer.builder, type);
}

void Kernel::init(Value barriers, std::int64_t slot, Value predicate) {
  mlir::nvgpu::MBarrierInitOp::create(writer.builder, barriers,
                                      writer.constant(1), writer.constant(slot),
                                      predicate);
}

Value Kernel::view(MemRefType type, Value offset) {
  return memref::ViewOp::create(writer.builder, type, smem, offset,
                                ValueRange{});
}

Value Kernel::offsetA(Value slot) {
  return writer.add(writer.multiply(slot, writer.constant(kTileABytes)), base_);
}

Value Kernel::offsetB(Value slot) {
  Value behindA = writer.add(writer.constant(kTileABytes * stages()), base_);
  return writer.add(writer.multiply(slot, writer.constant(kTileBBytes)),
                    behindA);
}

void Kernel::load(Value full, Value slot, Value step, Value predicate,
                  bool isExpectedFirst) {
  auto &builder = writer.builder;
  auto expect = [&] {
    mlir::nvgpu::MBarrierArriveExpectTxOp::create(
        builder, full, writer.constant(kTileABytes + kTileBBytes), slot,
        predicate);
  };
  auto copy = [&](Value to, Value map, Value inner, Value outer) {
    mlir::nvgpu::TmaAsyncLoadOp::create(builder, to, full, map,
                                        ValueRange{inner, outer}, slot,
                                        /*multicastMask=*/Value(), predicate);
  };
  Value a = view(writer.tileA, offsetA(slot));
  Value offset = offsetB(slot);
  Value left = view(writer.boxB, offset);
  Value right = view(writer.boxB,
                     writer.add(offset, writer.constant(kBlockK * kBoxColumns *
                                                        kElementBytes)));
  Value depth = writer.multiply(step, writer.constant(kBlockK));
  if (isExpectedFirst)
    expect();
  copy(a, operands.mapA, depth, row);
  copy(left, operands.mapB, column, depth);
  copy(right, operands.mapB, writer.add(column, writer.constant(kBoxColumns)),
       depth);
  if (!isExpectedFirst)
    expect();
}

Value Kernel::multiply(Value full, Value slot, Value parity, Value sums) {
  auto &builder = writer.builder;
  mlir::nvgpu::MBarrierTryWaitParityOp::create(builder, full, parity, ticks,
                                               slot);
  auto describe = [&](MemRefType tile, Value offset, Value map) -> Value {
    auto type = mlir::nvgpu::WarpgroupMatrixDescriptorType::get(
        builder.getContext(), tile);
    return mlir::nvgpu::WarpgroupGenerateDescriptorOp::create(
        builder, type, view(tile, offset), map);
  };
  Value a = describe(writer.tileA, offsetA(slot), operands.mapA);
  Value b = describe(writer.tileB, offsetB(slot), operands.mapB);
  return mlir::nvgpu::WarpgroupMmaOp::create(
      builder, sums.getType(), a, b, /*waitGroup=*/IntegerAttr(),
      /*transposeA=*/UnitAttr(), builder.getUnitAttr(), sums);
}

/// It turns behind the last slot.
Value Kernel::nextParity(Value parity, Value slot) {
  Value other =
      arith::XOrIOp::create(writer.builder, parity, writer.truth(true));
  return arith::SelectOp::create(
      writer.builder, writer.equal(slot, stages() - 1), other, parity);
}

void Kernel::awaitProducts() {
  NVVM::WgmmaWaitGroupSyncOp::create(writer.builder, std::uint64_t(0));
}

/// Registers to shared memory, over the tiles.
void Kernel::storeSums(Value sums) {
  mlir::nvgpu::WarpgroupMmaStoreOp::create(writer.builder, sums,
                                           view(writer.sums, base_));
}

/// Shared memory to C, an element for each thread in turn.
void Kernel::copyOut(std::int64_t threads) {
  auto &builder = writer.builder;
  Type f32 = builder.getF32Type();
  auto flat = MemRefType::get({kBlockM * kBlockN}, f32,
                              MemRefLayoutAttrInterface(), writer.shared);
  Value from = view(flat, base_);
  Value c = memref::AssumeAlignmentOp::create(builder, operands.c, 16);
  auto size = [&](std::int64_t value) {
    return OpFoldResult(builder.getIndexAttr(value));
  };
  Value to = memref::SubViewOp::create(
      builder, c, {OpFoldResult(row), OpFoldResult(column)},
      {size(kBlockM), size(kBlockN)}, {size(1), size(1)});
  auto loop =
      scf::ForOp::create(builder, thread, writer.constant(kBlockM * kBlockN),
                         writer.constant(threads));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  Value value = vector::LoadOp::create(builder, VectorType::get({1}, f32), from,
                                       ValueRange{at});
  vector::StoreOp::create(
      builder, value, to,
      ValueRange{writer.divide(at, kBlockN), writer.remainder(at, kBlockN)});
}

/// A loop over all steps, with what it carries; the body gives the next ones.
template <typename Body>
static ResultRange overSteps(Writer &writer, std::int64_t steps,
                             ValueRange carried, const Body &body) {
  auto &builder = writer.builder;
  auto loop =
      scf::ForOp::create(builder, writer.constant(0), writer.constant(steps),
                         writer.constant(1), carried);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!next.empty())
    scf::YieldOp::create(builder, next);
  return loop.getResults();
}

/// Where a condition holds.
template <typename Body>
static void where(Writer &writer, Value condition, const Body &body) {
  auto branch = scf::IfOp::create(writer.builder, condition);
  OpBuilder::InsertionGuard guard(writer.builder);
  writer.builder.setInsertionPointToStart(branch.thenBlock());
  body();
}

static Value noSums(Writer &writer) {
  auto fragments =
      VectorType::get({kBlockM, kBlockN}, writer.builder.getF32Type());
  return mlir::nvgpu::WarpgroupMmaInitAccumulatorOp::create(
      writer.builder, mlir::nvgpu::WarpgroupAccumulatorType::get(
                          writer.builder.getContext(), fragments));
}

/// Behind the initialisation of barriers: everybody sees them, and with the
/// fence copies do too.
static void publishBarriers(Writer &writer) {
  if (writer.has(NvgpuRepair::init_fence))
    NVVM::FenceMbarrierInitOp::create(writer.builder);
  gpu::BarrierOp::create(writer.builder);
}

static void prefetchMaps(Writer &writer, const Operands &operands,
                         Value predicate) {
  for (Value map : {operands.mapA, operands.mapB})
    mlir::nvgpu::TmaPrefetchOp::create(writer.builder, map, predicate);
}

void writeMultistage(Writer &writer, const Operands &operands) {
  auto &builder = writer.builder;
  const std::int64_t stages = writer.gemm.stages;
  const std::int64_t steps = writer.gemm.k / kBlockK;
  const std::int64_t ahead = stages == 1 ? 1 : stages - 1;
  Kernel kernel(writer, operands);
  Value first = writer.equal(kernel.thread, 0);
  Value full = kernel.barriers();
  for (std::int64_t i = 0; i < stages; ++i)
    kernel.init(full, i, first);
  publishBarriers(writer);
  prefetchMaps(writer, operands, first);
  overSteps(writer, ahead, {}, [&](Value step, ValueRange) {
    kernel.load(full, step, step, first, /*isExpectedFirst=*/false);
    return SmallVector<Value>();
  });
  Value none = noSums(writer), even = writer.truth(false);
  ResultRange sums = overSteps(
      writer, steps, ValueRange{none, even},
      [&](Value step, ValueRange carried) -> SmallVector<Value> {
        Value slot = writer.remainder(step, stages);
        Value sum = kernel.multiply(full, slot, carried[1], carried[0]);
        if (stages == 1)
          kernel.awaitProducts();
        Value later = writer.add(step, writer.constant(ahead));
        Value isThere =
            writer.compare(CmpIPredicate::ult, later, writer.constant(steps));
        kernel.load(full, writer.remainder(later, stages), later,
                    writer.both(first, isThere), /*isExpectedFirst=*/true);
        return {sum, kernel.nextParity(carried[1], slot)};
      });
  kernel.awaitProducts();
  kernel.storeSums(sums[0]);
  gpu::BarrierOp::create(builder);
  kernel.copyOut(kWarpgroup);
}

/// The second warpgroup: wait until a slot is free, fill it.
static void produce(Kernel &kernel, Value full, Value free) {
  Writer &writer = kernel.writer;
  constexpr unsigned kRegisters = 40;
  NVVM::SetMaxRegisterOp::create(writer.builder, kRegisters,
                                 NVVM::SetMaxRegisterAction::decrease);
  Value odd = writer.truth(true);
  overSteps(writer, writer.gemm.k / kBlockK, ValueRange{odd},
            [&](Value step, ValueRange carried) -> SmallVector<Value> {
              Value slot = writer.remainder(step, writer.gemm.stages);
              mlir::nvgpu::MBarrierTryWaitParityOp::create(
                  writer.builder, free, carried[0], kernel.ticks, slot);
              Value parity = kernel.nextParity(carried[0], slot);
              kernel.load(full, slot, step,
                          writer.equal(kernel.thread, kWarpgroup),
                          /*isExpectedFirst=*/false);
              return {parity};
            });
}

static void arrive(Writer &writer, Value barriers, Value slot) {
  mlir::nvgpu::MBarrierArriveOp::create(writer.builder, barriers, slot);
}

/// The first warpgroup: multiply a slot; the one before it is free then, since
/// one product stays in flight.
static void consume(Kernel &kernel, Value full, Value free) {
  Writer &writer = kernel.writer;
  auto &builder = writer.builder;
  const std::int64_t stages = writer.gemm.stages;
  const std::int64_t steps = writer.gemm.k / kBlockK;
  const bool isAwaited = writer.has(NvgpuRepair::await_products);
  constexpr unsigned kRegisters = 232;
  NVVM::SetMaxRegisterOp::create(builder, kRegisters,
                                 NVVM::SetMaxRegisterAction::increase);
  Value first = writer.equal(kernel.thread, 0);
  Value none = noSums(writer), even = writer.truth(false);
  ResultRange sums = overSteps(
      writer, steps, ValueRange{none, even},
      [&](Value step, ValueRange carried) -> SmallVector<Value> {
        Value slot = writer.remainder(step, stages);
        Value sum = kernel.multiply(full, slot, carried[1], carried[0]);
        if (stages == 1 && isAwaited)
          kernel.awaitProducts();
        Value tells = first;
        if (stages > 1)
          tells = writer.both(first, writer.compare(CmpIPredicate::sgt, step,
                                                    writer.constant(0)));
        where(writer, tells, [&] {
          Value before =
              arith::SubIOp::create(builder, slot, writer.constant(1));
          arrive(writer, free,
                 arith::SelectOp::create(builder, writer.equal(slot, 0),
                                         writer.constant(stages - 1), before));
        });
        return {sum, kernel.nextParity(carried[1], slot)};
      });
  if (isAwaited)
    kernel.awaitProducts();
  // As it was published, this is the slot behind the last one; a single slot
  // has been given back already.
  std::int64_t last = isAwaited ? steps - 1 : steps;
  if (!isAwaited || stages > 1)
    where(writer, first,
          [&] { arrive(writer, free, writer.constant(last % stages)); });
  kernel.storeSums(sums[0]);
}

void writeWarpSpecialized(Writer &writer, const Operands &operands) {
  Kernel kernel(writer, operands);
  Value isPrimary =
      writer.equal(writer.remainder(kernel.thread, kWarpgroup), 0);
  Value warpgroup = writer.divide(kernel.thread, kWarpgroup);
  Value isProducer = writer.equal(warpgroup, 1);
  Value isConsumer = writer.equal(warpgroup, 0);
  Value full = kernel.barriers(), free = kernel.barriers();
  Value makes = writer.has(NvgpuRepair::init_once)
                    ? writer.equal(kernel.thread, 0)
                    : isPrimary;
  for (std::int64_t i = 0; i < writer.gemm.stages; ++i)
    for (Value barriers : {full, free})
      kernel.init(barriers, i, makes);
  publishBarriers(writer);
  prefetchMaps(writer, operands, isPrimary);
  where(writer, isProducer, [&] { produce(kernel, full, free); });
  where(writer, isConsumer, [&] { consume(kernel, full, free); });
  gpu::BarrierOp::create(writer.builder);
  kernel.copyOut(2 * kWarpgroup);
}

} // namespace kiln::nvgpu_gemm
