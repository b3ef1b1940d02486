// ScratchFile: an input as a file, for what takes a path.
#pragma once

#include <string>
#include <string_view>

namespace kiln::fuzz {

/// A regular file in memory; its path is good while it lives.
class ScratchFile {
public:
  explicit ScratchFile(std::string_view bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;

  std::string path() const;

private:
  int file_;
};

} // namespace kiln::fuzz
