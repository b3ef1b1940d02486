// launch_file: what `kiln sim` launches, as a JSON file says it.
//
// Reading refuses everything the file can be wrong in, with the place in it
// ("launch.json: args[2].tensor_map.box ..."), so that whoever runs the launch
// meets no surprise but the PTX. Addresses are filled in when buffers exist.
#pragma once

#include <kiln/run/device.h>
#include <kiln/language/memory/tensor_map.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kiln::cli {

/// What a buffer holds before the first launch.
struct BufferInit {
  enum class Kind : std::uint8_t { zeros, iota, random, poison, file };

  Kind kind = Kind::poison;
  std::uint64_t seed = 0;
  double lo = -1, hi = 1;
  std::string path;
};

/// How near a result must be: |got - want| <= atol + rtol |want|.
struct Tolerance {
  double rtol = 0, atol = 0;
  bool is_exact = false; ///< bit for bit
  bool is_given = false; ///< the file says any of these
};

struct BufferSpec {
  std::string name;
  std::string where; ///< "launch.json: args[0]"
  Type type = Type::f32;
  std::vector<std::uint64_t> shape;
  std::uint64_t count = 1;              ///< elements
  std::optional<std::uint64_t> address; ///< where it must lie
  bool is_variable = false;             ///< of the module, which has that name
  BufferInit init;
  std::string init_text;    ///< as the file says it
  std::string written_path; ///< which bytes are; empty: all that `init` gives
  bool is_output = false;
  std::string expected_path; ///< empty: nothing is compared
  Tolerance tolerance;

  std::size_t bytes() const { return count * size_bytes(type); }
};

/// A pointer into LaunchFile::buffers[index].
struct BufferArgument {
  std::size_t index = 0;
  std::uint64_t offset = 0; ///< in bytes
};

/// A map of LaunchFile::buffers[index]; its address is still 0.
struct TensorMapArgument {
  std::size_t index = 0;
  TensorMap map;
};

/// Bytes by value, and which of them are addresses and maps of buffers.
struct StructArgument {
  struct Address {
    std::size_t offset = 0;
    BufferArgument to;
  };
  struct Map {
    std::size_t offset = 0;
    TensorMapArgument map;
  };
  std::vector<std::byte> bytes;
  std::vector<Address> addresses;
  std::vector<Map> maps;
};

using ArgumentValue =
    std::variant<BufferArgument, Scalar, TensorMapArgument, StructArgument>;

struct LaunchSpec {
  std::string where;  ///< "launch.json: launches[1]"
  std::string kernel; ///< empty: the only entry
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  std::uint32_t dynamic_smem_bytes = 0;
  std::vector<ArgumentValue> arguments;
};

/// What lies in a buffer at an offset, over what it begins with.
struct BufferField {
  std::size_t index = 0; ///< of LaunchFile::buffers
  std::uint64_t offset = 0;
  StructArgument value;
};

struct LaunchFile {
  std::vector<std::string> ptx_paths; ///< that it says itself
  std::vector<BufferSpec> buffers;
  std::vector<BufferField> fields;
  std::vector<LaunchSpec> launches;
  std::optional<std::vector<std::string>> printed; ///< lines, sorted
  int registers_at_entry = 0;                      ///< 0: not said
  bool is_deterministic = false;
  bool is_co_resident = false;
  std::vector<SharedObject> shared_objects; ///< that have names

  /// Throws UserError.
  static LaunchFile load(const std::string &path);
};

} // namespace kiln::cli
