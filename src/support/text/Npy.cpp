// Npy: the header is the text of a Python dictionary with three known keys.
#include "support/text/Npy.h"
#include "kiln/base/file.h"
#include "support/AtomicFile.h"
#include "support/Error.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace kiln {

static_assert(std::endian::native == std::endian::little);

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

/// No header is longer; NumPy writes some hundred bytes, and reads 10,000.
static constexpr std::uint32_t kMaxHeader = 65536;
/// Characters of a header that a message shows.
static constexpr std::size_t kMaxQuoted = 200;

namespace {

struct NpyHeader {
  std::string descr;
  bool isFortran = false;
  std::vector<std::uint64_t> shape;
};

} // namespace

/// The file, unless it is far larger than its array.
static std::string readArray(const std::string &path, std::uint64_t bytes,
                             const std::string &what) {
  try {
    return read_file(path, bytes + 2 * kMaxHeader);
  } catch (const UserError &error) {
    userError("{}: {}", what, error.message());
  }
}

/// What stands behind a key of the header's dictionary, from its first
/// character on; nothing where it has no such key.
static std::string_view valueOf(std::string_view header, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    std::size_t at = header.find(fmt::format("{}{}{}", quote, key, quote));
    if (at == std::string_view::npos)
      continue;
    at = header.find_first_not_of(" :", at + key.size() + 2);
    return header.substr(std::min(at, header.size()));
  }
  return {};
}

/// 'text' or "text".
static std::string takeString(std::string_view value) {
  if (!value.starts_with('\'') && !value.starts_with('"'))
    return "";
  std::size_t end = value.find(value[0], 1);
  return std::string(end == std::string_view::npos ? ""
                                                   : value.substr(1, end - 1));
}

/// (3, 4): nothing where it is no tuple of whole numbers of 64 bits.
static std::optional<std::vector<std::uint64_t>>
takeShape(std::string_view value) {
  std::size_t end = value.find(')');
  if (!value.starts_with('(') || end == std::string_view::npos)
    return std::nullopt;
  std::vector<std::uint64_t> shape;
  for (std::size_t at = 1; at < end;) {
    at = std::min(value.find_first_not_of(", ", at), end);
    if (at == end)
      break;
    std::uint64_t size = 0;
    auto [stop, error] =
        std::from_chars(value.data() + at, value.data() + end, size);
    if (error != std::errc())
      return std::nullopt;
    shape.push_back(size);
    at = static_cast<std::size_t>(stop - value.data());
  }
  return shape;
}

/// Read the header at the front of `text`, and take it off.
static NpyHeader takeHeader(std::string_view &text, const std::string &place) {
  auto refuse = [&](const std::string &why) {
    userError("{} is not an .npy file that can be read: {}; "
              "numpy.save writes them",
              place, why);
  };
  if (!text.starts_with(kNpyMagic) || text.size() < 10)
    refuse("it does not begin with \\x93NUMPY");
  int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    refuse(fmt::format("its version is {}, not 1, 2 or 3", version));
  std::size_t begin = version == 1 ? 10 : 12;
  std::uint32_t length = 0;
  if (text.size() >= begin)
    std::memcpy(&length, text.data() + 8, begin - 8);
  if (length > kMaxHeader)
    refuse(fmt::format("its header has {} bytes, more than {}", length,
                       kMaxHeader));
  if (text.size() < begin || text.size() - begin < length)
    refuse("it ends within its header");
  std::string header(text.substr(begin, length));
  text.remove_prefix(begin + length);

  NpyHeader result;
  result.descr = takeString(valueOf(header, "descr"));
  std::string_view order = valueOf(header, "fortran_order");
  std::optional<std::vector<std::uint64_t>> shape =
      takeShape(valueOf(header, "shape"));
  result.isFortran = order.starts_with("True");
  if (result.descr.empty() || !shape ||
      (!result.isFortran && !order.starts_with("False")))
    refuse(fmt::format("its header is '{}'", header.substr(0, kMaxQuoted)));
  result.shape = *std::move(shape);
  return result;
}

std::vector<std::byte> readNpy(const std::string &path, Type type,
                               const std::vector<std::uint64_t> &shape,
                               const std::string &what) {
  std::size_t bytes = size_bytes(type);
  for (std::uint64_t size : shape)
    bytes *= size;
  std::string file = readArray(path, bytes, what);
  std::string place = fmt::format("{}: {}", what, path);
  std::string_view data = file;
  NpyHeader header = takeHeader(data, place);
  if (header.descr != npyDescr(type))
    userError("{} holds elements of '{}'; for {} it must "
              "hold '{}'",
              place, header.descr, name(type), npyDescr(type));
  if (header.shape != shape)
    userError("{} has the shape {}; the buffer has {}", place,
              npyTuple(header.shape), npyTuple(shape));
  if (header.isFortran && shape.size() > 1)
    userError("{} is in Fortran order; save it in C order "
              "(numpy.ascontiguousarray)",
              place);
  if (data.size() != bytes)
    userError("{} holds {} bytes of elements; {} of {} are "
              "{} bytes",
              place, data.size(), npyTuple(shape), name(type), bytes);
  std::vector<std::byte> result(bytes);
  std::memcpy(result.data(), data.data(), bytes);
  return result;
}

void writeNpy(const std::string &path, Type type,
              const std::vector<std::uint64_t> &shape,
              const std::vector<std::byte> &data) {
  write_file(path,
             {npyHeader(type, shape),
              {reinterpret_cast<const char *>(data.data()), data.size()}});
}

void writeNpyPieces(const std::string &path, std::size_t bytes,
                    const std::vector<NpyPiece> &pieces) {
  std::string header = npyHeader(Type::u8, {bytes});
  OutputFile file(path, Links::replace);
  file.write(header);
  file.resize(header.size() + bytes);
  for (const auto &[offset, data] : pieces)
    file.writeAt(header.size() + offset,
                 {reinterpret_cast<const char *>(data.data()), data.size()});
  if (int failure = file.commit())
    runtimeError("{} cannot be written: {}", path, std::strerror(failure));
}

} // namespace kiln
