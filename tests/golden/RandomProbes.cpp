// RandomProbes: straight-line programs of scalar and warp instructions, drawn
// from a seed.
//
// Every result is stored, a row for each instruction, so that a difference
// names the instruction. Where PTX leaves a result open (a quotient by 0, the
// payload of a NaN of 64 bits) the program avoids or hides it.
#include "golden/Probes.h"

#include <random>

namespace kiln::golden {

static constexpr int kPrograms = 300, kInstructions = 40;
/// Registers that each width begins with; floats are the second half of them.
static constexpr int kInputs = 8;

namespace {
/// An instruction: its operands are letters. d is the result; h, r and l stand
/// for operands of 16, 32 and 64 bits, their capitals for floats, i and j for
/// numbers of bits below 40 and 32, p for a predicate.
struct Form {
  const char *opcode;
  char result;
  const char *operands;
};

/// The text of one program while it grows.
class Program {
public:
  explicit Program(unsigned seed) : random_(seed) {}
  std::string text();

private:
  void begin();
  void add(const Form &form, int row);
  std::string operand(char kind);
  int below(int limit) { return static_cast<int>(random_() % limit); }

  std::mt19937 random_;
  std::string body_;
  std::vector<std::string> plain_[3], floats_[3]; ///< of 16, 32, 64 bits
  std::vector<std::string> predicates_;
};
} // namespace

static const Form kForms[] = {
    {"add.u32", 'r', "rr"},
    {"sub.s32", 'r', "rr"},
    {"add.sat.s32", 'r', "rr"},
    {"sub.sat.s32", 'r', "rr"},
    {"mul.lo.u32", 'r', "rr"},
    {"mul.hi.u32", 'r', "rr"},
    {"mul.hi.s32", 'r', "rr"},
    {"mul.wide.u32", 'l', "rr"},
    {"mul.wide.s32", 'l', "rr"},
    {"mul.wide.s16", 'r', "hh"},
    {"mad.lo.s32", 'r', "rrr"},
    {"mad.hi.s32", 'r', "rrr"},
    {"mad.hi.u32", 'r', "rrr"},
    {"mad.hi.sat.s32", 'r', "rrr"},
    {"mad.wide.u32", 'l', "rrl"},
    {"mad.wide.s32", 'l', "rrl"},
    {"mul24.lo.s32", 'r', "rr"},
    {"mul24.hi.u32", 'r', "rr"},
    {"mad24.lo.u32", 'r', "rrr"},
    {"mad24.hi.s32", 'r', "rrr"},
    {"sad.s32", 'r', "rrr"},
    {"sad.u32", 'r', "rrr"},
    {"sad.s64", 'l', "lll"},
    {"abs.s32", 'r', "r"},
    {"neg.s32", 'r', "r"},
    {"min.s32", 'r', "rr"},
    {"max.u32", 'r', "rr"},
    {"min.s64", 'l', "ll"},
    {"max.u64", 'l', "ll"},
    {"min.s16", 'h', "hh"},
    {"max.u16", 'h', "hh"},
    {"popc.b32", 'r', "r"},
    {"popc.b64", 'r', "l"},
    {"clz.b32", 'r', "r"},
    {"clz.b64", 'r', "l"},
    {"bfind.u32", 'r', "r"},
    {"bfind.s32", 'r', "r"},
    {"bfind.shiftamt.u32", 'r', "r"},
    {"bfind.s64", 'r', "l"},
    {"brev.b32", 'r', "r"},
    {"brev.b64", 'l', "l"},
    {"bfe.u32", 'r', "rjj"},
    {"bfe.s32", 'r', "rjj"},
    {"bfe.u64", 'l', "lii"},
    {"bfe.s64", 'l', "lii"},
    {"bfe.s32", 'r', "rrr"},
    {"bfi.b32", 'r', "rrjj"},
    {"bfi.b64", 'l', "llii"},
    {"bfi.b32", 'r', "rrrr"},
    {"dp4a.s32.u32", 'r', "rrr"},
    {"dp4a.u32.u32", 'r', "rrr"},
    {"dp2a.lo.s32.s32", 'r', "rrr"},
    {"dp2a.hi.u32.s32", 'r', "rrr"},
    {"add.u64", 'l', "ll"},
    {"sub.s64", 'l', "ll"},
    {"mul.lo.u64", 'l', "ll"},
    {"mul.hi.u64", 'l', "ll"},
    {"mul.hi.s64", 'l', "ll"},
    {"mad.lo.u64", 'l', "lll"},
    {"mad.hi.s64", 'l', "lll"},
    {"abs.s64", 'l', "l"},
    {"neg.s64", 'l', "l"},
    {"add.u16", 'h', "hh"},
    {"sub.s16", 'h', "hh"},
    {"mul.lo.u16", 'h', "hh"},
    {"mul.hi.s16", 'h', "hh"},
    {"mad.lo.u16", 'h', "hhh"},
    {"add.u16x2", 'r', "rr"},
    {"min.s16x2", 'r', "rr"},
    {"max.u16x2", 'r', "rr"},
    {"min.relu.s32", 'r', "rr"},
    {"max.relu.s16x2", 'r', "rr"},
    {"and.b32", 'r', "rr"},
    {"or.b64", 'l', "ll"},
    {"xor.b32", 'r', "rr"},
    {"xor.b16", 'h', "hh"},
    {"not.b32", 'r', "r"},
    {"cnot.b32", 'r', "r"},
    {"cnot.b64", 'l', "l"},
    {"lop3.b32", 'r', "rrrn"},
    {"shl.b32", 'r', "ri"},
    {"shl.b64", 'l', "lr"},
    {"shr.u32", 'r', "rr"},
    {"shr.s32", 'r', "ri"},
    {"shr.s64", 'l', "li"},
    {"shr.u64", 'l', "li"},
    {"shr.s16", 'h', "hi"},
    {"shl.b16", 'h', "hi"},
    {"shf.l.wrap.b32", 'r', "rrr"},
    {"shf.l.clamp.b32", 'r', "rri"},
    {"shf.r.wrap.b32", 'r', "rri"},
    {"shf.r.clamp.b32", 'r', "rrr"},
    {"prmt.b32", 'r', "rrr"},
    {"prmt.b32.f4e", 'r', "rrr"},
    {"prmt.b32.b4e", 'r', "rrr"},
    {"prmt.b32.rc8", 'r', "rrr"},
    {"prmt.b32.ecl", 'r', "rrr"},
    {"prmt.b32.ecr", 'r', "rrr"},
    {"prmt.b32.rc16", 'r', "rrr"},
    {"bmsk.clamp.b32", 'r', "rr"},
    {"bmsk.wrap.b32", 'r', "ri"},
    {"szext.wrap.s32", 'r', "rr"},
    {"szext.clamp.u32", 'r', "ri"},
    {"fns.b32", 'r', "riz"},
    {"slct.u32.s32", 'r', "rrr"},
    {"slct.b64.f32", 'l', "llR"},
    {"selp.b32", 'r', "rrp"},
    {"selp.b64", 'l', "llp"},
    {"div.u32", 'r', "rD"},
    {"div.s32", 'r', "rD"},
    {"rem.u32", 'r', "rD"},
    {"rem.s32", 'r', "rD"},
    // Floats.
    {"add.rn.f32", 'R', "RR"},
    {"add.rz.f32", 'R', "RR"},
    {"sub.rm.f32", 'R', "RR"},
    {"add.rp.ftz.f32", 'R', "RR"},
    {"add.sat.f32", 'R', "RR"},
    {"mul.rn.f32", 'R', "RR"},
    {"mul.rz.f32", 'R', "RR"},
    {"mul.rm.ftz.f32", 'R', "RR"},
    {"mul.rp.f32", 'R', "RR"},
    {"mul.sat.f32", 'R', "RR"},
    {"fma.rn.f32", 'R', "RRR"},
    {"fma.rz.f32", 'R', "RRR"},
    {"fma.rm.f32", 'R', "RRR"},
    {"fma.rp.ftz.f32", 'R', "RRR"},
    {"fma.rn.sat.f32", 'R', "RRR"},
    {"min.f32", 'R', "RR"},
    {"max.f32", 'R', "RR"},
    {"min.NaN.f32", 'R', "RR"},
    {"max.ftz.f32", 'R', "RR"},
    {"max.xorsign.abs.f32", 'R', "RR"},
    {"div.rn.f32", 'R', "RR"},
    {"sqrt.rn.f32", 'R', "R"},
    {"rcp.rn.f32", 'R', "R"},
    {"copysign.f32", 'R', "RR"},
    {"add.rn.f64", 'L', "LL"},
    {"sub.rz.f64", 'L', "LL"},
    {"mul.rm.f64", 'L', "LL"},
    {"mul.rn.f64", 'L', "LL"},
    {"fma.rn.f64", 'L', "LLL"},
    {"fma.rp.f64", 'L', "LLL"},
    {"min.f64", 'L', "LL"},
    {"max.f64", 'L', "LL"},
    {"div.rn.f64", 'L', "LL"},
    {"sqrt.rn.f64", 'L', "L"},
    {"add.rn.f16", 'H', "HH"},
    {"sub.rn.f16", 'H', "HH"},
    {"mul.rn.f16", 'H', "HH"},
    {"fma.rn.f16", 'H', "HHH"},
    {"fma.rn.relu.f16", 'H', "HHH"},
    {"fma.rn.sat.f16", 'H', "HHH"},
    {"add.ftz.f16", 'H', "HH"},
    {"min.f16", 'H', "HH"},
    {"max.NaN.f16", 'H', "HH"},
    {"add.rn.bf16", 'h', "hh"},
    {"mul.rn.bf16", 'h', "hh"},
    {"fma.rn.bf16", 'h', "hhh"},
    {"fma.rn.relu.bf16", 'h', "hhh"},
    {"max.bf16", 'h', "hh"},
    {"min.NaN.bf16", 'h', "hh"},
    {"add.rn.f16x2", 'r', "rr"},
    {"mul.rn.f16x2", 'r', "rr"},
    {"fma.rn.f16x2", 'r', "rrr"},
    {"sub.rn.bf16x2", 'r', "rr"},
    {"fma.rn.bf16x2", 'r', "rrr"},
    {"max.f16x2", 'r', "rr"},
    // Conversions.
    {"cvt.rn.f32.s32", 'R', "r"},
    {"cvt.rz.f32.u32", 'R', "r"},
    {"cvt.rn.f32.u64", 'R', "l"},
    {"cvt.rn.f64.s64", 'L', "l"},
    {"cvt.rn.f64.u32", 'L', "r"},
    {"cvt.rzi.s32.f32", 'r', "R"},
    {"cvt.rni.u32.f32", 'r', "R"},
    {"cvt.rmi.s64.f64", 'l', "L"},
    {"cvt.rpi.u16.f32", 'h', "R"},
    {"cvt.rn.f32.f64", 'R', "L"},
    {"cvt.f64.f32", 'L', "R"},
    {"cvt.rn.f16.f32", 'H', "R"},
    {"cvt.f32.f16", 'R', "H"},
    {"cvt.rn.f16.f64", 'H', "L"},
    {"cvt.rn.bf16.f32", 'h', "R"},
    {"cvt.f32.bf16", 'R', "h"},
    {"cvt.s64.s32", 'l', "r"},
    {"cvt.u32.u64", 'r', "l"},
    {"cvt.sat.s16.s32", 'h', "r"},
    {"cvt.s32.s16", 'r', "h"},
    {"cvt.sat.u32.s64", 'r', "l"},
    {"cvt.rni.f32.f32", 'R', "R"},
    {"cvt.rmi.f64.f64", 'L', "L"},
    {"cvt.s32.s8", 'r', "r"},
    // Warps.
    {"shfl.sync.idx.b32", 'r', "ri&"},
    {"shfl.sync.bfly.b32", 'r', "ri&"},
    {"shfl.sync.down.b32", 'r', "ri&"},
    {"shfl.sync.up.b32", 'r', "ri^"},
    {"shfl.sync.idx.b32", 'r', "rr$"},
    {"vote.sync.ballot.b32", 'r', "p!"},
    {"match.any.sync.b32", 'r', "m!"},
    {"redux.sync.add.u32", 'r', "r!"},
    {"redux.sync.max.s32", 'r', "r!"},
    {"redux.sync.min.u32", 'r', "r!"},
    {"redux.sync.xor.b32", 'r', "r!"},
    // Predicates.
    {"setp.lt.s32", 'p', "rr"},
    {"setp.hs.u32", 'p', "rr"},
    {"setp.ge.s64", 'p', "ll"},
    {"setp.ne.u16", 'p', "hh"},
    {"setp.lt.f32", 'p', "RR"},
    {"setp.geu.f32", 'p', "RR"},
    {"setp.equ.f64", 'p', "LL"},
    {"setp.num.f32", 'p', "RR"},
    {"setp.nan.f64", 'p', "LL"},
    {"setp.gtu.ftz.f32", 'p', "RR"},
    {"setp.le.f16", 'p', "HH"},
    {"setp.neu.bf16", 'p', "hh"},
    {"setp.lt.and.u32", 'p', "rrp"},
    {"setp.gt.xor.f32", 'p', "RRp"},
    {"vote.sync.any.pred", 'p', "p!"},
    {"vote.sync.all.pred", 'p', "p!"},
    {"vote.sync.uni.pred", 'p', "p!"},
    {"and.pred", 'p', "pp"},
    {"xor.pred", 'p', "pp"},
    {"not.pred", 'p', "p"},
};

static int widthOf(char kind) {
  switch (kind) {
  case 'h':
  case 'H':
    return 0;
  case 'l':
  case 'L':
    return 2;
  default:
    return 1;
  }
}

/// Three in four floats where a float is wanted; anything now and then.
std::string Program::operand(char kind) {
  int width = widthOf(kind);
  switch (kind) {
  case 'p':
    return predicates_[below(static_cast<int>(predicates_.size()))];
  case 'i':
    return std::to_string(below(40));
  case 'j':
    return std::to_string(below(32));
  case 'n':
    return std::to_string(below(256));
  case 'z':
    return std::to_string(below(9) - 4);
  case '!':
    return "0xffffffff";
  case '&':
    return std::string(below(2) ? "31" : "0x181f") + ", 0xffffffff";
  case '$':
    return "31, 0xffffffff";
  case '^':
    return "0, 0xffffffff";
  case 'D':
    body_ += "or.b32 %odd, " + operand('r') + ", 1;\n";
    return "%odd";
  case 'm':
    body_ += "and.b32 %odd, " + operand('r') + ", 3;\n";
    return "%odd";
  }
  bool isFloat = kind == 'H' || kind == 'R' || kind == 'L';
  auto &from = isFloat != (below(8) == 0) ? floats_[width] : plain_[width];
  return from[below(static_cast<int>(from.size()))];
}

void Program::begin() {
  body_ = fmt::format(".reg .b16 %h<{0}>;\n.reg .b32 %r<{0}>, %odd, %w;\n"
                      ".reg .b64 %l<{0}>, %o, %g, %v;\n"
                      ".reg .pred %p<{0}>, %nan;\n",
                      kInputs + kInstructions);
  const char *names[] = {"h", "r", "l"};
  for (int width = 0; width < 3; ++width) {
    int bytes = 2 << width;
    body_ += fmt::format("mad.wide.u32 %g, %t, {}, %in{};\n", bytes * kInputs,
                         width + 1);
    for (int i = 0; i < kInputs; ++i) {
      std::string name = fmt::format("%{}{}", names[width], i);
      body_ += fmt::format("ld.global.b{} {}, [%g+{}];\n", 8 * bytes, name,
                           bytes * i);
      (i < kInputs / 2 ? plain_ : floats_)[width].push_back(name);
    }
  }
  body_ += "setp.lt.s32 %p0, %r0, 0;\nsetp.lt.s32 %p1, %r1, %r2;\n"
           "mad.wide.u32 %o, %t, 8, %out;\n";
  predicates_ = {"%p0", "%p1"};
}

void Program::add(const Form &form, int row) {
  const char *names[] = {"%h", "%r", "%l"};
  bool isPredicate = form.result == 'p';
  int width = widthOf(form.result);
  std::string result =
      fmt::format("{}{}", isPredicate ? "%p" : names[width], kInputs + row);
  std::string operands;
  std::string last;
  for (const char *at = form.operands; *at; ++at) {
    // ptxas makes a move of min and max of one register.
    std::string next = operand(*at);
    while (next == last && std::string_view(form.opcode).starts_with('m'))
      next = operand(*at);
    operands += ", " + next;
    last = next;
  }
  body_ += fmt::format("{} {}{};\n", form.opcode, result, operands);
  bool isFloat = form.result == 'H' || form.result == 'R' || form.result == 'L';
  if (isPredicate) {
    body_ += "selp.b64 %v, 1, 0, " + result + ";\n";
    predicates_.push_back(result);
  } else {
    if (form.result == 'L')
      body_ += fmt::format("setp.nan.f64 %nan, {0}, {0};\n"
                           "selp.b64 {0}, 0x7fffffffffffffff, {0}, %nan;\n",
                           result);
    (isFloat ? floats_ : plain_)[width].push_back(result);
    body_ += width == 2
                 ? "mov.b64 %v, " + result + ";\n"
                 : fmt::format("cvt.u64.u{} %v, {};\n", 16 << width, result);
  }
  body_ += fmt::format("st.global.b64 [%o+{}], %v;\n", row * 256);
}

std::string Program::text() {
  begin();
  for (int row = 0; row < kInstructions; ++row)
    add(kForms[below(static_cast<int>(std::size(kForms)))], row);
  return moduleText(3, 0, body_);
}

/// Random bits, then floats of every kind: most of them moderate.
static Bytes inputOf(Type integer, Type floating, std::uint64_t seed) {
  auto size = static_cast<std::size_t>(size_bytes(integer));
  std::size_t count = 32 * kInputs;
  Bytes bytes = randomBytes(Type::u32, count * size / 4, seed, 0, 4294967295.0);
  Bytes moderate = randomBytes(floating, count, seed + 1, -100, 100);
  Bytes choice = randomBytes(Type::u8, count, seed + 2, 0, 15);
  const double edges[] = {0.0, -0.0, INFINITY, -INFINITY,
                          NAN, 1.0,  1e-40,    -1.0};
  for (std::size_t i = 0; i < count; ++i) {
    if (i % kInputs < kInputs / 2)
      continue;
    std::memcpy(&bytes[i * size], &moderate[i * size], size);
    if (choice[i] > 1)
      continue;
    std::uint64_t bits = to_bits(floating, edges[i / 3 % 8]);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

/// Fields that begin or end beyond the register, in constants and in registers.
static void addFields(std::vector<Probe> &list) {
  const char *load = ".reg .b32 %a, %b, %c, %d;\n.reg .b64 %g;\n"
                     "mad.wide.u32 %g, %t, 4, %in1;\n"
                     "ld.global.u32 %a, [%g];\n"
                     "add.u32 %b, %t, 20;\nadd.u32 %c, %t, 15;\n";
  const char *store = "mad.wide.u32 %g, %t, 4, %out;\n"
                      "st.global.u32 [%g], %d;\n";
  auto add = [&](const char *name, const std::string &instruction,
                 const char *differs) {
    Probe probe{.group = "random", .name = name, .differs = differs};
    probe.ptx = moduleText(1, 0, load + instruction + store);
    probe.inputs = {randomBytes(Type::u32, 32, 91, 0, 4294967295.0)};
    probe.outputBytes = 128;
    list.push_back(probe);
  };
  add("bfe_registers", "bfe.s32 %d, %a, %b, %c;\n", "");
  add("bfi_registers", "bfi.b32 %d, %a, 0, %b, %c;\n", "");
  add("bfe_constants", "bfe.s32 %d, %a, 36, 10;\n",
      "ptxas makes -1 of a signed field that begins beyond the register, where "
      "the text has the sign, and registers give it");
  add("bfi_constants", "bfi.b32 %d, %a, 0, 9, 35;\n", "");
}

void addRandomProbes(std::vector<Probe> &list) {
  addFields(list);
  for (unsigned seed = 1; seed <= kPrograms; ++seed) {
    Probe probe{.group = "random", .name = fmt::format("program_{}", seed)};
    probe.ptx = Program(seed).text();
    probe.inputs = {inputOf(Type::u16, Type::f16, 1000 + 10 * seed),
                    inputOf(Type::u32, Type::f32, 1003 + 10 * seed),
                    inputOf(Type::u64, Type::f64, 1006 + 10 * seed)};
    probe.outputBytes = kInstructions * 256;
    probe.rowBytes = 256;
    list.push_back(probe);
  }
}

} // namespace kiln::golden
