// types.h: element types, the same words in kernels, files and on the command
// line.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>
#include <string_view>

namespace KILN_API kiln {

/// The type of a value in a kernel or of an element in memory.
///
/// Signed and unsigned integers are types of their own because division,
/// comparison, shift and conversion differ. `tf32` is stored as 32 bits;
/// `index` is 64 bits wide. `i1` is the result of a comparison.
///
/// The narrow floats of Blackwell lie in memory as its tensor core reads them:
/// `e2m1` two to a byte, the first in its low half; `e2m3` and `e3m2` sixteen
/// to 16 bytes, of which they fill the first 12. Kernels copy tiles of them and
/// multiply them; a single one has no address. `ue8m0`, a power of two (127 is
/// 1), and `ue4m3` have no sign: factors of blocks (scaling.h).
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
  e2m1,
  e2m3,
  e3m2,
  ue8m0,
  ue4m3,
};

inline constexpr Type i1 = Type::i1, i8 = Type::i8, i16 = Type::i16,
                      i32 = Type::i32, i64 = Type::i64, u8 = Type::u8,
                      u16 = Type::u16, u32 = Type::u32, u64 = Type::u64,
                      f16 = Type::f16, bf16 = Type::bf16, tf32 = Type::tf32,
                      f32 = Type::f32, f64 = Type::f64, e4m3 = Type::e4m3,
                      e5m2 = Type::e5m2, e2m1 = Type::e2m1, e2m3 = Type::e2m3,
                      e3m2 = Type::e3m2, ue8m0 = Type::ue8m0,
                      ue4m3 = Type::ue4m3;

/// Bits of a value; an i1 has 1.
int size_bits(Type type);
/// Bytes of an element in memory; an i1 takes 1, and two of e2m1 share one.
int size_bytes(Type type);
/// Bytes that so many elements take in memory, one behind the other.
std::int64_t bytes_of(Type type, std::int64_t count);
/// Elements in so many bytes: 2 of e2m1 in each.
std::int64_t elements_in(Type type, std::int64_t bytes);
/// e2m1, e2m3 and e3m2: less than a byte each.
bool is_subbyte(Type type);
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

/// Round `value` to `type` (nearest even; integers saturate; floats of 8 bits
/// and less saturate to their largest finite value) and return its bits in the
/// low bits.
std::uint64_t to_bits(Type type, double value);
/// The value of those bits.
double from_bits(Type type, std::uint64_t bits);
/// The bits of element i of an array in memory.
std::uint64_t load_bits(Type type, const void *data, std::int64_t i);
void store_bits(Type type, void *data, std::int64_t i, std::uint64_t bits);

} // namespace kiln
