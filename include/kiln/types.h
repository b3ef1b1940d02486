// types.h: element types, the same words in kernels, files and on the command
// line.
#pragma once

#include <kiln/export.h>

#include <cstdint>
#include <string_view>

namespace KILN_API kiln {

/// The type of a value in a kernel or of an element in memory.
///
/// Signed and unsigned integers are types of their own because division,
/// comparison, shift and conversion differ. `tf32` is stored as 32 bits;
/// `index` is 64 bits wide. `i1` is the result of a comparison.
enum class Type : std::uint8_t {
  i1,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  index,
  f16,
  bf16,
  tf32,
  f32,
  f64,
  e4m3,
  e5m2,
};

inline constexpr Type i1 = Type::i1, i8 = Type::i8, i16 = Type::i16,
                      i32 = Type::i32, i64 = Type::i64, u8 = Type::u8,
                      u16 = Type::u16, u32 = Type::u32, u64 = Type::u64,
                      f16 = Type::f16, bf16 = Type::bf16, tf32 = Type::tf32,
                      f32 = Type::f32, f64 = Type::f64, e4m3 = Type::e4m3,
                      e5m2 = Type::e5m2;

/// Bits of a value; an i1 has 1.
int size_bits(Type type);
/// Bytes of an element in memory; an i1 takes 1.
int size_bytes(Type type);
bool is_float(Type type);
bool is_signed_integer(Type type);
bool is_unsigned_integer(Type type); ///< u8..u64 and index

/// "f16", "i32", ...
std::string_view name(Type type);
/// The inverse of `name`. Throws UserError that lists the names.
Type parse_type(std::string_view text);

/// Where a conversion goes whose value lies between two others.
enum class Rounding : std::uint8_t {
  nearest_even, ///< .rn .rni
  toward_zero,  ///< .rz .rzi
  down,         ///< .rm .rmi: towards minus infinity
  up,           ///< .rp .rpi: towards plus infinity
  nearest_away, ///< .rna: from the middle away from zero; f32 to tf32 alone
};

/// Round `value` to `type` (nearest even; integers saturate; e4m3 and e5m2
/// saturate to their largest finite value) and return its bits in the low bits.
std::uint64_t to_bits(Type type, double value);
/// The value of those bits.
double from_bits(Type type, std::uint64_t bits);

} // namespace kiln
