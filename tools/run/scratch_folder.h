// scratch_folder: a folder for files on the way, gone when nobody needs it.
#pragma once

#include <string>

namespace kiln::cli {

class ScratchFolder {
public:
  /// `name` begins its name. Throws RuntimeError where none can be made.
  explicit ScratchFolder(const std::string &name);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;

  const std::string &path() const { return path_; }
  std::string file(const std::string &name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

} // namespace kiln::cli
