// ConversionProbes: cvt between every two types, in every rounding, of edge
// values and of random bits.
#include "golden/Probes.h"

namespace kiln::golden {

static constexpr int kValues = 256;

static bool isFloatName(const std::string &type) {
  return type[0] == 'f' || type == "bf16";
}

static int bitsOf(const std::string &type) {
  return std::stoi(type.substr(type.find_first_of("0123456789")));
}

/// Numbers where conversions change their mind, then random bits.
static Bytes edgeValues(const std::string &type) {
  auto size = static_cast<std::size_t>(bitsOf(type) / 8);
  Bytes random = randomBytes(Type::u32, 2 * kValues, 41, 0, 4294967295.0);
  Bytes bytes(random.begin(), random.begin() + kValues * size);
  std::vector<std::uint64_t> edges;
  if (isFloatName(type)) {
    Type element = parse_type(type);
    for (double value : {0.0,
                         0.25,
                         0.5,
                         0.75,
                         1.0,
                         1.5,
                         2.5,
                         3.5,
                         126.5,
                         127.5,
                         128.0,
                         128.5,
                         255.0,
                         255.5,
                         256.0,
                         448.0,
                         464.0,
                         480.0,
                         32767.5,
                         32768.0,
                         57344.0,
                         61440.0,
                         65504.0,
                         65519.0,
                         65520.0,
                         65535.5,
                         65536.0,
                         8388607.5,
                         16777217.0,
                         2147483520.0,
                         2147483647.0,
                         2147483648.0,
                         4294967040.0,
                         4294967295.0,
                         4294967296.0,
                         9223372036854775807.0,
                         18446744073709551615.0,
                         1e30,
                         1e300,
                         0x1p-7,
                         0x1.8p-8,
                         0x1p-9,
                         0x1p-14,
                         0x1p-15,
                         0x1.8p-16,
                         0x1p-24,
                         0x1p-25,
                         0x1.8p-25,
                         0x1p-126,
                         0x1p-130,
                         0x1p-149,
                         0x1p-133,
                         0x1p-1040,
                         1.00048828125,
                         1.00146484375,
                         1.00390625,
                         1.01171875,
                         1.000000059604645,
                         3.14159265,
                         0.1})
      for (double sign : {1.0, -1.0})
        edges.push_back(to_bits(element, sign * value));
    // The largest, infinities, and NaNs with payloads.
    std::uint64_t sign = std::uint64_t(1) << (8 * size - 1);
    int fraction = type == "f16"    ? 10
                   : type == "bf16" ? 7
                   : type == "f32"  ? 23
                                    : 52;
    std::uint64_t infinity = sign - (std::uint64_t(1) << fraction);
    for (std::uint64_t bits : {infinity, infinity - 1, infinity + 1, sign - 1,
                               infinity | std::uint64_t(1) << (fraction - 1),
                               std::uint64_t(1), std::uint64_t(1) << fraction})
      for (std::uint64_t bit : {std::uint64_t(0), sign})
        edges.push_back(bits | bit);
  } else {
    for (std::int64_t value : {0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65535,
                               65536, 16777215, 16777216, 16777217, 16777219})
      for (std::int64_t sign : {1, -1})
        edges.push_back(static_cast<std::uint64_t>(sign * value));
    for (int shift : {7, 8, 15, 16, 24, 31, 32, 53, 62, 63})
      for (std::int64_t more : {-1, 0, 1})
        edges.push_back((std::uint64_t(1) << shift) +
                        static_cast<std::uint64_t>(more));
  }
  for (std::size_t i = 0; i < edges.size(); ++i)
    std::memcpy(&bytes[i * size], &edges[i], size);
  return bytes;
}

/// The words between cvt and the types that PTX has for a pair.
static std::vector<std::string> formsOf(const std::string &to,
                                        const std::string &from) {
  bool isToFloat = isFloatName(to), isFromFloat = isFloatName(from);
  bool hasEight = bitsOf(to) == 8 || bitsOf(from) == 8;
  if (hasEight && (to == "bf16" || from == "bf16"))
    return {};
  if (!isToFloat && !isFromFloat) {
    // Where every value fits, PTX has no .sat.
    bool isHeld = bitsOf(to) > bitsOf(from) && (to[0] == 's' || from[0] == 'u');
    return isHeld ? std::vector<std::string>{""}
                  : std::vector<std::string>{"", ".sat"};
  }
  if (!isToFloat) {
    std::vector<std::string> forms = {".rni", ".rzi", ".rmi", ".rpi"};
    if (from == "f32")
      for (const char *more : {".rni.ftz", ".rpi.ftz"})
        forms.push_back(more);
    return forms;
  }
  if (!isFromFloat)
    return {".rn", ".rz", ".rm", ".rp"};
  if (to == from && to == "bf16")
    return {".rni"};
  if (to == from) {
    std::vector<std::string> forms = {".rni", ".rzi", ".rmi", ".rpi"};
    if (to != "f16")
      forms.push_back(".rni.sat");
    if (to == "f32")
      forms.push_back(".rpi.ftz");
    return forms;
  }
  if (to == "f64" && from == "f32")
    return {"", ".ftz"};
  if (to == "f32" && from == "f16")
    return {"", ".ftz", ".sat"};
  if (to == "f32" && from == "bf16")
    return {""};
  if (to == "f64")
    return {""};
  if (to == "bf16" || from == "bf16")
    return from == "f32" ? std::vector<std::string>{".rn", ".rz", ".rn.relu"}
                         : std::vector<std::string>{".rn", ".rz", ".rm", ".rp"};
  std::vector<std::string> forms = {".rn", ".rz", ".rm", ".rp"};
  if (to == "f32")
    for (const char *more : {".rn.ftz", ".rn.sat", ".rp.ftz"})
      forms.push_back(more);
  if (to == "f16" && from == "f32")
    for (const char *more : {".rn.ftz", ".rn.sat", ".rn.relu"})
      forms.push_back(more);
  return forms;
}

/// A register for a value of so many bits; there are none of 8.
static std::string registerFor(int bits, char name) {
  return fmt::format("%{}{}", name, std::max(bits, 16));
}

/// Each instruction reads `source` and leaves `destination`; a row each.
static Probe formsProbe(const std::string &name, int fromBits, int toBits,
                        const std::vector<std::string> &instructions,
                        Bytes input) {
  Probe probe{.group = "conversion", .name = name};
  std::string source = registerFor(fromBits, 's');
  std::string body =
      fmt::format(".reg .b16 %s16, %d16;\n.reg .b32 %s32, %d32, %u;\n"
                  ".reg .b64 %s64, %d64, %g;\n"
                  "mad.wide.u32 %g, %t, {}, %in1;\n"
                  "ld.global.{}{} {}, [%g];\n"
                  "mad.wide.u32 %g, %t, 8, %out;\n",
                  fromBits / 8, fromBits == 8 ? "u" : "b", fromBits, source);
  int row = 0;
  for (const std::string &instruction : instructions) {
    std::string destination = registerFor(toBits, 'd');
    body += instruction;
    if (toBits < 64)
      body += fmt::format("cvt.u64.u{} %d64, {};\n", std::max(toBits, 16),
                          destination);
    body += fmt::format("st.global.b64 [%g+{}], %d64;\n", row++ * kValues * 8);
  }
  probe.ptx = moduleText(1, 0, body);
  probe.threads = kValues;
  probe.inputs = {std::move(input)};
  probe.outputBytes = static_cast<std::size_t>(row) * kValues * 8;
  probe.rowBytes = kValues * 8;
  return probe;
}

static Probe pairProbe(const std::string &to, const std::string &from) {
  std::vector<std::string> instructions;
  for (const std::string &form : formsOf(to, from))
    instructions.push_back(fmt::format("cvt{}.{}.{} {}, {};\n", form, to, from,
                                       registerFor(bitsOf(to), 'd'),
                                       registerFor(bitsOf(from), 's')));
  return formsProbe(to + "_from_" + from, bitsOf(from), bitsOf(to),
                    instructions, edgeValues(from));
}

/// Two numbers into one register, or out of one.
static void addPacked(std::vector<Probe> &list) {
  std::vector<std::string> halves, eights, tf32;
  for (const char *to : {"f16x2", "bf16x2"})
    for (const char *form : {".rn", ".rz", ".rn.relu", ".rz.relu"})
      halves.push_back(fmt::format("mul.f32 %u, %s32, 0f3FC00000;\n"
                                   "cvt{}.{}.f32 %d32, %s32, %u;\n",
                                   form, to));
  for (const char *to : {"e4m3x2", "e5m2x2"})
    for (const char *form : {".rn.satfinite", ".rn.satfinite.relu"})
      eights.push_back(fmt::format("mul.f32 %u, %s32, 0f3FC00000;\n"
                                   "cvt{}.{}.f32 %d16, %s32, %u;\n",
                                   form, to));
  for (const char *form : {".rna", ".rn", ".rz", ".rn.relu", ".rz.relu"})
    tf32.push_back(fmt::format("cvt{}.tf32.f32 %d32, %s32;\n", form));
  list.push_back(
      formsProbe("pairs_from_f32", 32, 32, halves, edgeValues("f32")));
  list.push_back(
      formsProbe("eights_from_f32", 32, 16, eights, edgeValues("f32")));
  list.push_back(formsProbe("tf32_from_f32", 32, 32, tf32, edgeValues("f32")));
  std::vector<std::string> fromHalves, toHalves;
  for (const char *to : {"e4m3x2", "e5m2x2"}) {
    for (const char *form : {".rn.satfinite", ".rn.satfinite.relu"})
      fromHalves.push_back(
          fmt::format("cvt{}.{}.f16x2 %d16, %s32;\n", form, to));
    for (const char *form : {".rn", ".rn.relu"})
      toHalves.push_back(fmt::format("cvt{}.f16x2.{} %d32, %s16;\n", form, to));
  }
  Bytes pairs = edgeValues("f16");
  Bytes twice = pairs;
  twice.insert(twice.end(), pairs.rbegin(), pairs.rend());
  list.push_back(formsProbe("eights_from_f16x2", 32, 16, fromHalves, twice));
  std::vector<std::uint16_t> all;
  for (int i = 0; i < kValues; ++i)
    all.push_back(static_cast<std::uint16_t>(i | (255 - i) << 8));
  list.push_back(
      formsProbe("f16x2_from_eights", 16, 32, toHalves, bytesOf(all)));
}

void addConversionProbes(std::vector<Probe> &list) {
  const std::vector<std::string> types = {"u8",  "s8",   "u16", "s16",
                                          "u32", "s32",  "u64", "s64",
                                          "f16", "bf16", "f32", "f64"};
  for (const std::string &to : types)
    for (const std::string &from : types)
      if (!(to == from && !isFloatName(to)) && !formsOf(to, from).empty())
        list.push_back(pairProbe(to, from));
  addPacked(list);
}

} // namespace kiln::golden
