// ArgumentKeys: the rows of arguments: pointers, numbers, tensor maps, structs,
// and fields of structs and buffers.
#include "check/launchfile/Reader.h"
#include "check/launchfile/Values.h"
#include "check/launchfile/Writer.h"

#include "kiln/run/device_description.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/ranges.h>
#include <limits>

namespace kiln::launchfile {

/// Of buffers and numbers.
static constexpr Type kTypes[] = {f16, bf16, f32, f64, i8,  u8,   i16,
                                  u16, i32,  u32, i64, u64, e4m3, e5m2};
/// Of tensor maps too.
static constexpr Type kMapTypes[] = {tf32, e2m1};
/// The alignment every buffer has.
static constexpr std::uint64_t kBufferAlign = 256;
static constexpr std::uint64_t kMost32 =
    std::numeric_limits<std::uint32_t>::max();
static constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;

using R = Reader;
using W = Writer;
using N = JsonNode;

static std::vector<std::string_view> namesOf(bool isOfMap) {
  std::vector<std::string_view> names;
  for (Type type : kTypes)
    names.push_back(name(type));
  for (Type type : kMapTypes)
    if (isOfMap)
      names.push_back(name(type));
  return names;
}

std::string typeNames() {
  return fmt::format("{}", fmt::join(namesOf(false), ", "));
}

Type readType(const JsonNode &node, bool isOfMap) {
  std::vector<std::string_view> names = namesOf(isOfMap);
  std::string accepted = fmt::format("one of {}", fmt::join(names, ", "));
  std::string text = node.text(accepted);
  if (std::find(names.begin(), names.end(), text) == names.end())
    node.refuse(accepted);
  return parse_type(text);
}

void checkAlign(const JsonNode &node) {
  if (!std::has_single_bit(node.whole(1, kBufferAlign)))
    node.refuse(fmt::format("a power of two up to {}", kBufferAlign));
}

static const Keys<PointerArgument> kPointerKeys = {
    {{"pointer", "buffer", "the name of a buffer", "", "where it points to"},
     [](R &r, const N &n, PointerArgument &p) { p.index = r.findBuffer(n); },
     [](const W &w, const PointerArgument &p) {
       return Json(w.buffer(p.index).name);
     }},
    {{"pointer", "offset", "a number of bytes", "0",
      "where in the buffer it points"},
     [](R &r, const N &n, PointerArgument &p) {
       p.offset = n.whole(0, r.buffer(p.index).bytes());
     },
     [](const W &, const PointerArgument &p) {
       return p.offset ? Json(p.offset) : Json();
     }},
};

/// An integer that fits into its type.
static std::uint64_t readInteger(const JsonNode &value, Type type) {
  int bits = size_bits(type);
  if (is_signed_integer(type)) {
    std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
    const nlohmann::json &given = value.value();
    bool fits = given.is_number_integer() &&
                (given.is_number_unsigned()
                     ? given.get<std::uint64_t>() <= std::uint64_t(most)
                     : given.get<std::int64_t>() >= -most - 1);
    if (!fits)
      value.refuse(
          fmt::format("a whole number from {} to {}", -most - 1, most));
    return static_cast<std::uint64_t>(given.get<std::int64_t>());
  }
  return value.whole(0, ~std::uint64_t{0} >> (64 - bits));
}

/// The type as a file has it: JSON has no infinities and NaNs, so that their
/// bits are written.
static Type writtenType(const Scalar &scalar) {
  constexpr Type kBits[] = {u8, u16, u32, u64};
  if (!is_float(scalar.type) || std::isfinite(scalar.value()))
    return scalar.type;
  return kBits[std::countr_zero(
      static_cast<unsigned>(size_bytes(scalar.type)))];
}

static Json writeValue(const Scalar &scalar) {
  Type type = writtenType(scalar);
  if (is_float(type))
    return scalar.value();
  int unused = 64 - 8 * size_bytes(type);
  std::uint64_t bits = scalar.bits << unused;
  if (is_signed_integer(type))
    return static_cast<std::int64_t>(bits) >> unused;
  return bits >> unused;
}

static const Keys<Scalar> kScalarKeys = {
    {{"number", "scalar", typeNames(), "", "its type"},
     [](R &, const N &n, Scalar &s) { s.type = readType(n); },
     [](const W &, const Scalar &s) { return Json(name(writtenType(s))); }},
    {{"number", "value", "a number of that type", "",
      "a null pointer is the `u64` 0"},
     [](R &, const N &n, Scalar &s) {
       s.bits = is_float(s.type) ? to_bits(s.type, n.number())
                                 : readInteger(n, s.type);
     },
     [](const W &, const Scalar &s) { return writeValue(s); }},
};

template <typename T> static Json listOf(const std::vector<T> &numbers) {
  return Json(Json::array_t(numbers.begin(), numbers.end()));
}

static std::vector<std::uint32_t> read32(const JsonNode &node) {
  std::vector<std::uint32_t> result;
  for (std::uint64_t number : node.wholes(1, kMost32))
    result.push_back(static_cast<std::uint32_t>(number));
  return result;
}

static OobFill readOob(const JsonNode &node) {
  std::string text = node.text("zeros or nan");
  if (text != "zeros" && text != "nan")
    node.refuse("zeros or nan");
  return text == "nan" ? OobFill::nan : OobFill::zeros;
}

/// Left out where it is what a map has that says nothing.
template <typename Field>
static Json unlessUsual(const TensorMap &map, Field field) {
  return map.*field == TensorMap().*field ? Json()
                                          : Json(static_cast<int>(map.*field));
}

static bool isAllOnes(const std::vector<std::uint32_t> &strides) {
  return std::all_of(strides.begin(), strides.end(),
                     [](std::uint32_t stride) { return stride == 1; });
}

using M = TensorMapArgument;

static const Keys<TensorMapArgument> kTensorMapKeys = {
    {{"tensor map", "of", "the name of a buffer", "", "the tensor"},
     [](R &r, const N &n, M &m) {
       m.index = r.findBuffer(n);
       m.map.type = r.buffer(m.index).type;
     },
     [](const W &w, const M &m) { return Json(w.buffer(m.index).name); }},
    {{"tensor map", "type", fmt::format("{}", fmt::join(namesOf(true), ", ")),
      "the buffer's",
      "the type of its elements: another one for bytes that hold f16, tf32, "
      "which rounds, or e2m1, two to a byte (dims and box then count "
      "elements)"},
     [](R &, const N &n, M &m) { m.map.type = readType(n, true); },
     [](const W &w, const M &m) {
       return m.map.type == w.buffer(m.index).type ? Json()
                                                   : Json(name(m.map.type));
     }},
    {{"tensor map", "dims", "a list of whole numbers", "",
      "elements, innermost dimension first"},
     [](R &, const N &n, M &m) {
       m.map.dims = n.wholes(1, kMost32 + 1);
       m.map.element_strides.assign(m.map.dims.size(), 1);
     },
     [](const W &, const M &m) { return listOf(m.map.dims); }},
    {{"tensor map", "strides_bytes", "a list of numbers of bytes", "none",
      "the strides of all dimensions but the innermost"},
     [](R &, const N &n, M &m) {
       m.map.strides_bytes = n.wholes(0, kMaxStride);
     },
     [](const W &, const M &m) {
       return m.map.strides_bytes.empty() ? Json()
                                          : listOf(m.map.strides_bytes);
     }},
    {{"tensor map", "box", "a list of whole numbers", "",
      "elements of one copy"},
     [](R &, const N &n, M &m) { m.map.box = read32(n); },
     [](const W &, const M &m) { return listOf(m.map.box); }},
    {{"tensor map", "element_strides", "a list of whole numbers", "1 each",
      "the element strides within a box"},
     [](R &, const N &n, M &m) { m.map.element_strides = read32(n); },
     [](const W &, const M &m) {
       return isAllOnes(m.map.element_strides) ? Json()
                                               : listOf(m.map.element_strides);
     }},
    {{"tensor map", "swizzle", "0, 32, 64 or 128", "0",
      "how 16-byte chunks are permuted in shared memory"},
     [](R &, const N &n, M &m) {
       m.map.swizzle = static_cast<Swizzle>(n.choice({0, 32, 64, 128}));
     },
     // People who fill in a first file look for it.
     [](const W &, const M &m) {
       return Json(static_cast<int>(m.map.swizzle));
     }},
    {{"tensor map", "interleave", "0, 16 or 32", "0",
      "bytes of interleaved channels"},
     [](R &, const N &n, M &m) {
       m.map.interleave = static_cast<Interleave>(n.choice({0, 16, 32}));
     },
     [](const W &, const M &m) {
       return unlessUsual(m.map, &TensorMap::interleave);
     }},
    {{"tensor map", "l2", "0, 64, 128 or 256", "128",
      "bytes fetched into L2 at a time"},
     [](R &, const N &n, M &m) {
       m.map.l2 = static_cast<L2Promotion>(n.choice({0, 64, 128, 256}));
     },
     [](const W &, const M &m) { return unlessUsual(m.map, &TensorMap::l2); }},
    {{"tensor map", "oob", "zeros or nan", "zeros",
      "what elements outside the tensor read as"},
     [](R &, const N &n, M &m) { m.map.oob = readOob(n); },
     [](const W &, const M &m) {
       return m.map.oob == OobFill::nan ? Json("nan") : Json();
     }},
};

/// Refuse a field where another one lies already, or past the end.
static void placeField(const JsonNode &offset, const LaunchFileField &field,
                       std::vector<bool> &isTaken) {
  std::size_t size = isTaken.size(), bytes = field.argument.bytes();
  if (bytes > size - field.offset)
    offset.refuse(bytes > size
                      ? fmt::format("in a larger struct: the field has {} "
                                    "bytes, the struct {}",
                                    bytes, size)
                      : fmt::format("at most {} for a field of {} bytes in a "
                                    "struct of {}",
                                    size - bytes, bytes, size));
  for (std::size_t i = field.offset; i < field.offset + bytes; ++i) {
    if (isTaken[i])
      offset.refuse(fmt::format("an offset where no other field lies; byte {} "
                                "belongs to one",
                                i));
    isTaken[i] = true;
  }
}

static void readFields(R &reader, const N &list, StructArgument &to) {
  std::vector<bool> isTaken(to.bytes);
  for (const JsonNode &node : list.list("fields")) {
    to.fields.push_back(reader.readField(node, to.bytes - 1));
    placeField(node.at("offset"), to.fields.back(), isTaken);
  }
}

static const Keys<StructArgument> kStructKeys = {
    {{"struct", "size", "a number of bytes", "", "its size"},
     [](R &, const N &n, StructArgument &s) {
       s.bytes = n.whole(1, static_cast<std::uint64_t>(
                                DeviceDescription::h200().max_parameter_bytes));
     },
     [](const W &, const StructArgument &s) { return Json(s.bytes); }},
    {{"struct", "align", "a power of two up to 256", "as in the PTX",
      "alignment; the PTX has the last word"},
     [](R &, const N &n, StructArgument &) { checkAlign(n); },
     nullptr},
    {{"struct", "fields", "a list of fields", "",
      "what it holds; the other bytes are zero"},
     readFields,
     [](const W &w, const StructArgument &s) { return w.fields(s.fields); }},
};

static const Keys<LaunchFileField> kFieldKeys = {
    {{"field", "offset", "a number of bytes", "",
      "from the beginning of the struct or buffer"},
     [](R &r, const N &n, LaunchFileField &f) {
       f.offset = n.whole(0, r.mostOffset());
     },
     [](const W &, const LaunchFileField &f) { return Json(f.offset); }},
    {{"field", "arg", "an argument", "", "what lies there"},
     [](R &r, const N &n, LaunchFileField &f) { f.argument = r.argument(n); },
     [](const W &w, const LaunchFileField &f) {
       return w.argument(f.argument);
     }},
};

const Keys<PointerArgument> &pointerKeys() { return kPointerKeys; }
const Keys<Scalar> &scalarKeys() { return kScalarKeys; }
const Keys<TensorMapArgument> &tensorMapKeys() { return kTensorMapKeys; }
const Keys<StructArgument> &structKeys() { return kStructKeys; }
const Keys<LaunchFileField> &fieldKeys() { return kFieldKeys; }

} // namespace kiln::launchfile
