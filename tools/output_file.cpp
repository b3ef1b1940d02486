// output_file: write whole files, and say why one cannot be.
#include "output_file.h"

#include <kiln/error.h>

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

namespace kiln::cli {

void write_output(const std::string &path, const std::string &text) {
  if (path.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file)
    throw UserError(fmt::format("{} cannot be written: {}; give a path in a "
                                "folder that exists and can be written",
                                path, std::strerror(errno ? errno : EIO)));
}

} // namespace kiln::cli
