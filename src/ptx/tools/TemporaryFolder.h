// TemporaryFolder: a folder of our own that is gone when its owner is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kiln {

class TemporaryFolder {
public:
  /// Throws RuntimeError where none can be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::filesystem::path &path() const { return path_; }

  /// Write a file into it and return its path. Throws RuntimeError.
  std::filesystem::path write(std::string_view name, std::string_view bytes);
  /// The bytes of a file in it. Throws RuntimeError where it is not there.
  std::string read(std::string_view name) const;

private:
  std::filesystem::path path_;
};

} // namespace kiln
