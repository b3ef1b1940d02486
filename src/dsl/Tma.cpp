// Tma: copies by the tensor memory accelerator, one instruction per box.
#include "kiln/tma.h"
#include "dsl/State.h"
#include "support/Error.h"

namespace kiln {

namespace {
/// One box of a tile: where it lies in shared memory and in the tensor.
struct Box {
  mlir::Value address;
  llvm::SmallVector<mlir::Value> coordinates; ///< innermost first
};
} // namespace

/// Refuse a shared tile that is no tile of the map. `verb`: loads, stores.
static void checkTile(const TmaTensor &tensor, const SharedTile &tile,
                      const char *verb, const std::source_location &where) {
  const TileLayout &layout = tensor.tile();
  const TileLayout &target = tile.layout();
  if (target.type != layout.type || target.rows != layout.rows ||
      target.columns != layout.columns || target.swizzle != layout.swizzle)
    userErrorAt(where,
                "tensor map '{}' {} tiles {} and the shared tile is {}; they "
                "must be the same",
                tensor.name(), verb, layout.to_string(), target.to_string());
}

/// The boxes of the tile at `origin`; without a tile they have no address.
static std::vector<Box> boxesOf(KernelBuilder::State &state,
                                const TmaTensor &tensor,
                                const std::vector<At> &origin,
                                const SharedTile *tile,
                                const std::source_location &where) {
  if (origin.size() != static_cast<std::size_t>(tensor.rank()))
    userErrorAt(where, "tensor map '{}' has {} dimensions; the origin has {}",
                tensor.name(), tensor.rank(), origin.size());
  const TileLayout &layout = tensor.tile();
  std::vector<Box> boxes;
  for (int panel = 0; panel < layout.panels(); ++panel) {
    Box box;
    Value column = state.resolve(origin.back(), Type::i32);
    if (panel > 0)
      column = column + At(panel * layout.panel_columns(), where);
    box.coordinates.push_back(state.use(At(column, where), Type::i32));
    for (std::size_t i = origin.size() - 1; i-- > 0;)
      box.coordinates.push_back(state.use(origin[i], Type::i32));
    if (tile) {
      box.address = state.use(tile->address(), where);
      if (panel > 0)
        box.address = state.offset(
            box.address,
            state.constant(Type::i32, panel * layout.panel_bytes(), where),
            where);
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

/// Copy boxes into this CTA, or into those of `mask`.
static void loadBoxes(KernelBuilder::State &state, const SharedTile &tile,
                      const TmaTensor &source, const std::vector<At> &origin,
                      const Mbarrier &barrier, mlir::Value mask,
                      const std::source_location &where) {
  checkTile(source, tile, "loads", where);
  mlir::Location loc = state.at(where);
  for (const Box &box : boxesOf(state, source, origin, &tile, where)) {
    mlir::Value inCluster = mlir::LLVM::AddrSpaceCastOp::create(
        state.builder, loc, state.pointer(7), box.address);
    mlir::NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        state.builder, loc, inCluster, state.use(source.map(), where),
        box.coordinates, state.use(barrier.address(), where),
        mlir::ValueRange(), mask, mlir::Value(), mlir::NVVM::TMALoadMode::TILE,
        /*isCTAOnly=*/false, mlir::NVVM::CTAGroupKindAttr(), mlir::Value());
  }
}

void tma_load(const SharedTile &tile, const TmaTensor &source,
              const std::vector<At> &origin, const Mbarrier &barrier,
              std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  loadBoxes(state, tile, source, origin, barrier, mlir::Value(), where);
}

void tma_load_multicast(const SharedTile &tile, const TmaTensor &source,
                        const std::vector<At> &origin, const Mbarrier &barrier,
                        At mask, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  int size = state.clusterCtas();
  auto *literal = std::get_if<std::int64_t>(&mask.operand());
  if (literal && (*literal < 1 || *literal >> size))
    userErrorAt(mask.where(),
                "the mask {:#x} does not name CTAs of a cluster of {}; 0x1 to "
                "{:#x} do",
                *literal, size, (1 << size) - 1);
  Value bits = cast(At(state.resolve(mask, Type::i32), where), Type::i16);
  loadBoxes(state, tile, source, origin, barrier, state.use(bits, where),
            where);
}

/// The tensor is one of the kernel's outputs from now on.
static void markWritten(KernelBuilder::State &state, int argument) {
  state.contract.arguments[argument].is_output = true;
}

void tma_store(const TmaTensor &tensor, const std::vector<At> &origin,
               const SharedTile &tile, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  checkTile(tensor, tile, "stores", where);
  for (const Box &box : boxesOf(state, tensor, origin, &tile, where))
    mlir::NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
        state.builder, state.at(where), state.use(tensor.map(), where),
        box.address, box.coordinates, mlir::Value(),
        mlir::NVVM::TMAStoreMode::TILE, mlir::Value());
  markWritten(state, tensor.argument());
}

namespace {
/// A reduction as users, MLIR and PTX know it (PTX, cp.reduce.async.bulk).
struct ReductionKind {
  const char *name;
  mlir::NVVM::TMAReduxKind kind;
  std::vector<Type> types;
};
} // namespace

static const ReductionKind &kindOf(Reduction op) {
  using Kind = mlir::NVVM::TMAReduxKind;
  static const std::vector<Type> ordered = {Type::i32, Type::u32, Type::i64,
                                            Type::u64, Type::f16, Type::bf16};
  static const std::vector<Type> bits = {Type::i32, Type::u32, Type::i64,
                                         Type::u64};
  // In the order of the enumeration.
  static const ReductionKind kinds[] = {
      {"add",
       Kind::ADD,
       {Type::i32, Type::u32, Type::u64, Type::f16, Type::bf16, Type::f32,
        Type::f64}},
      {"min", Kind::MIN, ordered},
      {"max", Kind::MAX, ordered},
      {"inc", Kind::INC, {Type::u32}},
      {"dec", Kind::DEC, {Type::u32}},
      {"bit_and", Kind::AND, bits},
      {"bit_or", Kind::OR, bits},
      {"bit_xor", Kind::XOR, bits},
  };
  return kinds[static_cast<int>(op)];
}

/// "i32, u32"
static std::string describe(const std::vector<Type> &types) {
  std::string text;
  for (Type type : types)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name(type));
  return text;
}

void tma_reduce_store(Reduction op, const TmaTensor &tensor,
                      const std::vector<At> &origin, const SharedTile &tile,
                      std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  const ReductionKind &kind = kindOf(op);
  Type type = tensor.tile().type;
  if (std::find(kind.types.begin(), kind.types.end(), type) == kind.types.end())
    userErrorAt(where, "TMA cannot reduce '{}' of {} by {}; it takes {}",
                tensor.name(), name(type), kind.name, describe(kind.types));
  checkTile(tensor, tile, "stores", where);
  for (const Box &box : boxesOf(state, tensor, origin, &tile, where))
    mlir::NVVM::CpAsyncBulkTensorReduceOp::create(
        state.builder, state.at(where), state.use(tensor.map(), where),
        box.address, kind.kind, mlir::NVVM::TMAStoreMode::TILE, box.coordinates,
        mlir::Value());
  markWritten(state, tensor.argument());
}

void tma_store_commit(std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::CpAsyncBulkCommitGroupOp::create(state.builder, state.at(where));
}

/// cp.async.bulk.wait_group, of the reads alone or of the writes too.
static void waitGroups(int groups, bool isRead,
                       const std::source_location &where) {
  auto &state = KernelBuilder::State::current(where);
  if (groups < 0)
    userErrorAt(where, "{} groups of stores cannot be in flight; 0 or more can",
                groups);
  mlir::NVVM::CpAsyncBulkWaitGroupOp::create(
      state.builder, state.at(where), static_cast<std::uint32_t>(groups),
      isRead ? state.builder.getUnitAttr() : mlir::UnitAttr());
}

void tma_store_wait(int groups, std::source_location where) {
  waitGroups(groups, /*isRead=*/false, where);
}

void tma_store_wait_read(int groups, std::source_location where) {
  waitGroups(groups, /*isRead=*/true, where);
}

void tma_prefetch(const TmaTensor &tensor, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  // nvvm.prefetch of a parameter comes out twice, once per address space.
  state.inlineAsm("prefetch.tensormap [$0];", "l",
                  {state.use(tensor.map(), where)}, nullptr, where);
}

void tma_prefetch_tile(const TmaTensor &source, const std::vector<At> &origin,
                       std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  for (const Box &box : boxesOf(state, source, origin, nullptr, where))
    mlir::NVVM::CpAsyncBulkTensorPrefetchOp::create(
        state.builder, state.at(where), state.use(source.map(), where),
        box.coordinates, mlir::ValueRange(), mlir::NVVM::TMALoadMode::TILE,
        mlir::Value());
}

/// The size of a plain copy, checked against the tile where it is a literal.
static mlir::Value useBytes(KernelBuilder::State &state, const At &bytes,
                            const SharedTile &tile,
                            const std::source_location &where) {
  const TileLayout &layout = tile.layout();
  if (layout.swizzle != Swizzle::none)
    userErrorAt(where,
                "bulk_copy knows no swizzle, and the shared tile is {}; use a "
                "tensor map or a tile without one",
                layout.to_string());
  auto *literal = std::get_if<std::int64_t>(&bytes.operand());
  if (literal &&
      (*literal < 16 || *literal % 16 != 0 || *literal > layout.bytes()))
    userErrorAt(bytes.where(),
                "bulk_copy of {} bytes with a tile of {}; it takes a multiple "
                "of 16 up to that",
                *literal, layout.bytes());
  return state.use(bytes, Type::i32);
}

/// The address of an element; its buffer must begin on 16 bytes.
static mlir::Value useElement(KernelBuilder::State &state, const Tensor &tensor,
                              const std::vector<At> &origin,
                              const std::source_location &where) {
  ArgumentSpec &argument = state.contract.arguments[tensor.argument()];
  argument.alignment_bytes = std::max(argument.alignment_bytes, 16);
  return state.use(tensor.at(origin).address(), where);
}

void bulk_copy(const SharedTile &to, const Tensor &from,
               const std::vector<At> &origin, At bytes, const Mbarrier &barrier,
               std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value size = useBytes(state, bytes, to, where);
  mlir::Location loc = state.at(where);
  mlir::Value inCluster = mlir::LLVM::AddrSpaceCastOp::create(
      state.builder, loc, state.pointer(7), state.use(to.address(), where));
  mlir::NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
      state.builder, loc, inCluster, useElement(state, from, origin, where),
      state.use(barrier.address(), where), size, mlir::Value(), mlir::Value());
}

void bulk_copy(const Tensor &to, const std::vector<At> &origin,
               const SharedTile &from, At bytes, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value size = useBytes(state, bytes, from, where);
  mlir::NVVM::CpAsyncBulkSharedCTAToGlobalOp::create(
      state.builder, state.at(where), useElement(state, to, origin, where),
      state.use(from.address(), where), size, mlir::Value(), mlir::Value());
  markWritten(state, to.argument());
}

} // namespace kiln
