// Tma: copies by the tensor memory accelerator, one instruction per box.
#include "kiln/language/memory/tma.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include <bit>

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
                      const char *verb, const Where &where) {
  const TileLayout &layout = tensor.tile();
  TileLayout target = tile.layout();
  target.rows = tile.is_transposed() ? tile.columns() : tile.rows();
  target.columns = tile.is_transposed() ? tile.rows() : tile.columns();
  if (target.type != layout.type || target.rows != layout.rows ||
      target.columns != layout.columns || target.swizzle != layout.swizzle ||
      target.panel != layout.panel)
    userErrorAt(where,
                "tensor map '{}' {} tiles {} and the shared tile is {}; they "
                "must be the same",
                tensor.name(), verb, layout.to_string(), target.to_string());
  if (tile.is_whole())
    return;
  bool isAligned = tile.origin_row() % 8 == 0 && target.rows % 8 == 0 &&
                   tile.origin_column() % layout.panel_columns() == 0;
  if (!isAligned)
    userErrorAt(where,
                "tensor map '{}' {} a part of {} at ({}, {}); TMA takes rows "
                "in multiples of 8 and columns in multiples of {}",
                tensor.name(), verb, tile.layout().to_string(),
                tile.origin_row(), tile.origin_column(),
                layout.panel_columns());
}

/// Where a panel of the tile begins. At a row that begins a pattern of 8 the
/// swizzle moves nothing.
static mlir::Value panelAddress(KernelBuilder::State &state,
                                const SharedTile &tile, int panel,
                                const Where &where) {
  if (!tile.is_whole()) {
    SharedTile stored = tile.is_transposed() ? tile.transpose() : tile;
    int column = panel * tile.layout().panel_columns();
    return state.use(stored(At(0, where), At(column, where)).address(), where);
  }
  mlir::Value address = state.use(tile.address(where), where);
  if (panel == 0)
    return address;
  int bytes = panel * tile.layout().panel_bytes();
  return state.offset(address, state.constant(Type::i32, bytes, where), where);
}

/// The boxes of the tile at `origin`; without a tile they have no address.
static std::vector<Box> boxesOf(KernelBuilder::State &state,
                                const TmaTensor &tensor,
                                const std::vector<At> &origin,
                                const SharedTile *tile, const Where &where) {
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
    if (layout.type == Type::e2m1) // the map counts bytes
      column = column >> At(1, where);
    box.coordinates.push_back(state.use(At(column, where), Type::i32));
    for (std::size_t i = origin.size() - 1; i-- > 0;)
      box.coordinates.push_back(state.use(origin[i], Type::i32));
    if (tile)
      box.address = panelAddress(state, *tile, panel, where);
    boxes.push_back(std::move(box));
  }
  return boxes;
}

namespace {
/// The text of one copy as it grows: `{}` of an operand is its number.
struct CopyText {
  KernelBuilder::State &state;
  Where where;
  std::string constraints = "";
  llvm::SmallVector<mlir::Value> operands = {};

  /// Add an operand in the register `constraint` asks for; "$2".
  std::string operand(mlir::Value value, char constraint) {
    operands.push_back(value);
    constraints += fmt::format("{},", constraint);
    return fmt::format("${}", operands.size() - 1);
  }
  /// "[map, {$1, $2}]"
  std::string place(const TmaTensor &tensor, const Box &box) {
    std::string map = operand(state.use(tensor.map(), where), 'l'), list;
    for (mlir::Value coordinate : box.coordinates)
      list += fmt::format("{}{}", list.empty() ? "" : ", ",
                          operand(coordinate, 'r'));
    return fmt::format("[{}, {{{}}}]", map, list);
  }
  std::string address(mlir::Value value) {
    return fmt::format("[{}]", operand(value, 'l'));
  }
  /// End the instruction with the tensor's policy, where it has one.
  void finish(const std::string &opcode, const std::string &arguments,
              const Value &policy) {
    std::string hint = policy.is_valid()
                           ? ", " + operand(state.use(policy, where), 'l')
                           : std::string();
    state.inlineAsm(fmt::format("{}{} {}{};", opcode,
                                hint.empty() ? "" : ".L2::cache_hint",
                                arguments, hint),
                    constraints + "~{memory}", operands, nullptr, where);
  }
};
} // namespace

namespace {
/// Who gets what is loaded, and who hears of it.
struct LoadTarget {
  mlir::Value mask = {}; ///< CTAs of the cluster; null: this one
  bool isPaired = false; ///< the barrier may be the other CTA's of the pair
};
} // namespace

/// A copy of a box is issued by one thread; `barrier` null: it has none.
static void requireOneThread(KernelBuilder::State &state, const char *what,
                             const Box &box, mlir::Value barrier,
                             const Where &where) {
  llvm::SmallVector<mlir::Value> operands = box.coordinates;
  operands.push_back(box.address);
  if (barrier)
    operands.push_back(barrier);
  requireOneThread(state, what, operands, where);
}

/// Copy boxes into this CTA, or into those of a mask.
static void loadBoxes(KernelBuilder::State &state, const char *what,
                      const SharedTile &tile, const TmaTensor &source,
                      const std::vector<At> &origin, const Value &barrier,
                      const LoadTarget &target, const Where &where) {
  checkTile(source, tile, "loads", where);
  for (const Box &box : boxesOf(state, source, origin, &tile, where)) {
    requireOneThread(state, what, box, state.use(barrier, where), where);
    CopyText copy{state, where};
    std::string to = copy.address(box.address), from = copy.place(source, box);
    std::string arguments = fmt::format(
        "{}, {}, {}", to, from, copy.address(state.use(barrier, where)));
    if (target.mask)
      arguments += ", " + copy.operand(target.mask, 'h');
    // Of shared::cluster ptxas makes a call on sm_120, and then ignores
    // setmaxnreg (C7506).
    bool isOwn = state.multipliesByWarps() && !target.mask;
    copy.finish(fmt::format("cp.async.bulk.tensor.{}d.shared::{}.global.tile."
                            "mbarrier::complete_tx::bytes{}{}",
                            source.rank(), isOwn ? "cta" : "cluster",
                            target.mask ? ".multicast::cluster" : "",
                            target.isPaired ? ".cta_group::2" : ""),
                arguments, source.policy());
  }
}

/// Copy boxes out of shared memory; `opcode` up to the rank, and what follows.
static void storeBoxes(KernelBuilder::State &state, const char *what,
                       const TmaTensor &tensor, const std::vector<At> &origin,
                       const SharedTile &tile, const std::string &opcode,
                       const std::string &combine, const Where &where) {
  checkTile(tensor, tile, "stores", where);
  for (const Box &box : boxesOf(state, tensor, origin, &tile, where)) {
    requireOneThread(state, what, box, nullptr, where);
    CopyText copy{state, where};
    std::string to = copy.place(tensor, box);
    copy.finish(fmt::format("{}.tensor.{}d.global.shared::cta{}.tile."
                            "bulk_group",
                            opcode, tensor.rank(), combine),
                fmt::format("{}, {}", to, copy.address(box.address)),
                tensor.policy());
  }
  state.markWritten(tensor.argument());
}

void tma_load(const SharedTile &tile, const TmaTensor &source,
              const std::vector<At> &origin, const Mbarrier &barrier,
              Where where) {
  auto &state = KernelBuilder::State::current(where);
  loadBoxes(state, "tma_load", tile, source, origin, barrier.address(), {},
            where);
}

void tma_load_multicast(const SharedTile &tile, const TmaTensor &source,
                        const std::vector<At> &origin, const Mbarrier &barrier,
                        At mask, Where where) {
  auto &state = KernelBuilder::State::current(where);
  loadBoxes(state, "tma_load_multicast", tile, source, origin,
            barrier.address(), {.mask = state.ctaMask(mask, where)}, where);
}

void tma_load(const SharedTile &tile, const TmaTensor &source,
              const std::vector<At> &origin, const RemoteMbarrier &barrier,
              Where where) {
  auto &state = KernelBuilder::State::current(where);
  state.requireTensorCore(TensorCore::tcgen05,
                          "a load that signals another CTA of its pair", where);
  loadBoxes(state, "tma_load", tile, source, origin, barrier.address(),
            {.isPaired = true}, where);
}

void tma_store(const TmaTensor &tensor, const std::vector<At> &origin,
               const SharedTile &tile, Where where) {
  storeBoxes(KernelBuilder::State::current(where), "tma_store", tensor, origin,
             tile, "cp.async.bulk", "", where);
}

namespace {
/// A reduction as users and PTX know it (PTX, cp.reduce.async.bulk).
struct ReductionKind {
  const char *name, *ptx;
  std::vector<Type> types;
};
} // namespace

static const ReductionKind &kindOf(Reduction op) {
  static const std::vector<Type> ordered = {Type::i32, Type::u32, Type::i64,
                                            Type::u64, Type::f16, Type::bf16};
  static const std::vector<Type> bits = {Type::i32, Type::u32, Type::i64,
                                         Type::u64};
  // In the order of the enumeration.
  static const ReductionKind kinds[] = {
      {"add",
       "add",
       {Type::i32, Type::u32, Type::u64, Type::f16, Type::bf16, Type::f32,
        Type::f64}},
      {"min", "min", ordered},
      {"max", "max", ordered},
      {"inc", "inc", {Type::u32}},
      {"dec", "dec", {Type::u32}},
      {"bit_and", "and", bits},
      {"bit_or", "or", bits},
      {"bit_xor", "xor", bits},
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
                      Where where) {
  auto &state = KernelBuilder::State::current(where);
  const ReductionKind &kind = kindOf(op);
  Type type = tensor.tile().type;
  if (std::find(kind.types.begin(), kind.types.end(), type) == kind.types.end())
    userErrorAt(where, "TMA cannot reduce '{}' of {} by {}; it takes {}",
                tensor.name(), name(type), kind.name, describe(kind.types));
  storeBoxes(state, "tma_reduce_store", tensor, origin, tile,
             "cp.reduce.async.bulk", fmt::format(".{}", kind.ptx), where);
}

void tma_store_commit(Where where) {
  KernelBuilder::State::current(where).inlineAsm(
      "cp.async.bulk.commit_group;", "~{memory}", {}, nullptr, where);
}

/// cp.async.bulk.wait_group, of the reads alone or of the writes too.
static void waitGroups(int groups, bool isRead, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (groups < 0)
    userErrorAt(where, "{} groups of stores cannot be in flight; 0 or more can",
                groups);
  state.inlineAsm(fmt::format("cp.async.bulk.wait_group{} {};",
                              isRead ? ".read" : "", groups),
                  "~{memory}", {}, nullptr, where);
}

void tma_store_wait(int groups, Where where) {
  waitGroups(groups, /*isRead=*/false, where);
}

void tma_store_wait_read(int groups, Where where) {
  waitGroups(groups, /*isRead=*/true, where);
}

void tma_prefetch(const TmaTensor &tensor, Where where) {
  auto &state = KernelBuilder::State::current(where);
  // nvvm.prefetch of a parameter comes out twice, once per address space.
  state.inlineAsm("prefetch.tensormap [$0];", "l",
                  {state.use(tensor.map(), where)}, nullptr, where);
}

void tma_prefetch_tile(const TmaTensor &source, const std::vector<At> &origin,
                       Where where) {
  auto &state = KernelBuilder::State::current(where);
  for (const Box &box : boxesOf(state, source, origin, nullptr, where)) {
    CopyText copy{state, where};
    std::string from = copy.place(source, box);
    copy.finish(fmt::format("cp.async.bulk.prefetch.tensor.{}d.L2.global.tile",
                            source.rank()),
                from, source.policy());
  }
}

Value l2_policy(L2Eviction eviction, double fraction, Where where) {
  static constexpr const char *kNames[] = {"evict_normal", "evict_first",
                                           "evict_last", "evict_unchanged"};
  auto &state = KernelBuilder::State::current(where);
  if (!(fraction > 0 && fraction <= 1))
    userErrorAt(where,
                "an L2 policy for {} of the lines; a fraction above 0 and up "
                "to 1 is possible",
                fraction);
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(fraction));
  mlir::Value policy = state.pureAsm(
      fmt::format("createpolicy.fractional.L2::{}.b64 $0, 0f{:08X};",
                  kNames[static_cast<int>(eviction)], bits),
      "=l", {}, state.builder.getI64Type(), where);
  return state.wrap(policy, Type::u64);
}

TmaTensor TmaTensor::with_policy(const Value &policy, Where where) const {
  KernelBuilder::State::current(where).use(At(policy, where), Type::u64);
  TmaTensor result = *this;
  result.policy_ = policy;
  return result;
}

/// The size of a plain copy, checked against the tile where it is a literal.
static mlir::Value useBytes(KernelBuilder::State &state, const At &bytes,
                            const SharedTile &tile, const Where &where) {
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
                              const Where &where) {
  state.needAlignment(tensor.argument(), 16);
  return state.use(tensor.at(origin).address(), where);
}

void bulk_copy(const SharedTile &to, const Tensor &from,
               const std::vector<At> &origin, At bytes, const Mbarrier &barrier,
               Where where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value size = useBytes(state, bytes, to, where);
  CopyText copy{state, where};
  std::string target = copy.address(state.use(to.address(where), where));
  std::string source = copy.address(useElement(state, from, origin, where));
  std::string count = copy.operand(size, 'r');
  std::string signal = copy.address(state.use(barrier.address(), where));
  requireOneThread(state, "bulk_copy", copy.operands, where);
  copy.finish("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
              "bytes",
              fmt::format("{}, {}, {}, {}", target, source, count, signal), {});
}

void bulk_copy(const Tensor &to, const std::vector<At> &origin,
               const SharedTile &from, At bytes, Where where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value size = useBytes(state, bytes, from, where);
  CopyText copy{state, where};
  std::string target = copy.address(useElement(state, to, origin, where));
  std::string source = copy.address(state.use(from.address(where), where));
  std::string count = copy.operand(size, 'r');
  requireOneThread(state, "bulk_copy", copy.operands, where);
  copy.finish("cp.async.bulk.global.shared::cta.bulk_group",
              fmt::format("{}, {}, {}", target, source, count), {});
  state.markWritten(to.argument());
}

} // namespace kiln
