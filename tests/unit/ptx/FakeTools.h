// FakeTools: stand-ins for the toolkit's programs, and an environment of the
// test's own.
//
// A fake is a shell script in a temporary folder; it uses nothing but the
// shell's own commands, so that it works whatever PATH a test sets.
#pragma once

#include "ptx/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace kiln {

/// Sets an environment variable (or unsets it) and puts it back at the end.
class WithVariable {
public:
  WithVariable(const char *name, std::optional<std::string> value)
      : name(name) {
    if (const char *old = std::getenv(name))
      before = old;
    set(value);
  }
  ~WithVariable() { set(before); }
  WithVariable(const WithVariable &) = delete;

private:
  const char *name;
  std::optional<std::string> before;

  void set(const std::optional<std::string> &value) {
    if (value)
      setenv(name, value->c_str(), 1);
    else
      unsetenv(name);
  }
};

/// Write an executable shell script; folders on the way are made.
inline std::string writeScript(const std::filesystem::path &path,
                               const std::string &body) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\n" << body;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

/// A test with no toolkit in sight: no variable names one, PATH is empty.
class WithoutToolkit : public ::testing::Test {
protected:
  TemporaryFolder folder;
  WithVariable ptxas{"KILN_PTXAS", std::nullopt};
  WithVariable cudaHome{"CUDA_HOME", std::nullopt};
  WithVariable cudaPath{"CUDA_PATH", std::nullopt};
  WithVariable path{"PATH", (folder.path() / "empty").string()};

  std::string inFolder(const std::string &name) const {
    return (folder.path() / name).string();
  }
};

/// What a call throws, which must be an `Expected`.
template <typename Expected, typename Call> std::string messageOf(Call call) {
  try {
    call();
  } catch (const Expected &error) {
    return error.what();
  } catch (const std::exception &error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

} // namespace kiln
