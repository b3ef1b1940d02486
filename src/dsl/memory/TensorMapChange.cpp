// TensorMapChange: tensor maps made in a kernel, from one of its parameters.
//
// The words of the map are copied into global memory, fields are replaced
// there, and a pair of fences shows it to TMA, which reads maps through a proxy
// of its own.
#include "dsl/kernel/LocationScope.h"
#include "dsl/kernel/State.h"
#include "kiln/language/value/control.h"
#include "kiln/language/memory/memory.h"
#include "kiln/language/threads/threads.h"
#include "kiln/language/threads/warp.h"
#include "support/Error.h"

namespace kiln {

static constexpr int kMapBytes = 128, kMapWordBytes = 8;

namespace {
/// A map in global memory on its way.
class ChangedMap {
public:
  ChangedMap(mlir::Value room, const Where &where)
      : state_(KernelBuilder::State::current(where)), room_(room),
        where_(where) {}

  /// One lane per word.
  void copyFrom(mlir::Value map, const Value &lane) {
    Value bytes = lane * At(kMapWordBytes, where_);
    mlir::Value offset = state_.use(bytes, where_);
    predicated(At(lane < At(kMapBytes / kMapWordBytes, where_), where_), [&] {
      mlir::Value word = state_.inlineAsm("ld.b64 $0, [$1];", "=l,l,~{memory}",
                                          {state_.offset(map, offset, where_)},
                                          state_.lower(Type::u64), where_);
      state_.inlineAsm("st.global.b64 [$0], $1;", "l,l,~{memory}",
                       {state_.offset(room_, offset, where_), word}, nullptr,
                       where_);
    });
  }

  /// `field`: "global_address" or "global_dim"; `index` where it has several.
  void replace(const char *field, int bits, mlir::Value value,
               std::optional<std::size_t> index = {}) {
    state_.inlineAsm(
        fmt::format("tensormap.replace.tile.{}.global.b1024.b{} [$0], {}$1;",
                    field, bits, index ? fmt::format("{}, ", *index) : ""),
        bits == 64 ? "l,l,~{memory}" : "l,r,~{memory}", {room_, value}, nullptr,
        where_);
  }

  void release() {
    state_.inlineAsm("fence.proxy.tensormap::generic.release.gpu;", "~{memory}",
                     {}, nullptr, where_);
  }
  void acquire() {
    state_.inlineAsm(
        fmt::format("fence.proxy.tensormap::generic.acquire.gpu [$0], {};",
                    kMapBytes),
        "l,~{memory}", {room_}, nullptr, where_);
  }

private:
  KernelBuilder::State &state_;
  mlir::Value room_;
  Where where_;
};
} // namespace

/// A list of the change is empty or says something of each dimension it is of.
static void checkCount(const std::string &name, const char *what,
                       std::size_t count, int expected, const Where &where) {
  if (count != 0 && count != static_cast<std::size_t>(expected))
    userErrorAt(where,
                "TmaTensor::at of tensor map '{}' was given {} {}; it takes {} "
                "or none",
                name, count, what, expected);
}

TmaTensor TmaTensor::at(At address, const Element &room,
                        const TensorMapChange &change, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  LocationScope location(where);
  checkCount(name_, "extents", change.shape.size(), rank_, where);
  checkCount(name_, "strides", change.strides.size(), rank_ - 1, where);
  if (is_subbyte(tile_.type) &&
      (!change.shape.empty() || !change.strides.empty()))
    userErrorAt(where,
                "TmaTensor::at of tensor map '{}' changes the shape or the "
                "strides of elements of {}, which share bytes; change its "
                "address alone",
                name_, kiln::name(tile_.type));
  if (room.is_shared())
    userErrorAt(where,
                "TmaTensor::at of tensor map '{}' was given room in shared "
                "memory; TMA reads maps from global memory",
                name_);
  state.needAlignment(room.argument(), kMapBytes);
  state.markWritten(room.argument());
  mlir::Value place = state.use(room.address(), where);
  ChangedMap map(place, where);
  Value lane = lane_id(where);
  map.copyFrom(state.use(map_, where), lane);
  warp_sync(all_lanes, where);

  mlir::Value start = state.use(address, Type::u64);
  // The hardware counts from the innermost dimension.
  std::vector<mlir::Value> shape, strides;
  for (std::size_t i = change.shape.size(); i-- > 0;)
    shape.push_back(state.use(change.shape[i], Type::i32));
  for (std::size_t i = change.strides.size(); i-- > 0;) {
    Value elements = state.resolve(change.strides[i], Type::i64);
    Value bytes = elements * At(size_bytes(tile_.type), where);
    strides.push_back(state.use(At(bytes, where), Type::i64));
  }
  predicated(At(lane == At(0, where), where), [&] {
    map.replace("global_address", 64, start);
    for (std::size_t i = 0; i < shape.size(); ++i)
      map.replace("global_dim", 32, shape[i], i);
    for (std::size_t i = 0; i < strides.size(); ++i)
      map.replace("global_stride", 64, strides[i], i);
    map.release();
  });
  warp_sync(all_lanes, where);
  map.acquire();
  TmaTensor result = *this;
  result.map_ = state.wrap(place, Type::u64);
  result.argument_ = Element::at_an_address;
  return result;
}

} // namespace kiln
