// launch_file.h: launches of PTX as a JSON file describes them: what they are
// given, what they should give. docs/launch-file.md has every key.
//
//     LaunchJob job = LaunchJob::load("", "launch.json");
//     PreparedJob prepared(job, open_sim(job.sim_options()));
//     Report report = check_job(prepared, {}).report;
//
// Reading refuses everything that the file can be wrong in, with the place in
// it
// ("launch.json: args[2].tensor_map.box ..."). What is written is read as the
// same launches.
#pragma once

#include <kiln/base/export.h>
#include <kiln/base/types.h>
#include <kiln/check/explore.h>
#include <kiln/check/report.h>
#include <kiln/language/memory/tensor_map.h>
#include <kiln/run/device.h>
#include <kiln/run/kernel.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace KILN_API kiln {

/// A key that begins with x-, which nobody but people reads.
struct LaunchFileNote {
  std::string key;  ///< "x-note"
  std::string json; ///< its value

  static LaunchFileNote of(std::string key, const std::string &sentence);
  static LaunchFileNote of(std::string key,
                           const std::vector<std::string> &sentences);
};

/// What a buffer holds before the first launch.
struct BufferInit {
  enum class Kind : std::uint8_t {
    zeros,
    iota,
    random,
    poison, ///< no thread has written it
    file,
    declared, ///< a variable, as the PTX initializes it
  };

  Kind kind = Kind::poison;
  std::uint64_t seed = 0;
  double lo = -1, hi = 1;
  std::string path = {};

  /// "random:7", as files have it; of an array its path.
  std::string to_string() const;
};

/// How near a result must be: |got - want| <= atol + rtol |want|.
struct Tolerance {
  double rtol = 0, atol = 0;
  bool is_exact = false; ///< bit for bit
  bool is_given = false; ///< the file says any of these
};

/// A pointer into LaunchFile::buffers[index].
struct PointerArgument {
  std::size_t index = 0;
  std::uint64_t offset = 0;    ///< in bytes
  bool is_declaration = false; ///< here the file says what the buffer is
};

/// A map of LaunchFile::buffers[index], whose address is not known yet.
struct TensorMapArgument {
  std::size_t index = 0;
  TensorMap map;
};

struct LaunchFileField;

/// Bytes by value; those that are in no field are zero.
struct StructArgument {
  std::size_t bytes = 0;
  std::vector<LaunchFileField> fields;
};

struct LaunchFileArgument {
  std::variant<PointerArgument, Scalar, TensorMapArgument, StructArgument>
      value;
  std::vector<LaunchFileNote> notes = {};

  std::size_t bytes() const;
};

/// What lies at an offset of a struct or of a buffer.
struct LaunchFileField {
  std::uint64_t offset = 0;
  LaunchFileArgument argument;
};

struct BufferSpec {
  std::string name;
  std::string where = {}; ///< "launch.json: args[0]", for messages
  Type type = Type::f32;
  std::vector<std::uint64_t> shape;          ///< outermost first
  std::optional<std::uint64_t> address = {}; ///< where it must lie
  bool is_variable = false;                  ///< of the PTX, by its name
  std::optional<BufferInit> init = {};       ///< nothing: initial() says
  std::string written_path = {}; ///< which bytes are; empty: all of `init`
  bool is_output = false;
  std::string expected_path = {}; ///< empty: nothing is compared
  Tolerance tolerance = {};
  std::vector<LaunchFileField> fields = {}; ///< over what it begins with
  std::vector<LaunchFileNote> notes = {};

  std::uint64_t count() const; ///< elements
  std::size_t bytes() const { return count() * size_bytes(type); }
  /// `init`, or what the buffer is for: zeros of an input, poison of an output.
  BufferInit initial() const;
};

struct LaunchSpec {
  std::string where = {};  ///< "launch.json: launches[1]", for messages
  std::string kernel = {}; ///< empty: the only entry
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  std::optional<std::uint32_t> dynamic_smem_bytes = {}; ///< nothing: 0
  /// It may begin before the one ahead has ended.
  bool is_dependent = false;
  std::vector<LaunchFileArgument> arguments = {};
  std::vector<LaunchFileNote> notes = {};
};

struct LaunchFile {
  std::vector<std::string> ptx_paths; ///< that it names itself
  std::vector<BufferSpec> buffers;
  std::vector<LaunchSpec> launches;                ///< one at least
  std::optional<std::vector<std::string>> printed; ///< lines, in any order
  int registers_at_entry = 0;                      ///< 0: it does not say
  bool is_deterministic = false;
  bool is_co_resident = false;
  std::vector<SharedObject> shared_objects; ///< that have names
  std::vector<LaunchFileNote> notes;

  /// Throws UserError.
  static LaunchFile load(const std::string &path);
  /// `origin` names the text in messages; paths in it are relative to `folder`.
  static LaunchFile parse(std::string_view text, const std::string &origin,
                          const std::string &folder = "");
  /// The text of a file that lies in `folder`.
  std::string to_json(const std::string &folder = "") const;
  /// Throws RuntimeError where it cannot be written.
  void save(const std::string &path) const;
};

/// Whether a file is a launch file that names its PTX. Throws UserError where
/// it cannot be read.
bool names_its_ptx(const std::string &path);

/// A file of PTX, or of a saved kernel; of the former only `ptx` is known.
/// Throws UserError.
Kernel read_kernel(const std::string &path);

/// What the entries of the PTX say of their launches: one launch for each
/// entry, and under x-fill-in what no PTX says. A saved kernel has a contract,
/// from which everything follows but values. Throws UserError where the PTX
/// cannot be parsed.
LaunchFile first_launch_file(const Kernel &kernel);
/// A launch of a kernel with a contract. Arguments that are numbers have these
/// values by their names; for others one is put in, and x-fill-in says so.
LaunchFile launch_file_of(const Kernel &kernel,
                          const std::map<std::string, double> &values);

/// A key of launch files: a row of the table that they are read and written by.
struct LaunchFileKey {
  std::string place; ///< the object that has it: "buffer"
  std::string name;
  std::string accepted; ///< in words
  std::string fallback; ///< where it is left out, in words; empty: it must not
  std::string help;
};
std::vector<LaunchFileKey> launch_file_keys();
/// The table of one place, in Markdown, as docs/launch-file.md has it.
std::string launch_file_table(std::string_view place);

/// A launch file with its PTX and arrays in memory of the host: what is the
/// same in every interleaving.
struct LaunchJob {
  using Bytes = std::vector<std::byte>;

  LaunchFile file;
  std::vector<std::string> ptx;       ///< linked where they are several
  std::vector<std::string> ptx_paths; ///< what messages and findings call them
  // By buffer.
  std::vector<std::optional<Bytes>> initial; ///< nothing: nobody writes it
  /// A bit for each byte, the lowest first; nothing: all bytes are written.
  std::vector<std::optional<Bytes>> written;
  std::vector<std::optional<Bytes>> expected;

  /// Read the launch file, the PTX and every array; an empty path: the PTX that
  /// the launch file names. Throws UserError.
  static LaunchJob load(const std::string &ptx_path,
                        const std::string &launch_path);
  /// The same with PTX that is in memory.
  static LaunchJob of(LaunchFile file, std::vector<std::string> ptx,
                      std::vector<std::string> ptx_paths);

  /// The device that the PTX is simulated on where nobody names one. Throws
  /// UserError with a place in the PTX where Kiln knows none.
  DeviceDescription device() const;
  /// With that device, and what the file says of its launches.
  SimOptions sim_options() const;
  /// The same with options that somebody has chosen.
  SimOptions sim_options(SimOptions chosen) const;
};

/// A job on a device: buffers that hold what they begin with, the module, which
/// is parsed once, and the launches with their arguments.
class PreparedJob {
public:
  /// Throws UserError with its place in the PTX or in the launch file where
  /// something is refused. Addresses, and tensor maps inside of structs and
  /// buffers, are for a simulator. The launches are checked with the options
  /// that the device was opened with.
  PreparedJob(LaunchJob job, std::shared_ptr<Device> device);

  const LaunchJob &job() const { return job_; }
  Device &device() const { return *device_; }
  std::span<const Buffer> buffers() const { return buffers_; }
  /// For explore().
  std::span<const LaunchDescription> descriptions() const { return launches_; }
  /// The launches as a report has them.
  std::vector<ReportedLaunch> launches() const;
  /// Put the names of the PTX files into a finding.
  void name_places(Finding &finding) const;
  /// What is in the buffers that are outputs or compared; the others are empty.
  std::vector<LaunchJob::Bytes> memory() const;

private:
  void allocate();
  void fill();
  std::shared_ptr<const LoadedModule> load_module();
  LaunchDescription describe(const LaunchSpec &launch) const;

  LaunchJob job_;
  std::shared_ptr<Device> device_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<const LoadedModule> module_;
  std::vector<LaunchDescription> launches_;
};

struct BufferComparison {
  std::uint64_t wrong = 0;        ///< elements
  std::vector<std::string> first; ///< "out[3, 4] is 1, should be 2 within 0.1"
};

/// Compare as the buffer's tolerance says.
BufferComparison compare_buffer(const BufferSpec &buffer,
                                std::span<const std::byte> got,
                                std::span<const std::byte> want);

/// A comparison of one run.
struct JobComparison {
  ReportedComparison row;
  std::vector<std::string> wrong; ///< a sentence each, of the first
  std::string summary; ///< "out: 100 elements, all right"; empty: see `wrong`
};

/// What a job came to in one interleaving.
struct JobRun {
  const ExploredRun &run;
  std::vector<std::string> printed;     ///< lines, sorted
  std::vector<LaunchJob::Bytes> memory; ///< PreparedJob::memory
  /// False: an error ended it, so that nothing is compared, and no other
  /// interleaving is run.
  bool is_compared = true;
  std::vector<JobComparison> comparisons;
  // New findings, by their index in the report.
  std::vector<std::size_t> findings;  ///< of the run itself
  std::vector<std::size_t> dependent; ///< its results differ from the first's
};
/// Told of each run, with the report up to there.
using AfterJobRun = std::function<void(const Report &, const JobRun &)>;

struct CheckedJob {
  Report report;
  std::vector<LaunchJob::Bytes> memory; ///< of the first interleaving
  std::string single_because;           ///< Exploration::single_because
};

/// Explore the launches, and hold what they give against what is expected and
/// against one another.
CheckedJob check_job(const PreparedJob &job, const ExploreOptions &options,
                     const AfterJobRun &after = {});

} // namespace kiln
