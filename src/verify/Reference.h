// Reference: the parts of the reference that its files share.
#pragma once

#include "kiln/measure/reference.h"

#include <cstring>
#include <functional>

namespace kiln {

/// Elements of memory as doubles. Types of 8 and 16 bits are looked up: their
/// conversion costs more than the multiplications it feeds.
class ElementReader {
public:
  explicit ElementReader(Type type);

  double operator()(const void *data, std::int64_t i) const {
    std::uint64_t bits = 0;
    if (isSubbyte_)
      bits = load_bits(type_, data, i);
    else
      std::memcpy(&bits, static_cast<const std::byte *>(data) + i * bytes_,
                  static_cast<std::size_t>(bytes_));
    return values_.empty() ? from_bits(type_, bits) : values_[bits];
  }

private:
  Type type_;
  int bytes_;
  bool isSubbyte_;
  std::vector<double> values_;
};

/// How a matrix lies in memory, in elements.
struct MatrixStrides {
  std::int64_t row = 0, col = 0, batch = 0;

  std::int64_t at(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return b * batch + i * row + j * col;
  }
};
MatrixStrides stridesOfD(const ReferenceGemm &gemm);

/// Throws UserError where the product is none.
void checkGemm(const ReferenceGemm &gemm);

std::vector<std::int64_t> allBelow(std::int64_t count);

/// Where an element is: its product, and its positions in the index lists.
struct ElementPlace {
  std::int64_t batch = 0, row = 0, col = 0;
};
using UseElement = std::function<void(unsigned worker, const ElementPlace &,
                                      const ReferenceElement &)>;
/// Compute rows x cols of every product, on all cores; `worker` is below the
/// number of cores.
void forEachElement(const ReferenceGemm &gemm,
                    std::span<const std::int64_t> rows,
                    std::span<const std::int64_t> cols, const UseElement &use);

/// x as the type holds it: rounded, too large ones as the type has them.
double asStored(Type type, double x);

} // namespace kiln
