// Async: mbarriers and TMA copies, one instruction each.
#include "dsl/State.h"
#include "kiln/tma.h"
#include "support/Error.h"

namespace kiln {

/// How long a try_wait may suspend before it looks again, in nanoseconds.
static constexpr int kWaitHintNs = 10000000;

static constexpr int kMaxBarrierCount = (1 << 20) - 1;

/// The barrier's allocation, once its address is known to be of this kernel.
static BarrierUse &useOf(KernelBuilder::State &state, const Value &address,
                         int array, const std::source_location &where) {
  state.use(address, where);
  return state.barriers[array];
}

Mbarrier MbarrierArray::operator[](At index) const {
  auto &state = KernelBuilder::State::current(index.where());
  auto *literal = std::get_if<std::int64_t>(&index.operand());
  if (literal && (*literal < 0 || *literal >= count_))
    userErrorAt(index.where(), "there is no mbarrier {} in an array of {}",
                *literal, count_);
  if (literal && *literal == 0)
    return Mbarrier(address_, array_);
  Value bytes = state.resolve(index, Type::i32) * At(8, index.where());
  mlir::Value address =
      state.offset(state.use(address_, index.where()),
                   state.use(bytes, index.where()), index.where());
  return Mbarrier(state.wrap(address, Type::u32), array_);
}

void Mbarrier::init(int count, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  if (count < 1 || count > kMaxBarrierCount)
    userErrorAt(where, "an mbarrier counts 1 to {} arrivals, not {}",
                kMaxBarrierCount, count);
  useOf(state, address_, array_, where).hasInit = true;
  mlir::NVVM::MBarrierInitOp::create(
      state.builder, state.at(where), state.use(address_, where),
      state.constant(Type::i32, count, where), mlir::Value());
}

void Mbarrier::arrive(std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  mlir::NVVM::MBarrierArriveOp::create(
      state.builder, state.at(where), state.builder.getI64Type(),
      state.use(address_, where), mlir::Value());
}

void Mbarrier::arrive_expect_tx(At bytes, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  mlir::NVVM::MBarrierArriveExpectTxOp::create(
      state.builder, state.at(where), mlir::Type(), state.use(address_, where),
      state.use(bytes, Type::i32), mlir::NVVM::MemScopeKind::CTA,
      /*relaxed=*/false, mlir::Value());
}

void Mbarrier::wait(At parity, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  BarrierUse &barrier = useOf(state, address_, array_, where);
  if (!barrier.firstWait.is_known())
    barrier.firstWait = collectiveLine.value_or(where);
  // A loop of its own in one block: nothing can float into it, and the
  // accumulators in flight around it meet no phi.
  state.inlineAsm("{\n"
                  ".reg .pred complete;\n"
                  "try_again:\n"
                  "mbarrier.try_wait.parity.shared::cta.b64 complete, [$0], "
                  "$1, $2;\n"
                  "@!complete bra try_again;\n"
                  "}",
                  "l,r,n,~{memory}",
                  {state.use(address_, where), state.use(parity, Type::i32),
                   state.constant(Type::i32, kWaitHintNs, where)},
                  nullptr, where);
}

void fence_mbarrier_init(std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::FenceMbarrierInitOp::create(state.builder, state.at(where));
}

void tma_load(const SharedTile &tile, const TmaTensor &source,
              const std::vector<At> &origin, const Mbarrier &barrier,
              std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  const TileLayout &layout = source.tile();
  const TileLayout &target = tile.layout();
  if (target.type != layout.type || target.rows != layout.rows ||
      target.columns != layout.columns || target.swizzle != layout.swizzle)
    userErrorAt(where, "tensor map '{}' loads tiles {} and the shared tile is "
                       "{}; they must be the same",
                source.name(), layout.to_string(), target.to_string());
  if (origin.size() != static_cast<std::size_t>(source.rank()))
    userErrorAt(where, "tensor map '{}' has {} dimensions; the origin has {}",
                source.name(), source.rank(), origin.size());
  mlir::Location loc = state.at(where);
  for (int panel = 0; panel < layout.panels(); ++panel) {
    Value column = state.resolve(origin.back(), Type::i32);
    mlir::Value address = state.use(tile.address(), where);
    if (panel > 0) {
      column = column + At(panel * layout.panel_columns(), where);
      address = state.offset(
          address, state.constant(Type::i32, panel * layout.panel_bytes(), where),
          where);
    }
    // Innermost first, as the hardware counts.
    llvm::SmallVector<mlir::Value> coordinates = {
        state.use(At(column, where), Type::i32)};
    if (source.rank() == 2)
      coordinates.push_back(state.use(origin[0], Type::i32));
    mlir::Value inCluster = mlir::LLVM::AddrSpaceCastOp::create(
        state.builder, loc, state.pointer(7), address);
    mlir::NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        state.builder, loc, inCluster, state.use(source.map(), where),
        coordinates, state.use(barrier.address(), where), mlir::ValueRange(),
        mlir::Value(), mlir::Value(), mlir::NVVM::TMALoadMode::TILE,
        /*isCTAOnly=*/false, mlir::NVVM::CTAGroupKindAttr(), mlir::Value());
  }
}

void tma_prefetch(const TmaTensor &tensor, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  // nvvm.prefetch of a parameter comes out twice, once per address space.
  state.inlineAsm("prefetch.tensormap [$0];", "l",
                  {state.use(tensor.map(), where)}, nullptr, where);
}

} // namespace kiln
