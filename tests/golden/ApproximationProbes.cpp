// ApproximationProbes: instructions that PTX lets differ from machine to
// machine, held to the error it documents, and exact ones of the same family.
#include "golden/Probes.h"

namespace kiln::golden {

static constexpr int kValues = 256;

namespace {
struct Function {
  std::string opcode;
  Type type = Type::f32;
  double lo = -1, hi = 1;
  double absolute = 0, relative = 0; ///< both 0: bit for bit
  bool isBinary = false;
};
} // namespace

static Probe functionProbe(const Function &function) {
  Probe probe{.group = "approximation", .name = function.opcode};
  Type type = function.type;
  int bytes = size_bytes(type), bits = 8 * bytes;
  probe.ptx =
      moduleText(1, 0,
                 fmt::format(".reg .b{0} %a, %b, %d;\n.reg .b64 %g;\n"
                             "mad.wide.u32 %g, %t, {1}, %in1;\n"
                             "ld.global.b{0} %a, [%g];\n"
                             "ld.global.b{0} %b, [%g+{2}];\n"
                             "{3} %d, %a{4};\n"
                             "mad.wide.u32 %g, %t, {1}, %out;\n"
                             "st.global.b{0} [%g], %d;\n",
                             bits, bytes, bytes * kValues, function.opcode,
                             function.isBinary ? ", %b" : ""));
  probe.threads = kValues;
  Bytes input = randomBytes(type, 2 * kValues, 51, function.lo, function.hi);
  int at = 0;
  for (double value : {0.0, 1.0, 2.0, 0.5, 4.0, 1e-40, 1e-45, 0x1p-126, 1e30,
                       3e38, double(INFINITY), double(NAN), 127.5, 128.0, 126.0,
                       149.0, 150.0, 151.0})
    for (double sign : {1.0, -1.0}) {
      std::uint64_t number = to_bits(type, sign * value);
      // Angles stay where the error is documented.
      if (function.hi < 4 && function.hi > 3 && value > 3 &&
          value < double(INFINITY))
        continue;
      std::memcpy(&input[at++ * bytes], &number, bytes);
    }
  probe.inputs = {input};
  probe.outputBytes = static_cast<std::size_t>(kValues) * bytes;
  if (function.absolute != 0 || function.relative != 0)
    probe.near = Near{type, function.absolute, function.relative,
                      "the error the PTX ISA documents, and half a last place"};
  return probe;
}

void addApproximationProbes(std::vector<Probe> &list) {
  // The last place of the smallest normal number, where results are subnormal.
  constexpr double kTiny = 0x1p-148;
  const Function functions[] = {
      {"ex2.approx.f32", Type::f32, -20, 20, kTiny, 0x1.8p-22},
      {"ex2.approx.ftz.f32", Type::f32, -20, 20, 0, 0x1.8p-22},
      {"lg2.approx.f32", Type::f32, 0, 100, 0x1p-22, 0x1p-22},
      {"lg2.approx.ftz.f32", Type::f32, 0, 100, 0x1p-22, 0x1p-22},
      {"rcp.approx.f32", Type::f32, -100, 100, kTiny, 0x1.8p-23},
      {"rcp.approx.ftz.f32", Type::f32, -100, 100, 0, 0x1.8p-23},
      {"rsqrt.approx.f32", Type::f32, 0, 100, 0, 0x1.8p-22},
      {"rsqrt.approx.ftz.f32", Type::f32, 0, 100, 0, 0x1.8p-22},
      {"sqrt.approx.f32", Type::f32, 0, 100, kTiny, 0x1p-22},
      {"sqrt.approx.ftz.f32", Type::f32, 0, 100, 0, 0x1p-22},
      {"sin.approx.f32", Type::f32, -3.14, 3.14, 0x1p-20, 0},
      {"cos.approx.f32", Type::f32, -3.14, 3.14, 0x1p-20, 0},
      {"tanh.approx.f32", Type::f32, -5, 5, kTiny, 0x1.1p-11},
      {"ex2.approx.f16", Type::f16, -10, 10, 0x1p-24, 0x1p-9},
      {"ex2.approx.ftz.bf16", Type::bf16, -10, 10, 0, 0x1p-6},
      {"tanh.approx.f16", Type::f16, -5, 5, 0x1p-10, 0},
      {"tanh.approx.bf16", Type::bf16, -5, 5, 0x1p-7, 0},
      {"div.approx.f32", Type::f32, -100, 100, kTiny, 0x1.8p-22, true},
      {"div.full.f32", Type::f32, -100, 100, kTiny, 0x1.8p-22, true},
      {"rcp.approx.ftz.f64", Type::f64, -100, 100, 0, 0x1p-19},
      {"rsqrt.approx.f64", Type::f64, 0, 100, 0, 0x1p-51},
      {"rsqrt.approx.ftz.f64", Type::f64, 0, 100, 0, 0x1p-19},
      {"rcp.rn.f32", Type::f32, -100, 100},
      {"rcp.rz.ftz.f32", Type::f32, -100, 100},
      {"sqrt.rn.f32", Type::f32, 0, 100},
      {"sqrt.rp.f32", Type::f32, 0, 100},
      {"div.rn.f32", Type::f32, -100, 100, 0, 0, true},
      {"div.rm.f32", Type::f32, -100, 100, 0, 0, true},
      {"div.rn.ftz.f32", Type::f32, -100, 100, 0, 0, true},
      {"rcp.rn.f64", Type::f64, -100, 100},
      {"sqrt.rn.f64", Type::f64, 0, 100},
      {"div.rn.f64", Type::f64, -100, 100, 0, 0, true},
      {"div.rp.f64", Type::f64, -100, 100, 0, 0, true},
  };
  for (const Function &function : functions)
    list.push_back(functionProbe(function));
}

} // namespace kiln::golden
