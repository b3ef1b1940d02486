// TensorMemory: allocate the tensor memory of Blackwell, and cut it into tiles.
//
// Everything is inline assembly: one form serves sm_100a and sm_103a, for which
// NVVM's operations do not verify, and `predicated` applies as everywhere.
#include "dsl/kernel/State.h"
#include "kiln/language/threads/cluster.h"
#include "kiln/language/value/control.h"
#include "kiln/language/tensorcore/tensor_memory.h"
#include "support/Error.h"

#include <bit>

namespace kiln {

int TensorTile::words(int columns) const {
  return is_spread_ ? columns : columns * size_bytes(type_) / 4;
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

/// Refuse rows that no tile of sums or of an operand has.
static void checkRows(int rows, int ctaGroup, const Where &where) {
  if (rows != 128 && (rows != 64 || ctaGroup == 2))
    userErrorAt(where,
                "a tile of {} rows in tensor memory; {} are possible with a "
                "CTA group of {}",
                rows, ctaGroup == 2 ? "128" : "64 or 128", ctaGroup);
}

TensorTile TensorMemory::tile(Type type, int rows, int columns, int first,
                              Where where) const {
  return tiles(type, rows, columns, 1, first, where)[At(0, where)];
}

TensorTile TensorMemory::half_sums(int rows, int columns, int first,
                                   Where where) const {
  // As f32 takes them: a column of 32 bits each.
  TensorTile words = tile(Type::f32, rows, columns, first, where);
  return Make::a<TensorTile>(words.address(), Type::f16, rows, columns,
                             options_.cta_group, /*is_spread=*/true);
}

TensorScales TensorMemory::scales(Type type, int rows, int blocks, int first,
                                  Where where) const {
  auto &state = KernelBuilder::State::current(where);
  if (type != Type::ue8m0 && type != Type::ue4m3)
    userErrorAt(where,
                "factors of type {} in tensor memory; use ue8m0 or "
                "ue4m3",
                name(type));
  if (rows < kScalePieceRows || rows % kScalePieceRows ||
      blocks < kScalePieceBlocks || blocks % kScalePieceBlocks)
    userErrorAt(where,
                "factors of {} rows and {} blocks of K; use multiples of {} "
                "rows and of {} blocks",
                rows, blocks, kScalePieceRows, kScalePieceBlocks);
  int wide = tensor_scale_columns(rows, blocks);
  if (first < 0 || first + wide > columns_)
    userErrorAt(where,
                "factors of {} rows and {} blocks take {} columns from {} on; "
                "{} columns are allocated",
                rows, blocks, wide, first, columns_);
  mlir::Value address = state.use(base_ + At(first, where), where);
  return Make::a<TensorScales>(state.wrap(address, Type::u32), type, rows,
                               blocks, rows / 32, options_.cta_group);
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
  checkRows(rows, options_.cta_group, where);
  int wide = columns * size / 4;
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
  int wide = first_.columns() * size_bytes(first_.type()) / 4;
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
  int size = is_spread_ ? 4 : size_bytes(type_);
  if (first < 0 || columns < 1 || first + columns > columns_)
    userErrorAt(where,
                "a slice of {} columns from {} leaves the tile, which has {}",
                columns, first, columns_);
  if (first * size % 4 || columns * size % 4)
    userErrorAt(where,
                "a slice of {} columns of {} from {}; tensor memory has "
                "columns of 32 bits",
                columns, name(type_), first);
  mlir::Value address = state.use(address_ + At(words(first), where), where);
  return Make::a<TensorTile>(state.wrap(address, Type::u32), type_, rows_,
                             columns, cta_group_, is_spread_);
}

static void addTensorFence(const char *which, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  state.requireTensorCore(TensorCore::tcgen05, "a fence of tensor memory",
                          where);
  state.inlineAsm(fmt::format("tcgen05.fence::{}_thread_sync;", which),
                  "~{memory}", {}, nullptr, where);
}

void tensor_fence_before(Where where) { addTensorFence("before", where); }
void tensor_fence_after(Where where) { addTensorFence("after", where); }

} // namespace kiln
