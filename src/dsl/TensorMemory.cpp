// TensorMemory: allocate, load and store the tensor memory of Blackwell.
//
// Everything is inline assembly: one form serves sm_100a and sm_103a, for which
// NVVM's operations do not verify, and `predicated` applies as everywhere.
#include "dsl/AccumulatorState.h"
#include "dsl/AsmText.h"
#include "kiln/cluster.h"
#include "kiln/control.h"
#include "kiln/math.h"
#include "kiln/tensor_memory.h"
#include "support/Error.h"

#include <bit>

namespace kiln {

static constexpr int kLaneBits = 16; // the lane stands above the column

/// Columns of 32 bits that a row of so many elements takes.
static int words(Type type, int columns) {
  return columns * size_bytes(type) / 4;
}

/// What is freed at the end of the kernel.
static void addDealloc(KernelBuilder::State &state, const Value &base,
                       int columns, const TensorMemoryOptions &options,
                       const Where &where) {
  LocationScope scope(where);
  tensor_fence_before();
  if (options.cta_group == 2)
    cluster_sync();
  else
    sync_threads();
  tensor_fence_after();
  if_(warp_id() == options.warp, [&] {
    state.inlineAsm(fmt::format("tcgen05.dealloc.cta_group::{}.sync.aligned."
                                "b32 $0, {};",
                                options.cta_group, columns),
                    "r,~{memory}", {state.use(base, where)}, nullptr, where);
  });
}

static void checkAllocation(const KernelBuilder::State &state, int columns,
                            const TensorMemoryOptions &options,
                            const Where &where) {
  state.requireTensorCore(TensorCore::tcgen05, "tensor memory", where);
  int most = state.device.tensor_memory_columns;
  if (columns < 32 || columns > most || !std::has_single_bit(unsigned(columns)))
    userErrorAt(where,
                "{} columns of tensor memory; a power of two from 32 to {} can "
                "be allocated",
                columns, most);
  if (options.cta_group != 1 && options.cta_group != 2)
    userErrorAt(where, "a CTA group of {}; 1 or 2 CTAs multiply together",
                options.cta_group);
  if (options.cta_group == 2 && state.clusterCtas() % 2)
    userErrorAt(where,
                "a pair of CTAs multiplies together, and kernel {} has "
                "clusters of {}; give it an even number of CTAs",
                state.name, state.clusterCtas());
  if (options.warp < 0 || options.warp >= state.contract.threads() / 32)
    userErrorAt(where,
                "warp {} allocates tensor memory, and kernel {} has warps 0 to "
                "{}",
                options.warp, state.name, state.contract.threads() / 32 - 1);
  if (state.currentRole || state.isOneThread)
    userErrorAt(where, "tensor memory is allocated outside roles and "
                       "one_thread: all threads synchronise there");
  if (state.tensorMemory)
    userErrorAt(where,
                "tensor memory is allocated once in a kernel, and was at "
                "{}:{}; make tiles of that",
                state.tensorMemory->where.file, state.tensorMemory->where.line);
}

TensorMemory::TensorMemory(KernelBuilder &kb, int columns,
                           const TensorMemoryOptions &options, Where where)
    : columns_(columns), options_(options) {
  KernelBuilder::State &state = kb.state();
  state.checkOpen(where);
  checkAllocation(state, columns, options, where);
  LocationScope scope(where);
  SharedTile place =
      kb.shared({Type::u32, 1, 4}, {.name = "tensor_memory_address"}, where);
  mlir::Value to = state.use(place.address(where), where);
  if_(warp_id() == options.warp, [&] {
    state.inlineAsm(
        fmt::format("tcgen05.alloc.cta_group::{0}.sync.aligned.shared::cta.b32 "
                    "[$0], {1};\n\ttcgen05.relinquish_alloc_permit.cta_group::"
                    "{0}.sync.aligned;",
                    options.cta_group, columns),
        "l,~{memory}", {to}, nullptr, where);
  });
  tensor_fence_before();
  if (options.cta_group == 2)
    cluster_sync();
  else
    sync_threads();
  tensor_fence_after();
  base_ = place(0, 0);
  state.tensorMemory =
      TensorMemoryUse{where, [=, &state, base = base_] {
                        addDealloc(state, base, columns, options, where);
                      }};
}

TensorTile TensorMemory::tile(Type type, int rows, int columns, int first,
                              Where where) const {
  return tiles(type, rows, columns, 1, first, where)[At(0, where)];
}

TensorTileArray TensorMemory::tiles(Type type, int rows, int columns, int count,
                                    int first, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  int size = size_bytes(type);
  if (size != 4 && size != 2)
    userErrorAt(where,
                "a tile of {} in tensor memory; it holds types of 32 and 16 "
                "bits",
                name(type));
  if (rows != 128 && (rows != 64 || options_.cta_group == 2))
    userErrorAt(where,
                "a tile of {} rows in tensor memory; {} are possible with a "
                "CTA group of {}",
                rows, options_.cta_group == 2 ? "128" : "64 or 128",
                options_.cta_group);
  int wide = words(type, columns);
  if (count < 1 || first < 0 || columns < 1 || columns * size % 4 ||
      first + count * wide > columns_)
    userErrorAt(where,
                "{} tiles of {} columns of {} from column {} on; {} columns of "
                "32 bits are allocated",
                count, columns, name(type), first, columns_);
  mlir::Value address = state.use(base_ + At(first, where), where);
  return Make::a<TensorTileArray>(
      Make::a<TensorTile>(state.wrap(address, Type::u32), type, rows, columns,
                          options_.cta_group),
      count);
}

TensorTile TensorTileArray::operator[](At index) const {
  auto &state = KernelBuilder::State::current(index.where());
  auto *literal = std::get_if<std::int64_t>(&index.operand());
  if (literal && (*literal < 0 || *literal >= count_))
    userErrorAt(index.where(), "there is no tile {} in an array of {}",
                *literal, count_);
  if (literal && *literal == 0)
    return first_;
  int wide = words(first_.type(), first_.columns());
  Value offset = state.resolve(index, Type::i32) * At(wide, index.where());
  mlir::Value address =
      mlir::arith::AddIOp::create(state.builder, state.at(index.where()),
                                  state.use(first_.address(), index.where()),
                                  state.use(offset, index.where()));
  return Make::a<TensorTile>(state.wrap(address, Type::u32), first_.type(),
                             first_.rows(), first_.columns(),
                             first_.cta_group());
}

TensorTile TensorTile::slice(int first, int columns, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  int size = size_bytes(type_);
  if (first < 0 || columns < 1 || first + columns > columns_)
    userErrorAt(where,
                "a slice of {} columns from {} leaves the tile, which has {}",
                columns, first, columns_);
  if (first * size % 4 || columns * size % 4)
    userErrorAt(where,
                "a slice of {} columns of {} from {}; tensor memory has "
                "columns of 32 bits",
                columns, name(type_), first);
  mlir::Value address =
      state.use(address_ + At(words(type_, first), where), where);
  return Make::a<TensorTile>(state.wrap(address, Type::u32), type_, rows_,
                             columns, cta_group_);
}

namespace {
/// One instruction that moves `count` registers of each thread.
struct Piece {
  int first, count; ///< registers, and columns of 32 bits
};
} // namespace

/// Pieces of 1 to 128 registers, powers of two.
static std::vector<Piece> piecesOf(int registers) {
  std::vector<Piece> pieces;
  for (int first = 0; first < registers;) {
    int left = registers - first;
    int count = std::min(128, static_cast<int>(std::bit_floor(unsigned(left))));
    pieces.push_back({first, count});
    first += count;
  }
  return pieces;
}

static void checkWarpgroup(const KernelBuilder::State &state, const char *what,
                           const Where &where) {
  if (state.isOneThread)
    userErrorAt(where,
                "{} of tensor memory stands inside one_thread; the 128 threads "
                "of a warpgroup do it together",
                what);
}

/// The address of the lanes that the calling warp may touch.
static mlir::Value warpLanes(KernelBuilder::State &state,
                             const TensorTile &tile, const Where &where) {
  LocationScope scope(where);
  Value lane = (warp_id() & 3) << (kLaneBits + 5);
  return state.use(bitcast(tile.address(), i32) + lane, where);
}

RegisterTile TensorTile::load(Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkWarpgroup(state, "a load", where);
  if (rows_ != 128)
    userErrorAt(where, "a tile of {} rows is loaded; row_per_thread takes 128",
                rows_);
  int count = words(type_, columns_);
  // One piece of assembly with its wait: no use of a register can stand between
  // a load and it.
  std::string text, outputs;
  for (const Piece &piece : piecesOf(count))
    text +=
        fmt::format("tcgen05.ld.sync.aligned.32x32b.x{}.b32 {}, [${}{}];\n",
                    piece.count, registerList(piece.first, piece.count), count,
                    piece.first ? fmt::format("+{}", piece.first) : "");
  text += "tcgen05.wait::ld.sync.aligned;";
  for (int i = 0; i < count; ++i)
    outputs += "=r,";
  mlir::Type word = state.builder.getI32Type();
  mlir::Type result = word;
  if (count > 1)
    result = mlir::LLVM::LLVMStructType::getLiteral(
        state.context.get(), llvm::SmallVector<mlir::Type>(count, word));
  mlir::Value out =
      state.inlineAsm(text, outputs + "r,~{memory}",
                      {warpLanes(state, *this, where)}, result, where);
  std::vector<Value> values;
  for (int i = 0; i < count; ++i) {
    mlir::Value one = count == 1 ? out
                                 : mlir::LLVM::ExtractValueOp::create(
                                       state.builder, state.at(where), out,
                                       llvm::ArrayRef<std::int64_t>{i});
    Value bits = state.wrap(one, Type::u32);
    if (size_bytes(type_) == 4) {
      values.push_back(bitcast(At(bits, where), type_));
    } else {
      for (const Value &half : unpack(At(bits, where), type_))
        values.push_back(half);
    }
  }
  return RegisterTile(RegisterLayout::row_per_thread(rows_, columns_), values,
                      where);
}

void TensorTile::store(const RegisterTile &tile, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkWarpgroup(state, "a store", where);
  if (tile.type() != type_ || tile.rows() != rows_ ||
      tile.columns() != columns_ ||
      !(tile.layout() == RegisterLayout::row_per_thread(rows_, columns_)))
    userErrorAt(where,
                "a tile of {} {} is stored to {}x{} {} of tensor memory; it "
                "must have its shape and type, and a row in each thread "
                "(RegisterLayout::row_per_thread)",
                tile.layout().to_string(), name(tile.type()), rows_, columns_,
                name(type_));
  llvm::SmallVector<mlir::Value> operands = wordsOf(state, tile, where);
  int count = static_cast<int>(operands.size());
  std::string text, constraints;
  for (const Piece &piece : piecesOf(count))
    text += fmt::format("tcgen05.st.sync.aligned.32x32b.x{}.b32 [${}{}], {};\n",
                        piece.count, count,
                        piece.first ? fmt::format("+{}", piece.first) : "",
                        registerList(piece.first, piece.count));
  text += "tcgen05.wait::st.sync.aligned;";
  for (int i = 0; i <= count; ++i)
    constraints += "r,";
  operands.push_back(warpLanes(state, *this, where));
  state.inlineAsm(text, constraints + "~{memory}", operands, nullptr, where);
}

static void addFence(const char *which, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  state.requireTensorCore(TensorCore::tcgen05, "a fence of tensor memory",
                          where);
  state.inlineAsm(fmt::format("tcgen05.fence::{}_thread_sync;", which),
                  "~{memory}", {}, nullptr, where);
}

void tensor_fence_before(Where where) { addFence("before", where); }
void tensor_fence_after(Where where) { addFence("after", where); }

} // namespace kiln
