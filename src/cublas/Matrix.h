// Matrix: operands of cuBLAS in the simulator's memory.
//
// What is read is checked for bounds and for bytes that nobody has written, what
// is written for bounds; numbers are doubles on the way, whatever they are in
// memory.
#pragma once

#include "cudart/Session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cublas {

enum class Element : std::uint8_t { f16, bf16, f32, f64, i8, i32 };
std::size_t bytesOf(Element element);
const char *name(Element element);

/// A number in the host's memory.
double numberAt(Element element, const void *from);
void putNumber(Element element, void *to, double value);

/// Thrown where an access is refused; the finding has been told.
struct BadAccess {};

/// Columns of elements, one behind the other. A vector is a row: its elements
/// are `ld` apart.
struct Matrix {
  const char *name; ///< "A", "x"
  std::uint64_t address = 0;
  Element element = Element::f32;
  std::int64_t rows = 0, columns = 0, ld = 0;

  std::uint64_t column(std::int64_t j) const {
    return address + static_cast<std::uint64_t>(j * ld) * bytesOf(element);
  }
};

/// A call, for what is said about its operands.
class Access {
public:
  explicit Access(std::string function);

  /// Column by column, without gaps.
  std::vector<double> read(const Matrix &matrix) const;
  void write(const Matrix &matrix, const std::vector<double> &values) const;
  /// Pointers in the memory of the device.
  std::vector<std::uint64_t> readPointers(const void *const *array,
                                          std::int64_t count) const;

private:
  /// The place of so many bytes of an operand. Throws BadAccess.
  std::byte *at(const Matrix &matrix, std::uint64_t address, std::size_t bytes,
                bool isWrite) const;
  void report(const std::string &id, const Matrix &matrix, const char *verb,
              std::size_t bytes, std::uint64_t address,
              const std::string &what) const;

  std::string function_;
  Simulation &simulation_;
  mutable bool hasTold_ = false; ///< of bytes that nobody wrote
};

} // namespace kiln::cublas
