// InputFile: open what somebody else wrote, with limits.
//
// Only regular files are read. A pipe, a device or a folder is refused at once,
// and nobody is waited for.
#pragma once

#include "kiln/base/export.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace KILN_API kiln {

/// Not a regular file; beside the numbers of errno.
inline constexpr int kNotRegular = -1;

/// A regular file, open for reading.
class InputFile {
public:
  explicit InputFile(const std::filesystem::path &path);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  /// 0, kNotRegular, or the errno of why it cannot be read.
  int failure() const { return failure_; }
  /// What the file says of its size; those of /proc say 0.
  std::uint64_t bytes() const { return bytes_; }
  /// `size` bytes at a place; false where there are not so many.
  bool readAt(std::uint64_t offset, void *to, std::size_t size) const;
  /// All of it; returns 0 or errno: EFBIG where there is more than that.
  int readAll(std::string &to, std::uint64_t limitBytes) const;
  /// Its modification time becomes now, where that is allowed.
  void touch() const;

private:
  int file_ = -1;
  int failure_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Read a whole regular file into `bytes`. Returns 0, kNotRegular, or the errno
/// of what failed: EFBIG where there are more than `limitBytes`. With `touch`,
/// its modification time becomes now, where that is allowed.
int readFile(const std::filesystem::path &path, std::string &bytes,
             std::uint64_t limitBytes = UINT64_MAX, bool touch = false);

} // namespace kiln
