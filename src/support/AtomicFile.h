// AtomicFile: write a file so that a reader sees all of it or nothing.
//
// The bytes go to a temporary name beside the file, unique to the process, the
// thread and the call, which is then renamed. A process that dies in between
// leaves the temporary file behind; its name ends in ".tmp".
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kiln {

/// Write `parts` one after the other. Returns 0 or the errno of what failed;
/// then `path` is as it was before.
int writeFileAtomically(const std::filesystem::path &path,
                        std::initializer_list<std::string_view> parts);

/// Read a whole file into `bytes`. Returns 0 or the errno of what failed. With
/// `touch`, its modification time becomes now, where that is allowed.
int readFile(const std::filesystem::path &path, std::string &bytes,
             bool touch = false);

} // namespace kiln
