// BufferKeys: the rows of a buffer.
#include "check/launchfile/Reader.h"
#include "check/launchfile/Values.h"
#include "check/launchfile/Writer.h"
#include "kiln/run/device_description.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace kiln::launchfile {

/// NumPy has no arrays of more.
static constexpr std::size_t kMaxDimensions = 64;
static constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;
static constexpr const char
    *kNames = "a name of letters, digits, spaces, '_', '-', '$' and '.' that "
              "begins with no '.'",
    *kInits = "zeros, iota, random:SEED, random:SEED:LO:HI, poison or "
              "file:NAME.npy",
    *kAddresses = "an address: \"0x7f0000000000\", or a whole number";

using R = Reader;
using W = Writer;
using N = JsonNode;

/// A buffer's name is a file's name too, where it is saved.
static std::string readName(const JsonNode &node) {
  std::string text = node.text(kNames);
  bool isGood = !text.empty() && text[0] != '.' &&
                std::all_of(text.begin(), text.end(), [](unsigned char c) {
                  return std::isalnum(c) || (c && std::strchr(" _-$.", c));
                });
  if (!isGood)
    node.refuse(kNames);
  return text;
}

template <typename T> static bool parseNumber(std::string_view text, T &out) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

/// JSON has no numbers of base 16, in which people write addresses.
static std::uint64_t readAddress(const JsonNode &node) {
  if (node.value().is_number())
    return node.whole(0, std::numeric_limits<std::uint64_t>::max());
  std::string text = node.text(kAddresses);
  std::uint64_t address = 0;
  const char *end = text.data() + text.size();
  bool isHex = text.starts_with("0x") || text.starts_with("0X");
  auto [rest, error] = isHex
                           ? std::from_chars(text.data() + 2, end, address, 16)
                           : std::from_chars(text.data(), end, address, 10);
  if (error != std::errc() || rest != end)
    node.refuse(kAddresses);
  return address;
}

/// The words of "a:b:c".
static std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    std::size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos)
      return parts;
    text.remove_prefix(colon + 1);
  }
}

static BufferInit readRandom(const JsonNode &node, const std::string &text) {
  std::vector<std::string_view> parts = split(text);
  BufferInit init{.kind = BufferInit::Kind::random};
  if (parts[0] != "random" || (parts.size() != 2 && parts.size() != 4) ||
      !parseNumber(parts[1], init.seed))
    node.refuse(kInits);
  if (parts.size() == 4 &&
      (!parseNumber(parts[2], init.lo) || !parseNumber(parts[3], init.hi) ||
       !(init.lo <= init.hi) || !std::isfinite(init.lo) ||
       !std::isfinite(init.hi)))
    node.refuse("random:SEED:LO:HI with two numbers, LO not above HI");
  return init;
}

static BufferInit readInit(const R &reader, const JsonNode &node) {
  using Kind = BufferInit::Kind;
  std::string text = node.text(kInits);
  for (Kind kind : {Kind::zeros, Kind::iota, Kind::poison})
    if (text == BufferInit{.kind = kind}.to_string())
      return {.kind = kind};
  if (text.starts_with("file:"))
    return {.kind = Kind::file, .path = reader.arrayOf(node)};
  return readRandom(node, text);
}

static Json writeInit(const W &writer, const BufferSpec &buffer) {
  using Kind = BufferInit::Kind;
  if (!buffer.init || buffer.init->kind == Kind::declared)
    return {};
  return buffer.init->kind == Kind::file ? writer.arrayOf(buffer.init->path)
                                         : Json(buffer.init->to_string());
}

/// Refuse a shape whose bytes no GPU could hold.
static void checkShape(const JsonNode &node, const BufferSpec &spec) {
  auto most =
      static_cast<std::uint64_t>(DeviceDescription::h200().memory_bytes);
  if (spec.shape.size() > kMaxDimensions)
    node.refuse(
        fmt::format("a shape of at most {} dimensions", kMaxDimensions));
  std::uint64_t bytes = static_cast<std::uint64_t>(size_bytes(spec.type));
  bool isTooLarge = false;
  for (std::uint64_t size : spec.shape)
    isTooLarge |= __builtin_mul_overflow(bytes, size, &bytes);
  if (isTooLarge || bytes > most)
    node.refuse(fmt::format("a shape of at most {} bytes", most));
}

static void readShape(R &, const N &node, BufferSpec &buffer) {
  buffer.shape = node.wholes(0, kMaxElements);
  checkShape(node, buffer);
}

static Json writeFlag(bool value) { return value ? Json(true) : Json(); }

static Json writeBound(double value) {
  return value == 0 ? Json() : Json(value);
}

static const Keys<BufferSpec> kBufferKeys = {
    {{"buffer", "buffer", kNames, "", "its name"},
     [](R &, const N &n, BufferSpec &b) { b.name = readName(n); },
     [](const W &, const BufferSpec &b) { return Json(b.name); }},
    {{"buffer", "type", typeNames(), "", "the type of its elements"},
     [](R &, const N &n, BufferSpec &b) { b.type = readType(n); },
     [](const W &, const BufferSpec &b) { return Json(name(b.type)); }},
    {{"buffer", "shape", "a list of whole numbers", "",
      "elements, outermost first"},
     readShape,
     [](const W &, const BufferSpec &b) {
       return Json(Json::array_t(b.shape.begin(), b.shape.end()));
     }},
    {{"buffer", "init", kInits,
      "`zeros` for inputs, `poison` for outputs, as in the PTX for variables",
      "what it holds before the first launch; `random` is in [-1, 1), or from "
      "LO "
      "to HI, which integers include; `poison`: uninitialized"},
     [](R &r, const N &n, BufferSpec &b) { b.init = readInit(r, n); },
     writeInit},
    {{"buffer", "output", "true or false", "false",
      "true: saved as `NAME.npy` by `--save-dir`"},
     [](R &, const N &n, BufferSpec &b) { b.is_output = n.boolean(); },
     [](const W &, const BufferSpec &b) { return writeFlag(b.is_output); }},
    {{"buffer", "expected", "file:NAME.npy", "nothing is compared",
      "what it should hold in the end: \\|got - want\\| <= `atol` + `rtol` "
      "\\|want\\|"},
     [](R &r, const N &n, BufferSpec &b) { b.expected_path = r.arrayOf(n); },
     [](const W &w, const BufferSpec &b) {
       return w.arrayOf(b.expected_path);
     }},
    {{"buffer", "rtol", "a number that is not negative", "0",
      "tolerance, relative to what is expected"},
     [](R &, const N &n, BufferSpec &b) { b.tolerance.rtol = n.notNegative(); },
     [](const W &, const BufferSpec &b) {
       return writeBound(b.tolerance.rtol);
     }},
    {{"buffer", "atol", "a number that is not negative", "0", "tolerance"},
     [](R &, const N &n, BufferSpec &b) { b.tolerance.atol = n.notNegative(); },
     [](const W &, const BufferSpec &b) {
       bool isNeeded = b.tolerance.is_given && !b.tolerance.is_exact &&
                       b.tolerance.rtol == 0;
       return isNeeded ? Json(b.tolerance.atol) : writeBound(b.tolerance.atol);
     }},
    {{"buffer", "exact", "true or false", "false",
      "true: compared bit for bit, instead of `rtol` and `atol`"},
     [](R &, const N &n, BufferSpec &b) { b.tolerance.is_exact = n.boolean(); },
     [](const W &, const BufferSpec &b) {
       return writeFlag(b.tolerance.is_exact);
     }},
    {{"buffer", "align", "a power of two up to 256", "256",
      "alignment; every buffer has 256"},
     [](R &, const N &n, BufferSpec &) { checkAlign(n); },
     nullptr},
    {{"buffer", "address", kAddresses, "where there is room",
      "where it lies, so that pointers which a program has kept hold: from "
      "0x1000 on below 2^40 or from 5 * 2^40 on below 2^49, where no other "
      "buffer is"},
     [](R &, const N &n, BufferSpec &b) { b.address = readAddress(n); },
     [](const W &, const BufferSpec &b) {
       return b.address ? Json(fmt::format("{:#x}", *b.address)) : Json();
     }},
    {{"buffer", "offset", "a number of bytes", "0",
      "where in the buffer the pointer points that is declared with it"},
     [](R &, const N &, BufferSpec &) {}, // the pointer's
     nullptr},
    {{"buffer", "fields", "a list of fields", "none",
      "what lies at certain places of it, over `init`"},
     [](R &r, const N &n, BufferSpec &) { r.readLater(n); },
     [](const W &w, const BufferSpec &b) {
       return b.fields.empty() ? Json() : w.fields(b.fields);
     }},
    {{"buffer", "variable", "true or false", "false",
      "true: it is the variable of that name in the PTX (`__device__`, "
      "`__constant__`)"},
     [](R &, const N &n, BufferSpec &b) { b.is_variable = n.boolean(); },
     [](const W &, const BufferSpec &b) { return writeFlag(b.is_variable); }},
    {{"buffer", "written", "file:NAME.npy", "all of them",
      "which bytes `init` has written; the others are uninitialized. u8, a bit "
      "for each byte, the lowest first (`numpy.packbits(..., "
      "bitorder=\"little\")`)"},
     [](R &r, const N &n, BufferSpec &b) { b.written_path = r.arrayOf(n); },
     [](const W &w, const BufferSpec &b) { return w.arrayOf(b.written_path); }},
};

const Keys<BufferSpec> &bufferKeys() { return kBufferKeys; }

} // namespace kiln::launchfile

namespace kiln {

std::uint64_t BufferSpec::count() const {
  std::uint64_t count = 1;
  for (std::uint64_t size : shape)
    count *= size;
  return count;
}

BufferInit BufferSpec::initial() const {
  using Kind = BufferInit::Kind;
  if (init)
    return *init;
  bool isResult = is_output || !expected_path.empty();
  return {.kind = is_variable ? Kind::declared
                  : isResult  ? Kind::poison
                              : Kind::zeros};
}

std::string BufferInit::to_string() const {
  switch (kind) {
  case Kind::zeros:
    return "zeros";
  case Kind::iota:
    return "iota";
  case Kind::poison:
    return "poison";
  case Kind::declared:
    return "as in PTX";
  case Kind::file:
    return "file:" + path;
  case Kind::random:
    break;
  }
  BufferInit usual;
  return lo == usual.lo && hi == usual.hi
             ? fmt::format("random:{}", seed)
             : fmt::format("random:{}:{}:{}", seed, lo, hi);
}

} // namespace kiln
