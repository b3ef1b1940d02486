// file.h: files, read whole and written whole.
//
// What is read is a regular file of a sensible size: a folder, a device or a
// pipe is refused at once instead of being waited for. What is written appears
// under its name when all of it is there.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// No text that Kiln reads is larger: PTX, MLIR, launch files, saved kernels.
inline constexpr std::uint64_t kTextLimitBytes = std::uint64_t{256} << 20;

/// The bytes of a regular file. Throws UserError, "FILE cannot be read: ...",
/// for anything else, and for one of more than `limit_bytes`.
std::string read_file(const std::string &path,
                      std::uint64_t limit_bytes = kTextLimitBytes);

/// Throws UserError, "FILE cannot be written: ...", where `write_file` would
/// fail now; for asking before the work whose result goes there. Leaves the
/// file as it is.
void check_writable(const std::string &path);

/// Write the parts, one behind the other: to a temporary name, then renamed; a
/// device or a pipe is written to as it is. Throws RuntimeError, "FILE cannot
/// be written: ...".
void write_file(const std::string &path,
                std::initializer_list<std::string_view> parts);

} // namespace kiln
