// kernel.h: Kernel, the one thing that crosses from the compiler to a device.
//
// A Kernel is PTX, the name of its entry, and the launch contract: everything a
// program needs to launch it without knowing how it was written. It can be
// saved to one file and loaded by a program that links kiln_runtime alone.
#pragma once

#include <kiln/base/dim.h>
#include <kiln/base/export.h>
#include <kiln/language/memory/tensor_map.h>
#include <kiln/base/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// What the caller passes, in the order the kernel declared it.
struct ArgumentSpec {
  enum class Kind : std::uint8_t { buffer, scalar };

  std::string name;
  Kind kind = Kind::buffer;
  Type type = Type::f32;
  /// Buffers: elements, outermost first, so that a launch can refuse a buffer
  /// that is too small. Empty: not known.
  std::vector<Dim> shape;
  bool is_output = false;  ///< buffers: the kernel writes it
  int alignment_bytes = 1; ///< buffers: of the address, beyond the element's
  /// Buffers: memory for the kernel alone, after all that a caller passes. It
  /// is zero before the first launch, and two launches that may run at the same
  /// time need one each. Who leaves it out gets it from the device
  /// (with_workspaces).
  bool is_workspace = false;

  bool operator==(const ArgumentSpec &) const = default;
};

/// What the PTX entry takes, in its order; each is made from one argument.
struct ParameterSpec {
  enum class Kind : std::uint8_t { buffer, scalar, tensor_map };

  Kind kind = Kind::buffer;
  int argument = 0; ///< index into LaunchContract::arguments
  std::optional<TensorMapSpec> tensor_map; ///< where kind is tensor_map

  bool operator==(const ParameterSpec &) const = default;
};

/// Something in dynamic shared memory that has a name: a barrier, a tile, or an
/// array of them. Findings and the timeline say it.
struct SharedObject {
  std::string name;      ///< "v_empty"
  int offset = 0;        ///< from the beginning of the dynamic memory
  int element_bytes = 0; ///< of one
  int count = 1;
  std::string file = {}; ///< where it was declared; line 0: not known
  int line = 0;

  bool operator==(const SharedObject &) const = default;
};

/// How the PTX must be launched.
struct LaunchContract {
  std::vector<ArgumentSpec> arguments;
  std::vector<ParameterSpec> parameters;
  std::array<Dim, 3> grid = {1, 1, 1}; ///< CTAs, from the scalar arguments
  std::array<int, 3> block = {1, 1, 1};
  std::array<int, 3> cluster = {1, 1, 1};
  int dynamic_smem_bytes = 0;
  int registers_at_entry = 0; ///< per thread; 0: as ptxas decides
  int ctas_per_sm = 1;        ///< occupancy the kernel was built for
  /// CTAs wait for each other: a grid that the device cannot hold at once is
  /// refused.
  bool is_cooperative = false;
  std::vector<SharedObject> shared_objects = {};

  int threads() const { return block[0] * block[1] * block[2]; }
  bool operator==(const LaunchContract &) const = default;
};

/// PTX, its entry and its contract.
struct Kernel {
  std::string name;   ///< the PTX entry
  std::string target; ///< "sm_90a"
  std::string ptx;
  LaunchContract contract;

  /// Write to one file: to a temporary name, then renamed.
  void save(const std::string &path) const;
  /// Read what `save` wrote. Throws UserError for a file that is no saved
  /// kernel, is damaged, or has a format this Kiln does not know.
  static Kernel load(const std::string &path);

  /// The same as bytes; `origin` names them in errors.
  std::string serialize() const;
  static Kernel deserialize(const std::string &bytes,
                            const std::string &origin = "saved kernel");

  bool operator==(const Kernel &) const = default;
};

} // namespace kiln
