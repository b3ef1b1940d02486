// Npy: the header is the text of a Python dictionary with three known keys.
#include "support/text/Npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

/// Data begins at a multiple of this, as NumPy writes it.
static constexpr std::size_t kDataAlign = 64;

std::string npyDescr(Type type) {
  int bytes = size_bytes(type);
  bool isNumber = type != Type::bf16 && bytes > 1;
  char kind = is_float(type) && isNumber ? 'f'
              : is_signed_integer(type)  ? 'i'
                                         : 'u';
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

std::string npyTuple(const std::vector<std::uint64_t> &shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "),
                     shape.size() == 1 ? "," : "");
}

std::string npyHeader(Type type, const std::vector<std::uint64_t> &shape) {
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                  npyDescr(type), npyTuple(shape));
  std::size_t front = kNpyMagic.size() + 4;
  std::size_t end = front + dictionary.size() + 1;
  dictionary.append((kDataAlign - end % kDataAlign) % kDataAlign, ' ');
  dictionary += '\n';
  auto length = static_cast<std::uint16_t>(dictionary.size());
  std::string header(kNpyMagic);
  header.append("\1\0", 2); // version 1.0
  header.append(reinterpret_cast<const char *>(&length), sizeof(length));
  return header + dictionary;
}

} // namespace kiln
