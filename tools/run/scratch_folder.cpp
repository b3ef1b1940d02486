// scratch_folder: mkdtemp, and remove_all.
#include "scratch_folder.h"

#include <kiln/base/error.h>

#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder(const std::string &name) {
  std::error_code error;
  fs::path parent = fs::temp_directory_path(error);
  if (error)
    throw RuntimeError(
        fmt::format("there is no folder for temporary files: {}; set TMPDIR to "
                    "one that can be written",
                    error.message()));
  path_ = (parent / (name + "-XXXXXX")).string();
  if (!mkdtemp(path_.data()))
    throw RuntimeError(fmt::format("a folder in {} cannot be made: {}",
                                   parent.string(), std::strerror(errno)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

} // namespace kiln::cli
