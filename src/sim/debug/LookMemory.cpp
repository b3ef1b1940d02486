// LookMemory: memory by type, tiles through their swizzle, tensor maps and
// descriptors in words.
#include "sim/debug/Looks.h"
#include "sim/machine/memory/TensorMapImage.h"
#include "sim/units/copies/Swizzled.h"
#include "sim/units/matrix/MatrixProduct.h"
#include "sim/units/matrix/Tcgen05Descriptor.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

using Json = nlohmann::json;

/// Elements that one question is answered with.
static constexpr std::uint64_t kMostElements = 65536;

namespace {
/// What a question about memory names.
struct MemoryQuestion {
  ThreadName thread;
  Warp &warp;
  ThreadView view;
  std::string space;
  std::uint64_t address;

  MemoryQuestion(Runner &runner, const Json &request)
      : thread(ThreadName::fromJson(request.at("thread"))),
        warp(warpOf(runner, thread)), view(warp, thread.lane),
        space(request.value(
            "space", request.at("what") == "tensormap" ? "param" : "shared")),
        address(
            view.addressOf(request.at("address").get<std::string>(), space)) {}
};
} // namespace

/// An element, or null where a byte of it was never written.
static Json elementJson(const SeenBytes &bytes, Type type, std::size_t index) {
  std::size_t size = static_cast<std::size_t>(std::max(1, size_bytes(type)));
  if (!bytes.isWritten(index * size, size))
    return nullptr;
  DebugValue value = DebugValue::of(
      type, load_bits(type, bytes.data, static_cast<std::int64_t>(index)));
  return value.isReal ? Json(value.real) : Json(value.whole);
}

Json lookMemory(Runner &runner, const Json &request) {
  MemoryQuestion asked(runner, request);
  Type type = parseDebugType(request.value("type", "u32"));
  auto count = request.value("count", std::uint64_t(16));
  if (count == 0 || count > kMostElements)
    userError("count is {}; it must be from 1 to {}", count, kMostElements);
  auto bytes = static_cast<std::size_t>(
      bytes_of(type, static_cast<std::int64_t>(count)));
  SeenBytes seen = asked.view.see(asked.space, asked.address, bytes);
  Json answer{{"space", asked.space},
              {"address", asked.address},
              {"what", seen.what},
              {"type", name(type)}};
  if (request.value("raw", false)) {
    std::string hex;
    for (std::size_t i = 0; i < bytes; ++i)
      hex += fmt::format("{:02x}", seen.data[i]);
    answer["bytes"] = hex;
    return answer;
  }
  Json values = Json::array();
  for (std::uint64_t i = 0; i < count; ++i)
    if (is_subbyte(type))
      values.push_back(from_bits(
          type, load_bits(type, seen.data, static_cast<std::int64_t>(i))));
    else
      values.push_back(elementJson(seen, type, i));
  answer["values"] = values;
  return answer;
}

Json lookTile(Runner &runner, const Json &request) {
  MemoryQuestion asked(runner, request);
  Type type = parseDebugType(request.value("type", "f16"));
  if (is_subbyte(type))
    userError("a tile of {} cannot be shown element by element; use `memory`",
              name(type));
  auto rows = request.at("rows").get<std::uint64_t>(),
       columns = request.at("columns").get<std::uint64_t>();
  if (rows == 0 || columns == 0 || rows > kMostElements ||
      columns > kMostElements || rows * columns > kMostElements)
    userError("a tile of {} x {} cannot be shown; at most {} elements are",
              rows, columns, kMostElements);
  auto swizzle = request.value("swizzle", 0u);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    userError("swizzle is {}; it must be 0, 32, 64 or 128", swizzle);
  auto size = static_cast<std::uint64_t>(size_bytes(type));
  std::uint64_t rowBytes = request.value("pitch", columns * size);
  if (rowBytes > (std::uint64_t(1) << 24))
    userError("a pitch of {} bytes is more than shared memory has", rowBytes);
  Json lines = Json::array();
  for (std::uint64_t row = 0; row < rows; ++row) {
    Json line = Json::array();
    for (std::uint64_t column = 0; column < columns; ++column) {
      std::uint64_t plain = asked.address + row * rowBytes + column * size;
      std::uint64_t high = plain >> 32 << 32;
      std::uint64_t place =
          high | swizzled(static_cast<std::uint32_t>(plain), swizzle);
      line.push_back(
          elementJson(asked.view.see(asked.space, place, size), type, 0));
    }
    lines.push_back(std::move(line));
  }
  return {{"space", asked.space},
          {"address", asked.address},
          {"type", name(type)},
          {"rows", rows},
          {"columns", columns},
          {"swizzle", swizzle},
          {"what", asked.view.see(asked.space, asked.address, 1).what},
          {"values", lines}};
}

Json lookTensorMap(Runner &runner, const Json &request) {
  MemoryQuestion asked(runner, request);
  SeenBytes seen = asked.view.see(asked.space, asked.address, kTensorMapBytes);
  std::optional<TensorMap> map = decode(seen.data);
  if (!map)
    userError("the {} bytes at {} are no tensor map", kTensorMapBytes,
              seen.what);
  GlobalMemory &memory = asked.warp.machine().memory();
  return {{"type", name(map->type)},
          {"address", map->address},
          {"what", memory.describe(map->address)},
          {"dims", map->dims},
          {"strides_bytes", map->strides_bytes},
          {"box", map->box},
          {"swizzle", static_cast<int>(map->swizzle)}};
}

Json lookDescriptor(Runner &runner, const Json &request) {
  ThreadName thread = ThreadName::fromJson(request.at("thread"));
  Warp &warp = warpOf(runner, thread);
  ThreadView view(warp, thread.lane);
  std::uint64_t bits =
      view.addressOf(request.at("address").get<std::string>(), "");
  OperandView operand;
  std::string why;
  bool isTcgen05 = (bits >> 46 & 7) == 1 && readLayout(bits, operand, why);
  if (!isTcgen05)
    operand = viewOf(bits, ProductShape{.n = 8, .k = 16}, true);
  return {{"bits", fmt::format("{:#018x}", bits)},
          {"of", isTcgen05 ? "tcgen05" : "wgmma"},
          {"start", operand.start},
          {"what", warp.machine().findings().describeShared(operand.start)},
          {"leading_bytes", operand.leading},
          {"stride_bytes", operand.stride},
          {"swizzle", operand.swizzleBytes},
          {"base_offset", operand.baseOffset}};
}

} // namespace kiln::sim
