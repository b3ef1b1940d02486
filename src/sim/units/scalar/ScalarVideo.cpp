// ScalarVideo: the video instructions: bytes and halves of registers as
// operands, a saturated result, and a second operation on it.
//
// vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset and vmad take one value of
// each register; the forms with a 2 or 4 behind the name take all of them.
#include "sim/units/Execute.h"
#include "sim/units/scalar/Scalar.h"
#include "support/Error.h"

namespace kiln::sim {

namespace {
enum class VideoKind : std::uint8_t {
  add,
  sub,
  absdiff,
  min,
  max,
  shl,
  shr,
  set,
  mad,
  average,
};
/// What is done with the result and the last operand.
enum class VideoSecond : std::uint8_t { none, add, min, max, merge };

/// A part of a register: `bits` from `shift` on.
struct VideoPart {
  int bits = 32, shift = 0;
};

struct Video {
  VideoKind kind;
  VideoSecond second = VideoSecond::none;
  int parts = 1; ///< values in a register: 1, 2, 4
  bool isDSigned = false, isASigned = false, isBSigned = false;
  bool isSaturated = false, isWrapped = false, isPlusOne = false;
  int shift = 0;            ///< vmad: .shr7 .shr15
  int comparison = 0;       ///< vset: of eq ne lt le gt ge
  VideoPart a, b, d;        ///< one value
  std::uint32_t mask = ~0u; ///< several: which are written
  bool isANegated = false, isBNegated = false, isCNegated = false;
};
} // namespace

static std::int64_t partOf(std::uint32_t value, const VideoPart &part,
                           bool isSigned) {
  std::uint32_t up = value << (32 - part.bits - part.shift);
  int down = 32 - part.bits;
  return isSigned ? std::int64_t(std::int32_t(up) >> down)
                  : std::int64_t(up >> down);
}

static std::int64_t saturate(std::int64_t value, int bits, bool isSigned) {
  std::int64_t most = (std::int64_t(1) << (bits - (isSigned ? 1 : 0))) - 1;
  return std::clamp(value, isSigned ? -most - 1 : std::int64_t(0), most);
}

static bool compare(int comparison, std::int64_t a, std::int64_t b) {
  const bool holds[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return holds[comparison];
}

static std::int64_t compute(const Video &what, std::int64_t a, std::int64_t b,
                            std::int64_t c) {
  switch (what.kind) {
  case VideoKind::add:
    return a + b;
  case VideoKind::sub:
    return a - b;
  case VideoKind::absdiff:
    return a > b ? a - b : b - a;
  case VideoKind::min:
    return std::min(a, b);
  case VideoKind::max:
    return std::max(a, b);
  case VideoKind::average: // rounds away from zero
    return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
  case VideoKind::set:
    return compare(what.comparison, a, b);
  case VideoKind::mad:
    return ((what.isANegated != what.isBNegated ? -(a * b) : a * b) +
            (what.isCNegated ? -c : c) + (what.isPlusOne ? 1 : 0)) >>
           what.shift;
  case VideoKind::shl:
  case VideoKind::shr: {
    auto by = static_cast<std::uint32_t>(b);
    by = what.isWrapped ? by & 31 : std::min(by, 32u);
    return what.kind == VideoKind::shl ? a << by : a >> by;
  }
  }
  return 0;
}

static std::uint32_t combine(const Video &what, std::int64_t value,
                             std::uint32_t c) {
  auto first = static_cast<std::uint32_t>(value);
  auto choose = [&](bool isMin) {
    if (what.isDSigned)
      return static_cast<std::uint32_t>(
          isMin ? std::min(std::int32_t(first), std::int32_t(c))
                : std::max(std::int32_t(first), std::int32_t(c)));
    return isMin ? std::min(first, c) : std::max(first, c);
  };
  switch (what.second) {
  case VideoSecond::none:
    return first;
  case VideoSecond::add:
    return first + c;
  case VideoSecond::min:
    return choose(true);
  case VideoSecond::max:
    return choose(false);
  case VideoSecond::merge: {
    std::uint32_t mask = what.d.bits == 32 ? ~0u : (1u << what.d.bits) - 1;
    return (c & ~(mask << what.d.shift)) | (first & mask) << what.d.shift;
  }
  }
  return first;
}

/// One value of each register.
static std::uint32_t single(const Video &what, std::uint32_t a, std::uint32_t b,
                            std::uint32_t c) {
  std::int64_t third =
      what.isDSigned ? std::int64_t(std::int32_t(c)) : std::int64_t(c);
  std::int64_t value = compute(what, partOf(a, what.a, what.isASigned),
                               partOf(b, what.b, what.isBSigned), third);
  if (what.isSaturated)
    value =
        saturate(value, what.second == VideoSecond::merge ? what.d.bits : 32,
                 what.isDSigned);
  return what.kind == VideoKind::mad ? static_cast<std::uint32_t>(value)
                                     : combine(what, value, c);
}

/// Two halves or four bytes; with .add their sum joins c.
static std::uint32_t several(const Video &what, std::uint32_t a,
                             std::uint32_t b, std::uint32_t c) {
  int bits = 32 / what.parts;
  std::uint32_t result = what.second == VideoSecond::add ? c : 0;
  std::uint32_t mask = (1u << bits) - 1;
  for (int i = 0; i < what.parts; ++i) {
    VideoPart part{bits, i * bits};
    std::uint32_t place = mask << part.shift;
    if (!(what.mask >> i & 1)) {
      if (what.second != VideoSecond::add)
        result |= c & place;
      continue;
    }
    std::int64_t value = compute(what, partOf(a, part, what.isASigned),
                                 partOf(b, part, what.isBSigned), 0);
    if (what.isSaturated)
      value = saturate(value, bits, what.isDSigned);
    if (what.second == VideoSecond::add)
      result += static_cast<std::uint32_t>(value);
    else
      result |= (static_cast<std::uint32_t>(value) & mask) << part.shift;
  }
  return result;
}

static Step executeVideo(Warp &warp, const Op &op, LaneMask active) {
  const auto &what = *static_cast<const Video *>(op.extra.get());
  const auto *a = warp.lanes<std::uint32_t>(op.src[0]);
  const auto *b = warp.lanes<std::uint32_t>(op.src[1]);
  const std::uint32_t *c =
      op.src[2].isValid() ? warp.lanes<std::uint32_t>(op.src[2]) : nullptr;
  storeLanes<std::uint32_t>(warp, op.dst, active, [&](int lane) {
    std::uint32_t third = c ? c[lane] : 0;
    return what.parts == 1 ? single(what, a[lane], b[lane], third)
                           : several(what, a[lane], b[lane], third);
  });
  return Step::next;
}

/// The part that `.b1` or `.h0` behind a register means.
static VideoPart decodePart(const Decoder &decoder,
                            const ptx::Instruction &instruction,
                            const std::string &selector) {
  if (selector.empty())
    return {};
  int number = selector.back() - '0';
  if (selector.size() == 2 && selector[0] == 'b' && number < 4)
    return {8, 8 * number};
  if (selector.size() == 2 && selector[0] == 'h' && number < 2)
    return {16, 16 * number};
  decoder.refuse(instruction,
                 fmt::format("the selector .{} is none of b0-b3, h0 and h1 for "
                             "values in their order",
                             selector));
}

static void decodeVideo(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  static constexpr std::pair<const char *, VideoKind> kKinds[] = {
      {"vadd", VideoKind::add},         {"vsub", VideoKind::sub},
      {"vabsdiff", VideoKind::absdiff}, {"vmin", VideoKind::min},
      {"vmax", VideoKind::max},         {"vshl", VideoKind::shl},
      {"vshr", VideoKind::shr},         {"vset", VideoKind::set},
      {"vmad", VideoKind::mad},         {"vavrg", VideoKind::average}};
  Video what{};
  std::string name = instruction.opcode;
  if (name.back() == '2' || name.back() == '4') {
    what.parts = name.back() - '0';
    name.pop_back();
  }
  for (const auto &[word, kind] : kKinds)
    if (name == word)
      what.kind = kind;
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  auto isSigned = [&](std::size_t i) {
    return i < types.size() && types[i] == ptx::ScalarType::s32;
  };
  bool isSet = what.kind == VideoKind::set;
  std::size_t first = isSet ? 0 : 1;
  what.isDSigned = !isSet && isSigned(0);
  what.isASigned = isSigned(first);
  what.isBSigned = isSigned(first + 1);
  what.isSaturated = instruction.has("sat");
  what.isWrapped = instruction.has("wrap");
  what.isPlusOne = instruction.has("po");
  what.shift = instruction.has("shr7") ? 7 : instruction.has("shr15") ? 15 : 0;
  const char *comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (int i = 0; i < 6; ++i)
    if (instruction.has(comparisons[i]))
      what.comparison = i;
  what.second = instruction.has("add")   ? VideoSecond::add
                : instruction.has("min") ? VideoSecond::min
                : instruction.has("max") ? VideoSecond::max
                                         : VideoSecond::none;
  const auto &operands = instruction.operands;
  op.dst = destination(decoder, instruction, operands[0], 4);
  for (std::size_t i = 1; i < operands.size(); ++i)
    op.src[i - 1] = source<std::uint32_t>(decoder, instruction, operands[i]);
  if (what.parts == 1) {
    what.d = decodePart(decoder, instruction, operands[0].name);
    what.a = decodePart(decoder, instruction, operands[1].name);
    what.b = decodePart(decoder, instruction, operands[2].name);
    if (operands.size() > 3 && what.second == VideoSecond::none)
      what.second = VideoSecond::merge;
    what.isANegated = operands[1].isNegated;
    what.isBNegated = operands[2].isNegated;
    what.isCNegated = operands.size() > 3 && operands[3].isNegated;
  } else if (!operands[1].name.empty() || !operands[2].name.empty()) {
    decoder.refuse(instruction, "values of its operands in another order");
  } else if (!operands[0].name.empty()) {
    // `.h10`, `.b3210`: the values that are written.
    what.mask = 0;
    for (char c : operands[0].name.substr(1))
      what.mask |= 1u << (c - '0');
  }
  op.extra = std::make_shared<Video>(what);
  op.handler = executeVideo;
}

std::vector<Instruction> scalarVideoInstructions() {
  std::vector<Instruction> table;
  const char *one = "32 bits of parts .b0-.b3 .h0 .h1, .sat, second operation";
  const char *all = "all parts of a register, masks, .sat, .add";
  const char *single = "add|min|max, u32 s32 sat -> =v v v v; "
                       ", u32 s32 sat -> =v v v v?";
  const char *shift = "wrap|clamp add|min|max, u32 s32 sat -> =v v v v; "
                      "wrap|clamp, u32 s32 sat -> =v v v v?";
  const char *comparison =
      "eq|ne|lt|le|gt|ge add|min|max, u32 s32 sat -> =v v v v; "
      "eq|ne|lt|le|gt|ge, u32 s32 sat -> =v v v v?";
  for (const char *name : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"})
    table.push_back({name, decodeVideo, Unit::scalar, one, single});
  for (const char *name : {"vshl", "vshr"})
    table.push_back({name, decodeVideo, Unit::scalar, one, shift});
  table.push_back({"vset", decodeVideo, Unit::scalar, one, comparison});
  table.push_back({"vmad", decodeVideo, Unit::scalar, one,
                   ", u32 s32 sat po shr7 shr15 -> =v -v -v -v"});
  for (const char *name :
       {"vadd2", "vsub2", "vabsdiff2", "vmin2", "vmax2", "vavrg2", "vadd4",
        "vsub4", "vabsdiff4", "vmin4", "vmax4", "vavrg4"})
    table.push_back({name, decodeVideo, Unit::scalar, all,
                     ", u32 s32 sat add -> =v v v v"});
  for (const char *name : {"vset2", "vset4"})
    table.push_back({name, decodeVideo, Unit::scalar, all,
                     "eq|ne|lt|le|gt|ge, u32 s32 add -> =v v v v"});
  return table;
}

} // namespace kiln::sim
