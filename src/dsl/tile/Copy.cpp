// Copy: tiles from memory to memory by way of registers, in pieces that fit
// there.
#include "dsl/tile/Copy.h"
#include "dsl/kernel/State.h"
#include "dsl/tile/TileMemory.h"
#include "dsl/tile/WordCopy.h"
#include "kiln/language/value/control.h"
#include "support/Error.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace kiln {

/// Bytes of registers a thread spends on one piece: loads enough in flight to
/// hide their time, and few enough not to be missed.
static constexpr int kPieceBytes = 128;
/// The same where each access has an address of its own in registers too.
static constexpr int kFewPieceBytes = 16;

static int pieceBytes(const Tensor &tensor) {
  for (const Dim &stride : tensor.strides())
    if (!stride.is_constant())
      return kFewPieceBytes;
  return kPieceBytes;
}

static const char *nameOf(CopyScope scope) {
  switch (scope) {
  case CopyScope::thread:
    return "thread";
  case CopyScope::warp:
    return "warp";
  case CopyScope::warpgroup:
    return "warpgroup";
  case CopyScope::cta:
    break;
  }
  return "cta";
}

static int threadsOf(CopyScope scope, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  int cta = state.contract.threads();
  int threads = scope == CopyScope::thread      ? 1
                : scope == CopyScope::warp      ? 32
                : scope == CopyScope::warpgroup ? 128
                                                : cta;
  if (cta % threads != 0)
    userErrorAt(where,
                "copy by a {} of {} threads, and the {} of kernel {} are not "
                "multiples of them",
                nameOf(scope), threads, cta, state.name);
  return threads;
}

/// Which of those threads this one is.
static Value threadOf(CopyScope scope, const Where &where) {
  switch (scope) {
  case CopyScope::thread:
    return constant(Type::i32, At(0, where));
  case CopyScope::warp:
    return lane_id(where);
  case CopyScope::warpgroup:
    return warpgroup_thread_id(where);
  case CopyScope::cta:
    break;
  }
  return thread_id(Axis::x, where);
}

/// Columns that are copied together, of so many vectors: all, if a warp can
/// take a row of them, or whole lanes of it; else a power of two of them, so
/// that neighbours still take long pieces of a row.
static int vectorsTogether(int vectors, int threads) {
  constexpr int kLanes = 32;
  bool isEven =
      std::gcd(vectors, threads) >= std::min({vectors, threads, kLanes});
  return isEven ? vectors : static_cast<int>(std::bit_floor(unsigned(vectors)));
}

/// Both ends of a copy, in vectors along the rows of both.
static void copyColumns(int threads, TileMemory to, TileMemory from,
                        TileSize shape, int vector, int pieceBytes,
                        const Where &where) {
  int together = threads / std::gcd(threads, shape.columns / vector);
  int perStep = shape.columns * together / threads * size_bytes(to.type);
  int steps = std::max(1, pieceBytes / perStep);
  int needed = (shape.rows + together - 1) / together;
  int pieceRows = together * std::min(steps, needed);
  // The last rows of the last piece may lie below the tile.
  if (shape.rows % pieceRows != 0) {
    Value rows = constant(Type::i32, At(shape.rows, where));
    to.rowBound = to.rowBound ? min(*to.rowBound, At(rows, where)) : rows;
    from.rowBound = from.rowBound ? min(*from.rowBound, At(rows, where)) : rows;
  }
  RegisterLayout layout =
      RegisterLayout::strided(threads, pieceRows, shape.columns, vector, where);
  auto copyPiece = [&](const TileMemory &out, const TileMemory &in) {
    RegisterTile piece(in.type, layout, where);
    loadAtOnce(piece, in, where);
    storeAtOnce(piece, out, where);
  };
  if (shape.rows <= pieceRows)
    return copyPiece(to, from);
  for_range(At(0, where), At(shape.rows, where), At(pieceRows, where),
            [&](const Value &first) {
              copyPiece(to.below(first, where), from.below(first, where));
            });
}

/// Both ends of a copy, walked along the rows of the destination.
static void copyMemory(CopyScope scope, TileMemory to, TileMemory from,
                       TileSize shape, int pieceBytes, const Where &where) {
  int threads = threadsOf(scope, where);
  checkType("copy", from.type, to.type, where);
  if (to.isTransposed)
    std::swap(shape.rows, shape.columns);
  if (from.isTransposed != to.isTransposed)
    from = from.transposed();
  // From here on rows are rows of both.
  to.isTransposed = from.isTransposed = false;
  int vector = std::gcd(std::gcd(to.vector, from.vector), shape.columns);
  for (int first = 0, columns = 0; first < shape.columns; first += columns) {
    columns =
        vectorsTogether((shape.columns - first) / vector, threads) * vector;
    copyColumns(threads, to.rightOf(first, where), from.rightOf(first, where),
                {shape.rows, columns}, vector, pieceBytes, where);
  }
}

/// "{m, 16}"
static std::string describe(const Tensor &tensor) {
  std::string text;
  for (const Dim &dim : tensor.shape())
    text += (text.empty() ? "" : ", ") + dim.to_string();
  return "{" + text + "}";
}

/// A tensor from its first element on.
static TileMemory memoryOf(const Tensor &tensor, TileSize size,
                           const Where &where) {
  return memoryOf("copy", tensor, {At(0, where), At(0, where)}, size, {},
                  where);
}

void copy(CopyScope scope, const SharedTile &to, const Tensor &from,
          Where where) {
  KernelBuilder::State::current(where);
  LocationScope location(where);
  TileSize size{to.rows(), to.columns()};
  TileMemory memory = memoryOf(from, size, where);
  int threads = threadsOf(scope, where);
  checkType("copy", memory.type, to.layout().type, where);
  constexpr int kWidest = 16; // bytes of a vector
  int bytes = memory.vector * size_bytes(memory.type);
  if (bytes < kWidest && canCopyWords(to, from, threads))
    return copyWords(to, from, bytes >= 4, threads, threadOf(scope, where),
                     where);
  copyMemory(scope, memoryOf(to, where), memory, size, pieceBytes(from), where);
}

void copy(CopyScope scope, const Tensor &to, const SharedTile &from,
          Where where) {
  copyInPieces(kPieceBytes, scope, to, from, where);
}

void copyInPieces(int bytes, CopyScope scope, const Tensor &to,
                  const SharedTile &from, const Where &where) {
  KernelBuilder::State::current(where);
  LocationScope location(where);
  TileSize size{from.rows(), from.columns()};
  copyMemory(scope, memoryOf(to, size, where), memoryOf(from, where), size,
             std::min(bytes, pieceBytes(to)), where);
}

void copy(CopyScope scope, const SharedTile &to, const SharedTile &from,
          Where where) {
  KernelBuilder::State::current(where);
  LocationScope location(where);
  if (to.rows() != from.rows() || to.columns() != from.columns())
    userErrorAt(where,
                "copy of a shared tile of {}x{} to one of {}x{}; they have one "
                "shape",
                from.rows(), from.columns(), to.rows(), to.columns());
  copyMemory(scope, memoryOf(to, where), memoryOf(from, where),
             {to.rows(), to.columns()}, kPieceBytes, where);
}

void copy(CopyScope scope, const Tensor &to, const Tensor &from, Where where) {
  KernelBuilder::State::current(where);
  LocationScope location(where);
  std::vector<int> sides;
  for (std::size_t i = 0; i < to.shape().size(); ++i) {
    const Dim &size = to.shape()[i];
    if (from.shape().size() != to.shape().size() || !size.is_constant() ||
        size != from.shape()[i])
      userErrorAt(where,
                  "copy of a tensor of {} to one of {}; both have one constant "
                  "shape: `slice` gives it",
                  describe(from), describe(to));
    sides.push_back(static_cast<int>(size.constant()));
  }
  sides.resize(2, 1); // another rank is refused below
  TileSize size{sides[0], sides[1]};
  copyMemory(scope, memoryOf(to, size, where), memoryOf(from, size, where),
             size, std::min(pieceBytes(to), pieceBytes(from)), where);
}

/// Refuse a register tile of other threads than the scope's.
static void checkScope(CopyScope scope, const RegisterTile &tile,
                       const Where &where) {
  int threads = threadsOf(scope, where);
  if (tile.layout().threads() != threads)
    userErrorAt(where,
                "copy by a {} of {} threads, and the layout of the register "
                "tile is of {}: {}",
                nameOf(scope), threads, tile.layout().threads(),
                tile.layout().to_string());
}

void copy(CopyScope scope, RegisterTile &to, const SharedTile &from,
          Where where) {
  checkScope(scope, to, where);
  to = load_tile(to.layout(), from, where);
}

void copy(CopyScope scope, RegisterTile &to, const Tensor &from, Where where) {
  checkScope(scope, to, where);
  to = load_tile(to.layout(), from, {At(0, where), At(0, where)}, {}, where);
}

void copy(CopyScope scope, const SharedTile &to, const RegisterTile &from,
          Where where) {
  checkScope(scope, from, where);
  from.store(to, where);
}

void copy(CopyScope scope, const Tensor &to, const RegisterTile &from,
          Where where) {
  checkScope(scope, from, where);
  from.store(to, {At(0, where), At(0, where)}, {}, where);
}

void copy(CopyScope scope, RegisterTile &to, const RegisterTile &from,
          Where where) {
  checkScope(scope, from, where);
  to = from;
}

} // namespace kiln
