// npy: arrays in NumPy's .npy files, read and written.
//
// Versions 1 and 2, little-endian, C order. NumPy has no bf16 and no fp8: files
// hold their bits as uint16 and uint8.
#pragma once

#include <kiln/base/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cli {

/// The elements of the file. Throws UserError where it cannot be read, is no
/// .npy file, or holds another type or shape; `what` says whose it is.
std::vector<std::byte> read_npy(const std::string &path, Type type,
                                const std::vector<std::uint64_t> &shape,
                                const std::string &what);

/// Throws RuntimeError where the file cannot be written.
void write_npy(const std::string &path, Type type,
               const std::vector<std::uint64_t> &shape,
               const std::vector<std::byte> &data);

} // namespace kiln::cli
