// Handles: what stands behind the handles of kiln_c.h, and how exceptions
// become errors.
#pragma once

#include "kiln/c/kiln_c.h"
#include "kiln/check/options.h"
#include "kiln/check/outline.h"
#include "kiln/check/report.h"
#include "kiln/run/kernel.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

struct kiln_error {
  std::string message;
  int code;
};
struct kiln_device {
  std::shared_ptr<kiln::Device> device;
  std::string name;
  kiln::CheckSettings settings;
  std::atomic<bool> isInterrupted = false, isQuiet = false;
  std::atomic<std::uint64_t> ctasDone = 0, ctasTotal = 0;
};
struct kiln_buffer {
  std::shared_ptr<kiln::Device> device; ///< outlives the buffer
  kiln::Buffer buffer;
};
struct kiln_module {
  std::shared_ptr<kiln::Device> device;
  std::shared_ptr<kiln::LoadedModule> module;
  std::vector<std::string> entries;
  std::vector<std::string> texts; ///< that it was made of
  mutable std::once_flag isOutlined = {};
  mutable std::vector<kiln::PtxEntry> outlines = {}; ///< of the texts, once asked
};
struct kiln_result {
  kiln::Report report;
  std::vector<std::string> interleavings; ///< of each finding, in words
  std::vector<std::string> texts;         ///< likewise
  std::map<std::string, std::string> formats; ///< JSON, and what was asked for
  std::string printed;                        ///< in the first interleaving
};
struct kiln_kernel {
  kiln::Kernel kernel;
  std::string json; ///< once somebody has asked
};

namespace kiln::capi {

/// Never null: where no memory is left, one that was made before.
kiln_error *makeError(const std::string &message, ExitStatus status) noexcept;

/// Do something, and return what it throws.
template <typename Work> kiln_error *attempt(const Work &work) noexcept {
  try {
    work();
    return nullptr;
  } catch (const Error &error) {
    return makeError(error.what(), error.exit_status());
  } catch (const std::bad_alloc &) {
    return makeError("there is not enough memory for this",
                     ExitStatus::machine);
  } catch (const std::exception &error) {
    return makeError(error.what(), ExitStatus::internal);
  }
}

/// A UserError where an argument that must be there is NULL.
void require(const void *argument, const char *name);

[[noreturn]] void refuseSize(const char *what, std::size_t bytes,
                             std::size_t least, std::size_t most);

/// What a caller has filled in of a structure, the rest zero. `least` bytes are
/// those of the first version. Throws UserError where there are fewer, or more
/// than this library knows.
template <typename Structure>
Structure readStructure(const Structure &given, std::size_t least,
                        const char *what) {
  if (given.bytes < least || given.bytes > sizeof(Structure))
    refuseSize(what, given.bytes, least, sizeof(Structure));
  Structure known = {};
  std::memcpy(&known, &given, given.bytes);
  return known;
}
/// As much of a structure as the caller has.
template <typename Structure>
void writeStructure(Structure known, Structure &given, std::size_t least,
                    const char *what) {
  known.bytes = readStructure(given, least, what).bytes;
  std::memcpy(&given, &known, known.bytes);
}

/// What the options say; NULL: nothing. Throws UserError.
CheckSettings settingsOf(const kiln_options *options);
/// The texts of a module, loaded.
std::unique_ptr<kiln_module> loadModule(kiln_device &device,
                                        std::vector<std::string> texts);
/// Explore them on the device.
std::unique_ptr<kiln_result>
exploreAll(kiln_device &device, const std::vector<LaunchDescription> &launches,
           const CheckSettings &settings);

} // namespace kiln::capi
