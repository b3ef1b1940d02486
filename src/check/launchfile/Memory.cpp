// Memory: fill buffers, and put their addresses into arguments.
#include "check/launchfile/Memory.h"
#include "kiln/base/random.h"
#include "kiln/check/sim.h"
#include "kiln/run/host_memory.h"
#include "support/Error.h"
#include "support/text/Npy.h"

#include <algorithm>
#include <cstring>

namespace kiln::launchfile {

std::string describe(const BufferSpec &buffer) {
  return fmt::format("the buffer '{}', {} of {}", buffer.name, buffer.count(),
                     name(buffer.type));
}

/// 0, 1, 2, ...; integers wrap around.
static void fillIota(const BufferSpec &buffer, LaunchJob::Bytes &bytes) {
  auto size = static_cast<std::size_t>(size_bytes(buffer.type));
  for (std::uint64_t i = 0; i < buffer.count(); ++i) {
    std::uint64_t bits = is_float(buffer.type)
                             ? to_bits(buffer.type, static_cast<double>(i))
                             : i;
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
}

std::optional<LaunchJob::Bytes> initialBytes(const BufferSpec &buffer) {
  using Kind = BufferInit::Kind;
  BufferInit init = buffer.initial();
  if (init.kind == Kind::poison || init.kind == Kind::declared)
    return std::nullopt;
  if (init.kind == Kind::file)
    return readNpy(init.path, buffer.type, buffer.shape,
                   buffer.where + ".init");
  LaunchJob::Bytes bytes = host_bytes(describe(buffer), buffer.bytes());
  if (init.kind == Kind::iota)
    fillIota(buffer, bytes);
  if (init.kind == Kind::random)
    fill_random(buffer.type, bytes.data(), buffer.count(), init.seed, init.lo,
                init.hi);
  return bytes;
}

static const Buffer &bufferOf(std::size_t index,
                              std::span<const Buffer> memory) {
  if (index >= memory.size())
    userError("an argument refers to buffer number {}, and the launch file has "
              "{} buffers",
              index, memory.size());
  return memory[index];
}

static std::uint64_t addressOf(const PointerArgument &pointer,
                               std::span<const Buffer> memory) {
  return bufferOf(pointer.index, memory).address() + pointer.offset;
}

static TensorMap mapOf(const TensorMapArgument &argument,
                       std::span<const Buffer> memory) {
  TensorMap map = argument.map;
  map.address = bufferOf(argument.index, memory).address();
  if (map.element_strides.empty())
    map.element_strides.assign(map.dims.size(), 1);
  return map;
}

static LaunchJob::Bytes structBytes(const StructArgument &record,
                                    std::span<const Buffer> memory) {
  LaunchJob::Bytes bytes(record.bytes);
  for (const LaunchFileField &field : record.fields) {
    LaunchJob::Bytes part = bytesOf(field.argument, memory);
    if (field.offset > bytes.size() ||
        part.size() > bytes.size() - field.offset)
      userError("a field of {} bytes at offset {} does not lie in a struct of "
                "{}",
                part.size(), field.offset, bytes.size());
    std::copy(part.begin(), part.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(field.offset));
  }
  return bytes;
}

LaunchJob::Bytes bytesOf(const LaunchFileArgument &argument,
                         std::span<const Buffer> memory) {
  LaunchJob::Bytes bytes(argument.bytes());
  if (auto *pointer = std::get_if<PointerArgument>(&argument.value)) {
    std::uint64_t address = addressOf(*pointer, memory);
    std::memcpy(bytes.data(), &address, bytes.size());
  } else if (auto *scalar = std::get_if<Scalar>(&argument.value)) {
    std::memcpy(bytes.data(), &scalar->bits, bytes.size());
  } else if (auto *map = std::get_if<TensorMapArgument>(&argument.value)) {
    std::array<std::byte, 128> image = sim_tensor_map(mapOf(*map, memory));
    std::memcpy(bytes.data(), image.data(), bytes.size());
  } else {
    return structBytes(std::get<StructArgument>(argument.value), memory);
  }
  return bytes;
}

LaunchParameter bind(const LaunchFileArgument &argument,
                     std::span<const Buffer> memory) {
  if (auto *pointer = std::get_if<PointerArgument>(&argument.value)) {
    if (pointer->offset)
      return {Scalar(Type::u64, addressOf(*pointer, memory))};
    return {bufferOf(pointer->index, memory)};
  }
  if (auto *scalar = std::get_if<Scalar>(&argument.value))
    return {*scalar};
  if (auto *map = std::get_if<TensorMapArgument>(&argument.value))
    return {mapOf(*map, memory)};
  return {bytesOf(argument, memory)};
}

bool hasMapInside(const LaunchFileArgument &argument) {
  auto *record = std::get_if<StructArgument>(&argument.value);
  return record &&
         std::any_of(record->fields.begin(), record->fields.end(),
                     [](const LaunchFileField &field) {
                       return std::holds_alternative<TensorMapArgument>(
                                  field.argument.value) ||
                              hasMapInside(field.argument);
                     });
}

} // namespace kiln::launchfile
