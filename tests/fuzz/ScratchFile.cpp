// ScratchFile: a file without a folder.
#include "fuzz/ScratchFile.h"

#include <fmt/format.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::fuzz {

ScratchFile::ScratchFile(std::string_view bytes)
    : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (file_ < 0 || ::write(file_, bytes.data(), bytes.size()) !=
                       static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("no memory for a file");
}

ScratchFile::~ScratchFile() { ::close(file_); }

std::string ScratchFile::path() const {
  return fmt::format("/proc/self/fd/{}", file_);
}

} // namespace kiln::fuzz
