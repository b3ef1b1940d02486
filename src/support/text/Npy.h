// Npy: arrays in NumPy's .npy files, read and written.
//
// Versions 1 to 3, little-endian, C order. NumPy has no bf16 and no fp8: files
// hold their bits as uint16 and uint8.
#pragma once

#include "kiln/base/export.h"
#include "kiln/base/types.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace KILN_API kiln {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// "<f4": how a .npy file names the type.
std::string npyDescr(Type type);
/// "(3, 4)", "(3,)", "()": as Python writes a tuple.
std::string npyTuple(const std::vector<std::uint64_t> &shape);
/// Everything before the elements, which follow in C order.
std::string npyHeader(Type type, const std::vector<std::uint64_t> &shape);

/// The elements of the file. Throws UserError where it cannot be read, is no
/// .npy file, or holds another type or shape; `what` says whose it is.
std::vector<std::byte> readNpy(const std::string &path, Type type,
                               const std::vector<std::uint64_t> &shape,
                               const std::string &what);

/// Throws RuntimeError where the file cannot be written.
void writeNpy(const std::string &path, Type type,
              const std::vector<std::uint64_t> &shape,
              const std::vector<std::byte> &data);

/// Bytes, and where they begin.
using NpyPiece = std::pair<std::size_t, std::vector<std::byte>>;
/// An array of bytes of which some pieces are given; the rest are zero, and
/// holes of the file. Throws RuntimeError where it cannot be written.
void writeNpyPieces(const std::string &path, std::size_t bytes,
                    const std::vector<NpyPiece> &pieces);

} // namespace kiln
