// launch.h: one execution of a kernel: what it takes, what it is given, and what
// came of it.
#pragma once

#include <kiln/base/export.h>
#include <kiln/base/types.h>
#include <kiln/check/finding.h>
#include <kiln/check/timeline.h>
#include <kiln/run/buffer.h>
#include <kiln/run/device_description.h>
#include <kiln/run/kernel.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace KILN_API kiln {

struct SimOptions;
struct LaunchDetail;
struct Profile;

/// A scalar argument: a number and its type.
struct Scalar {
  Type type = Type::i32;
  std::uint64_t bits = 0;

  Scalar() = default;
  Scalar(Type type, std::uint64_t bits) : type(type), bits(bits) {}
  Scalar(int value);
  Scalar(unsigned value);
  Scalar(long value);
  Scalar(long long value);
  Scalar(unsigned long value);
  Scalar(unsigned long long value);
  Scalar(float value);
  Scalar(double value);

  double value() const { return from_bits(type, bits); }
};

/// One argument of a launch.
using LaunchArgument = std::variant<Buffer, Scalar>;

/// One parameter of an explicit launch: what the PTX entry takes.
struct LaunchParameter {
  std::variant<Buffer, Scalar, TensorMap, std::vector<std::byte>> value;
};

/// What an entry of a module takes and needs.
struct EntryInfo {
  std::string name;
  std::vector<std::uint32_t> parameter_bytes; ///< of each parameter
  /// Where each begins in the entry's parameter space, and where that ends.
  std::vector<std::uint32_t> parameter_offsets;
  int max_threads = 0; ///< of a CTA
  std::uint32_t static_smem_bytes = 0;
  std::uint32_t local_bytes = 0; ///< per thread
};

/// PTX that a device has taken in, once. It stays with its device for as long
/// as somebody holds it.
class LoadedModule {
public:
  virtual ~LoadedModule();

  virtual std::vector<std::string> entries() const = 0;
  /// Throws UserError that lists the entries where there is none of that name.
  virtual const EntryInfo &entry(std::string_view name) const = 0;
  /// Registers per thread of an entry: ptxas' count where one is found, else
  /// what the directives of the PTX leave it at most.
  virtual int registers(std::string_view name) const = 0;
  /// A global or constant variable: its address and size, for copies and as an
  /// argument. Throws UserError where there is none of that name.
  virtual Buffer variable(std::string_view name) const = 0;
};

/// An explicit launch of any PTX: nothing is derived.
struct LaunchDescription {
  std::string name;     ///< the entry; empty: the module's only one
  std::string_view ptx; ///< must outlive the launch
  std::array<std::uint32_t, 3> grid = {1, 1, 1}; ///< CTAs
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  std::uint32_t dynamic_smem_bytes = 0;
  std::vector<LaunchParameter> parameters;
  /// All CTAs are there at once and may wait for each other (grid.sync): a grid
  /// that the device cannot hold is refused.
  bool cooperative = false;
  /// The launch may begin before the one ahead of it in its stream has ended
  /// (CUDA's programmatic stream serialization). The simulator checks that it
  /// waits with griddepcontrol.wait before it touches what that one touches. A
  /// kernel that is given as `ptx` and waits is launched so anyway.
  bool dependent = false;
  /// Instead of `ptx`: what Device::load made of it.
  std::shared_ptr<const LoadedModule> module = nullptr;
  std::vector<SharedObject> shared_objects = {}; ///< for what is said of them
  /// How a simulator runs and checks it (sim_options.h); null: as it was opened.
  std::shared_ptr<const SimOptions> options = nullptr;
};

/// Where the time of a simulated launch went.
struct LaunchStats {
  struct Cost {
    std::string name; ///< scalar, memory, tma, wgmma, barrier, checks, other
    std::uint64_t instructions = 0; ///< warp instructions
    double time_us = 0;             ///< of all host threads together
  };
  std::vector<Cost> costs; ///< empty where nobody asked for them
  /// Memory of the host that the checks need beside the data.
  std::uint64_t shadow_bytes = 0;
};

/// What a launch came to, once it has finished.
struct LaunchResult {
  double time_us = 0; ///< of the kernel itself, by the device's clock
  std::uint64_t instructions = 0; ///< warp instructions; the simulator's count
  std::vector<Finding> findings;
  std::uint64_t findings_left_out = 0; ///< beyond SimOptions::max_findings
  bool is_finished = true; ///< no finding ended it
  /// Registers per thread at entry, and who says so: "the launch", "ptxas",
  /// ".maxnreg", ".reqntid and .minnctapersm"; 0: nobody does.
  int registers = 0;
  std::string registers_from;
  std::uint64_t resident_ctas = 0; ///< that the device holds at once
  LaunchStats stats;
  Timeline timeline; ///< empty where nobody asked for it
  /// What a report page shows (kiln/check/detail.h); null where nobody asked.
  std::shared_ptr<const LaunchDetail> detail;
  /// What each instruction cost (kiln/check/profile.h); null where nobody asked.
  std::shared_ptr<const Profile> profile;

  bool ok() const; ///< no finding of grade error
  /// Findings and numbers, a line each.
  std::string to_string() const;
};

/// Thrown where a check found an error and nobody asked for the result.
class FindingError : public Error {
public:
  /// `result` has an error at least.
  explicit FindingError(LaunchResult result);
  const LaunchResult &result() const { return result_; }

private:
  LaunchResult result_;
};

/// Resolve a contract with the arguments at hand. Throws UserError where they
/// do not fit: count, kind, type, a buffer smaller than its shape.
LaunchDescription resolve(const Kernel &kernel,
                          std::span<const LaunchArgument> arguments,
                          const DeviceDescription &device);

/// The arguments, and after them the workspaces that they leave out: `allocate`
/// gives memory of so many bytes, all of them zero.
std::vector<LaunchArgument> with_workspaces(
    const Kernel &kernel, std::span<const LaunchArgument> arguments,
    const std::function<Buffer(const ArgumentSpec &, std::size_t)> &allocate);

} // namespace kiln
