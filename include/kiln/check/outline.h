// outline.h: what a launch of PTX has to bring, as far as the text tells it.
//
// The entry names its parameters and their sizes, and what it does with them
// tells the rest: a value that becomes an address is a pointer, the loads and
// stores through it give the type of its elements, and a copy by TMA gives the
// rank of its tensor map. Grid, shapes and values are nowhere in PTX.
#pragma once

#include <kiln/base/export.h>
#include <kiln/base/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// A part of a parameter that the kernel reads: all of it, or a field of a
/// struct.
struct PtxField {
  enum class Kind : std::uint8_t { number, pointer, tensor_map };

  Kind kind = Kind::number;
  std::uint32_t offset = 0; ///< within its parameter
  /// Of the number, or of the elements behind the pointer.
  Type type = Type::u32;
  /// The text does not settle the type: bits alone, two types, or no access
  /// that could be followed back to here.
  bool is_type_guessed = false;
  bool is_read = false, is_written = false; ///< what lies behind it
  int rank = 0;                             ///< tensor maps; 0: not known
};

struct PtxParameter {
  std::string name;
  std::uint32_t bytes = 0;
  bool is_struct = false;       ///< bytes by value that are not a tensor map
  bool is_indexed = false;      ///< it is read at places that are computed
  std::vector<PtxField> fields; ///< by offset; one where it is not a struct
};

struct PtxEntry {
  std::string name;
  std::vector<PtxParameter> parameters;
  std::array<std::uint32_t, 3> block = {0, 0, 0}; ///< 0: the text has none
  bool is_block_required = false; ///< .reqntid; else the most, .maxntid
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  /// Arrays of shared memory without a size: the launch gives them bytes.
  std::vector<std::string> dynamic_smem;
};

/// The entries of the text. Throws UserError where it cannot be parsed.
std::vector<PtxEntry> outline(std::string_view ptx);

} // namespace kiln
