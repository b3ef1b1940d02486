// TemporaryFolder: a folder of our own that is gone when its owner is.
#include "ptx/tools/TemporaryFolder.h"

#include "support/Error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace fs = std::filesystem;

namespace kiln {

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  fs::path parent = fs::temp_directory_path(error);
  if (error)
    runtimeError("there is no folder for temporary files: {}; set TMPDIR to "
                 "one that can be written",
                 error.message());
  std::string name = (parent / "kiln-XXXXXX").string();
  if (!mkdtemp(name.data()))
    runtimeError("cannot make a temporary folder in '{}': {}; set TMPDIR to a "
                 "folder that can be written",
                 parent.string(), std::strerror(errno));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TemporaryFolder::write(std::string_view name, std::string_view bytes) {
  fs::path path = path_ / name;
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out)
    runtimeError("cannot write {} bytes to '{}'; is the disk full?",
                 bytes.size(), path.string());
  return path;
}

std::string TemporaryFolder::read(std::string_view name) const {
  fs::path path = path_ / name;
  std::ifstream in(path, std::ios::binary);
  if (!in)
    runtimeError("cannot read '{}'", path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

} // namespace kiln
