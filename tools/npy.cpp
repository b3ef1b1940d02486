// npy: the header is the text of a Python dictionary with three known keys.
#include "npy.h"

#include <kiln/error.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <regex>
#include <sstream>

namespace kiln::cli {

static_assert(std::endian::native == std::endian::little);

static constexpr std::string_view kMagic = "\x93NUMPY";
/// Data begins at a multiple of this, as NumPy writes it.
static constexpr std::size_t kDataAlign = 64;

namespace {

struct NpyHeader {
  std::string descr;
  bool is_fortran = false;
  std::vector<std::uint64_t> shape;
};

} // namespace

std::string npy_descr(Type type) {
  int bytes = size_bytes(type);
  bool is_number = type != Type::bf16 && bytes > 1;
  char kind = is_float(type) && is_number ? 'f'
              : is_signed_integer(type)   ? 'i'
                                          : 'u';
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

/// "(3, 4)", "(3,)", "()": as Python writes a tuple.
static std::string tuple(const std::vector<std::uint64_t> &shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "),
                     shape.size() == 1 ? "," : "");
}

static std::string read_file(const std::string &path, const std::string &what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw UserError(fmt::format("{}: {} cannot be read: {}", what, path,
                                std::strerror(errno ? errno : EIO)));
  return std::move(text).str();
}

/// The value of a key in the header's dictionary; nothing where it has none.
static std::string field(const std::string &header, const std::string &key,
                         const std::string &value) {
  std::smatch match;
  std::regex pattern("['\"]" + key + "['\"]\\s*:\\s*" + value);
  return std::regex_search(header, match, pattern) ? match[1].str() : "";
}

/// Read the header at the front of `text`, and take it off.
static NpyHeader take_header(std::string_view &text, const std::string &place) {
  auto refuse = [&](const std::string &why) {
    throw UserError(fmt::format("{} is no .npy file this can read: {}; "
                                "numpy.save writes them",
                                place, why));
  };
  if (!text.starts_with(kMagic) || text.size() < 10)
    refuse("it does not begin with \\x93NUMPY");
  int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    refuse(fmt::format("its version is {}, not 1, 2 or 3", version));
  std::size_t begin = version == 1 ? 10 : 12;
  std::uint32_t length = 0;
  if (text.size() >= begin)
    std::memcpy(&length, text.data() + 8, begin - 8);
  if (text.size() < begin || text.size() - begin < length)
    refuse("it ends within its header");
  std::string header(text.substr(begin, length));
  text.remove_prefix(begin + length);

  NpyHeader result;
  result.descr = field(header, "descr", "['\"]([^'\"]*)['\"]");
  std::string order = field(header, "fortran_order", "(True|False)");
  std::string shape = field(header, "shape", "(\\([0-9, ]*\\))");
  if (result.descr.empty() || order.empty() || shape.empty())
    refuse(fmt::format("its header is '{}'", header));
  result.is_fortran = order == "True";
  for (char &c : shape)
    if (c < '0' || c > '9')
      c = ' ';
  std::istringstream numbers(shape);
  for (std::uint64_t size; numbers >> size;)
    result.shape.push_back(size);
  return result;
}

std::vector<std::byte> read_npy(const std::string &path, Type type,
                                const std::vector<std::uint64_t> &shape,
                                const std::string &what) {
  std::string file = read_file(path, what);
  std::string place = fmt::format("{}: {}", what, path);
  std::string_view data = file;
  NpyHeader header = take_header(data, place);
  if (header.descr != npy_descr(type))
    throw UserError(fmt::format("{} holds elements of '{}'; for {} it must "
                                "hold '{}'",
                                place, header.descr, name(type),
                                npy_descr(type)));
  if (header.shape != shape)
    throw UserError(fmt::format("{} has the shape {}; the buffer has {}", place,
                                tuple(header.shape), tuple(shape)));
  if (header.is_fortran && shape.size() > 1)
    throw UserError(fmt::format("{} is in Fortran order; save it in C order "
                                "(numpy.ascontiguousarray)",
                                place));
  std::size_t bytes = size_bytes(type);
  for (std::uint64_t size : shape)
    bytes *= size;
  if (data.size() != bytes)
    throw UserError(fmt::format("{} holds {} bytes of elements; {} of {} are "
                                "{} bytes",
                                place, data.size(), tuple(shape), name(type),
                                bytes));
  std::vector<std::byte> result(bytes);
  std::memcpy(result.data(), data.data(), bytes);
  return result;
}

void write_npy(const std::string &path, Type type,
               const std::vector<std::uint64_t> &shape,
               const std::vector<std::byte> &data) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                  npy_descr(type), tuple(shape));
  std::size_t front = kMagic.size() + 4;
  std::size_t end = front + header.size() + 1;
  header.append((kDataAlign - end % kDataAlign) % kDataAlign, ' ');
  header += '\n';
  auto length = static_cast<std::uint16_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file << kMagic << '\1' << '\0';
  file.write(reinterpret_cast<const char *>(&length), sizeof(length));
  file << header;
  file.write(reinterpret_cast<const char *>(data.data()),
             static_cast<std::streamsize>(data.size()));
  file.close();
  if (!file)
    throw UserError(fmt::format("{} cannot be written: {}", path,
                                std::strerror(errno ? errno : EIO)));
}

} // namespace kiln::cli
