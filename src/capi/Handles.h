// Handles: what stands behind the handles of kiln_c.h, and how exceptions
// become errors.
#pragma once

#include "kiln/c/kiln_c.h"
#include "kiln/check/sim.h"

#include <new>

struct kiln_error {
  std::string message;
  int code;
};
struct kiln_device {
  std::shared_ptr<kiln::Device> device;
  std::string name;
};
struct kiln_buffer {
  std::shared_ptr<kiln::Device> device; ///< outlives the buffer
  kiln::Buffer buffer;
};
struct kiln_module {
  std::shared_ptr<kiln::Device> device;
  std::shared_ptr<kiln::LoadedModule> module;
  std::vector<std::string> entries;
};
struct kiln_result {
  kiln::LaunchResult result;
  std::string json;
};
struct kiln_kernel {
  kiln::Kernel kernel;
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

} // namespace kiln::capi
