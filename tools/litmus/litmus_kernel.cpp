// litmus_kernel: a litmus test as one kernel.
//
// Its parameters are the global variables, where what is seen goes, and, on a
// GPU, a seed. An instance of the test is as many CTAs as it has; each thread
// of it finds its code by its CTA and its warp. What a thread ends with, r0 to
// r7, goes to results[instance][thread], and the shared variables of CTA 0
// behind all of them.
#include "litmus_kernel.h"

#include "support/Error.h"

namespace kiln::cli {

using Kind = LitmusTest::Variable::Kind;

/// Words that are initialised one by one.
static constexpr std::uint32_t kUnrolledWords = 8;

static const char *barrier_text(const LitmusTest &test) {
  return test.is_cluster ? "bar.warp.sync 0xffffffff;\n"
                           "barrier.cluster.arrive.release.aligned;\n"
                           "barrier.cluster.wait.acquire.aligned;\n"
                         : "bar.warp.sync 0xffffffff;\nbar.sync 0;\n";
}

static std::string shared_declarations(const LitmusTest &test) {
  std::string text;
  for (const LitmusTest::Variable &variable : test.variables)
    if (variable.kind == Kind::mbarrier)
      text += fmt::format(".shared .align 8 .b64 {};\n", variable.name);
    else if (variable.kind == Kind::shared)
      text += fmt::format(".shared .align 128 .b8 {}[{}];\n", variable.name,
                          variable.bytes);
  return text;
}

/// One thread of each CTA gives its shared variables their values.
static std::string shared_values(const LitmusTest &test) {
  std::string text;
  for (const LitmusTest::Variable &variable : test.variables) {
    const std::string &name = variable.name;
    std::uint32_t words = variable.bytes / 4;
    if (variable.kind == Kind::mbarrier)
      text += fmt::format("mbarrier.init.shared::cta.b64 [{}], {};\n", name,
                          variable.value);
    else if (variable.kind == Kind::shared && words <= kUnrolledWords)
      for (std::uint32_t i = 0; i < words; ++i)
        text += fmt::format("st.shared.u32 [{}+{}], {};\n", name, 4 * i,
                            variable.value);
    else if (variable.kind == Kind::shared)
      text += fmt::format("mov.u32 %_a, {0};\nadd.u32 %_b, %_a, {1};\n"
                          "_fill_{0}:\nst.shared.u32 [%_a], {2};\n"
                          "add.u32 %_a, %_a, 4;\nsetp.lt.u32 %_p, %_a, %_b;\n"
                          "@%_p bra _fill_{0};\n",
                          name, variable.bytes, variable.value);
  }
  if (text.empty())
    return "";
  return "setp.ne.u32 %_p, %_tid, 0;\n@%_p bra _filled;\n" + text +
         "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n"
         "_filled:\n" +
         barrier_text(test);
}

static std::string global_addresses(const LitmusTest &test) {
  std::string text;
  std::uint32_t offset = kMeetingBytes;
  for (const LitmusTest::Variable &variable : test.variables)
    if (variable.kind == Kind::global) {
      text += fmt::format(".reg .b64 {0};\nadd.u64 {0}, %_base, {1};\n",
                          variable.name, offset);
      offset += (variable.bytes + 127) / 128 * 128;
    }
  return text;
}

/// All threads of an instance meet, and go on after a moment of their own. One
/// that waits for too long goes on, so that nothing hangs.
static std::string meeting(const LitmusTest &test, std::size_t thread) {
  return fmt::format(R"(@!lead bra _met{0};
red.relaxed.gpu.global.add.u32 [%_base], 1;
mov.u32 %_a, 0;
_meet{0}:
ld.relaxed.gpu.global.u32 %_b, [%_base];
add.u32 %_a, %_a, 1;
setp.lt.u32 %_p, %_b, {1};
setp.lt.and.u32 %_p, %_a, 100000, %_p;
@%_p bra _meet{0};
mad.lo.u32 %_a, %_instance, 0x9e3779b1, %_seed;
mad.lo.u32 %_a, %_a, 0x85ebca6b, {2};
shr.u32 %_b, %_a, 15;
xor.b32 %_a, %_a, %_b;
mul.lo.u32 %_a, %_a, 0xc2b2ae35;
shr.u32 %_b, %_a, 28;
shr.u32 %_a, %_a, 7;
and.b32 %_a, %_a, 511;
shr.u32 %_a, %_a, %_b;
mov.u32 %_c, %clock;
_delay{0}:
mov.u32 %_b, %clock;
sub.u32 %_b, %_b, %_c;
setp.lt.u32 %_p, %_b, %_a;
@%_p bra _delay{0};
_met{0}:
bar.warp.sync %_active;
)",
                     thread, test.threads.size(), 0x1000193 * (thread + 1));
}

static std::string thread_text(const LitmusTest &test, std::size_t number,
                               bool is_stress) {
  const LitmusTest::Thread &thread = test.threads[number];
  std::string text =
      fmt::format("setp.ne.u32 %_p, %_role, {0};\n@%_p bra _end{1};\n"
                  "setp.ne.u32 %_p, %_warp, {2};\n@%_p bra _end{1};\n",
                  thread.cta, number, thread.warp);
  if (!thread.is_whole_warp)
    text += fmt::format("@!lead bra _end{};\n", number);
  text += fmt::format("mov.u32 %_active, {};\n",
                      thread.is_whole_warp ? "0xffffffff" : "1");
  if (is_stress)
    text += meeting(test, number);
  text += "{\n.reg .b32 r<8>;\n.reg .b64 d<8>;\n.reg .pred p<8>;\n";
  for (int i = 0; i < kLitmusRegisters; ++i)
    text += fmt::format("mov.b32 r{}, 0;\n", i);
  text += thread.code;
  if (thread.is_whole_warp)
    text +=
        fmt::format("bar.warp.sync 0xffffffff;\n@!lead bra _seen{};\n", number);
  text += fmt::format("mad.lo.u32 %_a, %_instance, {}, {};\n"
                      "mul.wide.u32 %_d, %_a, {};\nadd.u64 %_d, %_d, %_out;\n",
                      test.threads.size(), number, 4 * kLitmusRegisters);
  for (int i = 0; i < kLitmusRegisters; ++i)
    text += fmt::format("st.global.u32 [%_d+{}], r{};\n", 4 * i, i);
  return text + fmt::format("_seen{0}:\n}}\n_end{0}:\n", number);
}

/// The shared variables that the condition names, behind all threads' results.
static std::string finals(const LitmusTest &test) {
  std::string text;
  int index = 0;
  for (const LitmusTest::Observed &what : test.observed)
    for (const LitmusTest::Variable &variable : test.variables)
      if (what.thread < 0 && variable.name == what.name &&
          variable.kind == Kind::shared)
        text += fmt::format("ld.shared.u32 %_a, [{}];\n"
                            "st.global.u32 [%_d+{}], %_a;\n",
                            variable.name, 4 * index++);
  if (text.empty())
    return "";
  return fmt::format("setp.ne.u32 %_p, %_tid, 0;\n"
                     "setp.ne.or.u32 %_p, %_role, 0, %_p;\n@%_p bra _left;\n"
                     "mov.u32 %_a, %nctaid.x;\ndiv.u32 %_a, %_a, {};\n"
                     "mul.lo.u32 %_a, %_a, {};\nmul.wide.u32 %_d, %_a, {};\n"
                     "mad.wide.u32 %_d, %_instance, {}, %_d;\n"
                     "add.u64 %_d, %_d, %_out;\n",
                     test.ctas, test.threads.size(), 4 * kLitmusRegisters,
                     4 * kLitmusRegisters) +
         text + "_left:\n";
}

std::string LitmusTest::ptx(bool is_stress) const {
  std::string text = fmt::format(
      R"(.version 8.7
.target {}
.address_size 64
.visible .entry litmus(.param .u64 variables, .param .u64 results, .param .u32 seed)
.reqntid {}
{{
{}.reg .b32 %_tid, %_warp, %_role, %_instance, %_seed, %_a, %_b, %_c, %_active;
.reg .b64 %_base, %_out, %_d;
.reg .pred %_p, lead;
ld.param.u64 %_base, [variables];
ld.param.u64 %_out, [results];
ld.param.u32 %_seed, [seed];
cvta.to.global.u64 %_base, %_base;
cvta.to.global.u64 %_out, %_out;
mov.u32 %_tid, %tid.x;
shr.u32 %_warp, %_tid, 5;
and.b32 %_a, %_tid, 31;
setp.eq.u32 lead, %_a, 0;
mov.u32 %_a, %ctaid.x;
div.u32 %_instance, %_a, {};
rem.u32 %_role, %_a, {};
mad.wide.u32 %_base, %_instance, {}, %_base;
)",
      target, 32 * warps(), shared_declarations(*this), ctas, ctas,
      kMeetingBytes + global_bytes());
  text += global_addresses(*this) + shared_values(*this);
  for (std::size_t i = 0; i < threads.size(); ++i)
    text += thread_text(*this, i, is_stress);
  std::string seen = finals(*this);
  if (is_cluster || !seen.empty())
    text += barrier_text(*this) + seen;
  return text + "ret;\n}\n";
}

} // namespace kiln::cli
