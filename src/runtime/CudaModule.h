// CudaModule: PTX loaded into a CUDA context, once for each content.
//
// Compiling PTX takes the driver up to seconds, a launch microseconds, and the
// caller of a launch only has the text. So modules are kept by the hash of
// their text, for as long as the context is used.
//
// The text is also scanned for what each entry takes. The driver copies as many
// bytes as the entry declares from wherever the caller points: one parameter
// too few, and it reads what happens to lie there.
#pragma once

#include "runtime/CudaDriver.h"

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A parameter as PTX declares it: ".b8[128]" of 128 bytes.
struct ScannedParameter {
  std::string type;
  int bytes = 0; ///< 0: of a type the scan does not know
};

struct ScannedEntry {
  std::string name;
  std::vector<ScannedParameter> parameters;
  /// It waits itself for what is ahead of it in the stream
  /// (griddepcontrol.wait), and may be launched before that has ended.
  bool isDependent = false;
};

/// The entries of a PTX module in the order of the text.
std::vector<ScannedEntry> scanPtxEntries(std::string_view ptx);

/// One entry of a loaded module.
class CudaEntry {
public:
  CudaEntry(const CudaDriver &driver, cuda::CUfunction function,
            ScannedEntry ptx)
      : driver_(driver), function_(function), ptx_(std::move(ptx)) {}

  cuda::CUfunction function() const { return function_; }
  const std::string &name() const { return ptx_.name; }
  const std::vector<ScannedParameter> &parameters() const {
    return ptx_.parameters;
  }

  bool isDependent() const { return ptx_.isDependent; }

  /// Opt in to what a launch of this size needs; a size once allowed stays so.
  void allow(std::uint32_t dynamicSmemBytes, std::uint32_t clusterCtas);

private:
  const CudaDriver &driver_;
  const cuda::CUfunction function_;
  const ScannedEntry ptx_;
  std::mutex mutex_;
  std::uint32_t allowedSmemBytes_ = 48 * 1024;
  bool isNonPortableAllowed_ = false;
};

/// The modules of one context. Safe to use from many threads; the context must
/// be current in each call.
class CudaModules {
public:
  explicit CudaModules(const CudaDriver &driver) : driver_(driver) {}

  /// The entry `name` of that PTX, loaded now or earlier; an empty name means
  /// the only one. Throws UserError that lists the entries, and RuntimeError
  /// with the driver's log where it does not compile. It stays valid until
  /// unloadAll.
  CudaEntry &find(std::string_view ptx, const std::string &name);
  /// Unload everything; errors are ignored, the context may be lost.
  void unloadAll() noexcept;

private:
  struct Module {
    std::mutex mutex; ///< held while it is loaded
    cuda::CUmodule handle = nullptr;
    std::vector<ScannedEntry> scanned;
    std::map<std::string, CudaEntry> entries;
  };

  void load(Module &module, std::string_view ptx);

  const CudaDriver &driver_;
  std::mutex mutex_;
  std::map<std::string, Module> modules_;
};

} // namespace kiln
