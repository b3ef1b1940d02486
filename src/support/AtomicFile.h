// AtomicFile: write a file so that a reader sees all of it or nothing.
//
// The bytes go to a temporary name beside the file, unique to the process, the
// thread and the call, and to the disk; then it is renamed. A process that dies
// in between leaves the temporary file behind; its name ends in ".tmp", and who
// writes to that folder a day later removes it.
#pragma once

#include "kiln/base/export.h"

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// What becomes of a symbolic link under the name that is written to: where a
/// person has named the file, it is written through. In folders that Kiln fills
/// by itself nobody follows a link that somebody else has put there.
enum class Links : std::uint8_t { follow, replace };

/// A file while it is written. What exists under its name keeps its mode, and
/// is as it was until `commit`. Each call returns 0 or the errno of what
/// failed; after the first failure the others return that one.
class OutputFile {
public:
  explicit OutputFile(const std::filesystem::path &path,
                      Links links = Links::follow);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  int write(std::string_view bytes);
  /// Likewise at a place; what is between is a hole.
  int writeAt(std::uint64_t offset, std::string_view bytes);
  int resize(std::uint64_t bytes);
  int commit();
  /// Be content when the machine stays up: what tells a torn file by itself
  /// does not wait for the disk.
  void leaveUnsynced() { isSynced_ = false; }
  int failure() const { return failure_; }

private:
  void open();
  void sweep();
  /// Keep the first failure.
  int note(int failure);

  std::filesystem::path target_;
  std::string temporary_; ///< empty: written to in place, as a device is
  int file_ = -1;
  int failure_ = 0;
  bool isSynced_ = true;
};

/// Write `parts` one after the other. Returns 0 or the errno of what failed;
/// then `path` is as it was before. What is no regular file, such as /dev/null,
/// is written to and stays what it is.
int writeFileAtomically(const std::filesystem::path &path,
                        std::initializer_list<std::string_view> parts,
                        Links links = Links::follow);

/// Whether `writeFileAtomically` could begin: 0 or errno.
int checkWritable(const std::filesystem::path &path);

/// Make `folder / name`, where it is not there, and the folders above `folder`.
/// Returns 0 or errno: ELOOP or ENOTDIR where `name` is a link, so that what is
/// written below it stays in `folder`.
int makeFolderInside(const std::filesystem::path &folder,
                     const std::string &name);

} // namespace kiln
