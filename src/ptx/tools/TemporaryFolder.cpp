// TemporaryFolder: a folder of our own that is gone when its owner is.
#include "ptx/tools/TemporaryFolder.h"

#include "kiln/base/file.h"
#include "support/AtomicFile.h"
#include "support/Error.h"
#include "support/InputFile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

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
  if (int failure = writeFileAtomically(path, {bytes}, Links::replace))
    runtimeError("cannot write {} bytes to '{}': {}", bytes.size(),
                 path.string(), std::strerror(failure));
  return path;
}

std::string TemporaryFolder::read(std::string_view name) const {
  fs::path path = path_ / name;
  std::string bytes;
  if (readFile(path, bytes, kTextLimitBytes) != 0)
    runtimeError("cannot read '{}'", path.string());
  return bytes;
}

} // namespace kiln
