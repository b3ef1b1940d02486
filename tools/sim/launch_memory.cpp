// launch_memory: fill buffers, and put their addresses into arguments.
#include "launch_memory.h"

#include "npy.h"

#include <kiln/run/host_memory.h>
#include <kiln/measure/reference.h>
#include <kiln/check/sim.h>

#include <cstring>
#include <fmt/format.h>

namespace kiln::cli {

std::string describe(const BufferSpec &buffer) {
  return fmt::format("the buffer '{}', {} of {}", buffer.name, buffer.count,
                     name(buffer.type));
}

/// 0, 1, 2, ...; integers wrap around.
static std::vector<std::byte> iota_bytes(const BufferSpec &buffer) {
  std::vector<std::byte> bytes = host_bytes(describe(buffer), buffer.bytes());
  auto size = static_cast<std::size_t>(size_bytes(buffer.type));
  for (std::uint64_t i = 0; i < buffer.count; ++i) {
    std::uint64_t bits = is_float(buffer.type)
                             ? to_bits(buffer.type, static_cast<double>(i))
                             : i;
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

std::optional<std::vector<std::byte>> initial_bytes(const BufferSpec &buffer) {
  const BufferInit &init = buffer.init;
  switch (init.kind) {
  case BufferInit::Kind::poison:
    return std::nullopt;
  case BufferInit::Kind::zeros:
    return host_bytes(describe(buffer), buffer.bytes());
  case BufferInit::Kind::iota:
    return iota_bytes(buffer);
  case BufferInit::Kind::file:
    return read_npy(init.path, buffer.type, buffer.shape,
                    buffer.where + ".init");
  case BufferInit::Kind::random:
    break;
  }
  std::vector<std::byte> bytes = host_bytes(describe(buffer), buffer.bytes());
  fill_random(buffer.type, bytes.data(), buffer.count, init.seed, init.lo,
              init.hi);
  return bytes;
}

/// The address that a pointer of the file means.
static std::uint64_t address_of(const BufferArgument &pointer,
                                const std::vector<Buffer> &memory) {
  return memory[pointer.index].address() + pointer.offset;
}

std::vector<std::byte> field_bytes(const StructArgument &field,
                                   const std::vector<Buffer> &memory) {
  std::vector<std::byte> bytes = field.bytes;
  for (const StructArgument::Address &at : field.addresses) {
    std::uint64_t address = address_of(at.to, memory);
    std::memcpy(bytes.data() + at.offset, &address, sizeof(address));
  }
  for (const StructArgument::Map &of : field.maps) {
    TensorMap map = of.map.map;
    map.address = memory[of.map.index].address();
    std::array<std::byte, 128> image = sim_tensor_map(map);
    std::memcpy(bytes.data() + of.offset, image.data(), image.size());
  }
  return bytes;
}

std::vector<LaunchParameter> bind(const LaunchSpec &launch,
                                  const std::vector<Buffer> &memory) {
  std::vector<LaunchParameter> parameters;
  for (const ArgumentValue &argument : launch.arguments) {
    LaunchParameter parameter;
    if (auto *buffer = std::get_if<BufferArgument>(&argument)) {
      parameter.value = memory[buffer->index];
      if (buffer->offset)
        parameter.value = Scalar(Type::u64, address_of(*buffer, memory));
    } else if (auto *scalar = std::get_if<Scalar>(&argument)) {
      parameter.value = *scalar;
    } else if (auto *of = std::get_if<TensorMapArgument>(&argument)) {
      TensorMap map = of->map;
      map.address = memory[of->index].address();
      parameter.value = map;
    } else {
      parameter.value = field_bytes(std::get<StructArgument>(argument), memory);
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

} // namespace kiln::cli
