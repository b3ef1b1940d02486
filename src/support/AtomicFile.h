// AtomicFile: write a file so that a reader sees all of it or nothing.
//
// The bytes go to a temporary name beside the file, unique to the process, the
// thread and the call, which is then renamed. A process that dies in between
// leaves the temporary file behind; its name ends in ".tmp".
#pragma once

#include "kiln/base/export.h"

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// Write `parts` one after the other. Returns 0 or the errno of what failed;
/// then `path` is as it was before. What is no regular file, such as /dev/null,
/// is written to and stays what it is; a link is followed.
int writeFileAtomically(const std::filesystem::path &path,
                        std::initializer_list<std::string_view> parts);

/// Whether `writeFileAtomically` could begin: 0 or errno.
int checkWritable(const std::filesystem::path &path);

/// readFile: not a regular file.
inline constexpr int kNotRegular = -1;

/// Read a whole regular file into `bytes`, without waiting for anybody. Returns
/// 0, kNotRegular, or the errno of what failed: EFBIG where there are more than
/// `limitBytes`. With `touch`, its modification time becomes now, where that is
/// allowed.
int readFile(const std::filesystem::path &path, std::string &bytes,
             std::uint64_t limitBytes = UINT64_MAX, bool touch = false);

} // namespace kiln
