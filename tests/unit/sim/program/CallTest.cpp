// Call: device functions in PTX text: parameters in registers and in memory,
// pointers, tables, aliases, recursion, and what is refused.
#include "sim/program/flow/Reachable.h"
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// A module whose entry is `body`, with %t the thread and %out 8192 bytes.
class RunModule {
public:
  RunModule(const std::string &declarations, const std::string &body)
      : module_(ptx::parse(fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
{}
.visible .entry test(.param .u64 out)
{{
.reg .b32 %t, %r<16>;
.reg .b64 %out, %at, %x<8>;
.reg .pred %p<4>;
mov.u32 %t, %tid.x;
ld.param.u64 %out, [out];
mul.wide.u32 %at, %t, 4;
add.u64 %at, %at, %out;
{}
ret;
}}
)",
                                       declarations, body))),
        output_(memory_.allocate(8192, "out")) {
    config.block = {32, 1, 1};
    config.threads = 1;
    config.params.resize(8);
    std::memcpy(config.params.data(), &output_.base, 8);
  }

  LaunchResult run() {
    const ptx::Function *entry = module_.find("test");
    return Launch(memory_, module_, *entry, config).run();
  }
  RunModule &runCleanly() {
    for (const Finding &finding : run().findings)
      ADD_FAILURE() << finding.id << ": " << finding.message;
    return *this;
  }
  std::string finding() {
    LaunchResult result = run();
    return result.findings.empty()
               ? ""
               : result.findings[0].id + ": " + result.findings[0].message;
  }
  std::int32_t result(int index) const {
    std::int32_t value;
    std::memcpy(&value, output_.data.get() + 4 * index, 4);
    return value;
  }

  LaunchConfig config;

private:
  ptx::Module module_;
  GlobalMemory memory_;
  Region &output_;
};

/// What is said against a module; empty: nothing.
static std::string refusalOf(const std::string &declarations,
                             const std::string &body) {
  try {
    RunModule(declarations, body).run();
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

static const char *const kDouble = R"(
.func (.reg .b32 result) twice(.reg .b32 value)
{
  add.s32 result, value, value;
  ret;
}
)";

TEST(Call, PassesRegisters) {
  RunModule run(kDouble, "call (%r1), twice, (%t);"
                         "call.uni (%r2), twice, (21);"
                         "add.s32 %r1, %r1, %r2;"
                         "st.global.b32 [%at], %r1;");
  run.runCleanly();
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(run.result(lane), 2 * lane + 42);
}

TEST(Call, RemembersWhereUnwrittenBytesWereRead) {
  const char *const kMemory = R"(
.func (.param .b32 result) same(.param .b32 value)
{
  .reg .b32 %v;
  ld.param.b32 %v, [value];
  st.param.b32 [result], %v;
  ret;
}
)";
  for (const std::string &declarations :
       {std::string(kDouble), std::string(kMemory)}) {
    bool isMemory = declarations == kMemory;
    RunModule run(declarations, isMemory
                                    ? "ld.global.b32 %r1, [%out+4096];"
                                      "{ .param .b32 given; .param .b32 taken;"
                                      "st.param.b32 [given], %r1;"
                                      "call (taken), same, (given);"
                                      "ld.param.b32 %r2, [taken]; }"
                                      "st.global.b32 [%at], %r2;"
                                    : "ld.global.b32 %r1, [%out+4096];"
                                      "call (%r2), twice, (%r1);"
                                      "st.global.b32 [%at], %r2;");
    std::string found = run.finding();
    EXPECT_NE(found.find("; they were read at PTX:"), std::string::npos)
        << found;
    EXPECT_NE(found.find("byte 4096 of out"), std::string::npos) << found;
  }
}

/// Some lanes call, some return early, and all go on together.
TEST(Call, JoinsLanesBehindTheCall) {
  RunModule run(R"(
.func (.param .b32 result) clamp(.param .b32 value)
{
  .reg .b32 %v; .reg .pred %p;
  ld.param.b32 %v, [value];
  setp.lt.s32 %p, %v, 10;
  @%p bra small;
  mov.b32 %v, 10;
  st.param.b32 [result], %v;
  ret;
small:
  st.param.b32 [result], %v;
  setp.lt.s32 %p, %v, 3;
  @%p ret;
  neg.s32 %v, %v;
  st.param.b32 [result], %v;
}
)",
                "mov.b32 %r1, 77;"
                "setp.gt.u32 %p1, %t, 0;"
                "{ .param .b32 a; .param .b32 r;"
                "  st.param.b32 [a], %t;"
                "  @%p1 call (r), clamp, (a);"
                "  @%p1 ld.param.b32 %r1, [r]; }"
                "vote.sync.ballot.b32 %r2, %p1, -1;"
                "bar.warp.sync -1;"
                "st.global.b32 [%at], %r1;"
                "st.global.b32 [%at+128], %r2;");
  run.runCleanly();
  for (int lane = 0; lane < 32; ++lane) {
    int expected = lane == 0 ? 77 : lane < 3 ? lane : lane < 10 ? -lane : 10;
    EXPECT_EQ(run.result(lane), expected) << lane;
    EXPECT_EQ(run.result(32 + lane), -2);
  }
}

static const char *const kTable = R"(
.func (.param .b32 result) plus(.param .b32 value)
{
  .reg .b32 %v;
  ld.param.b32 %v, [value];
  add.s32 %v, %v, 100;
  st.param.b32 [result], %v;
  ret;
}
.func (.param .b32 result) minus(.param .b32 value)
{
  .reg .b32 %v;
  ld.param.b32 %v, [value];
  sub.s32 %v, %v, 100;
  st.param.b32 [result], %v;
  ret;
}
.func other(.param .b64 value);
.func other(.param .b64 value) { ret; }
.alias less, minus;
.global .align 8 .u64 table[3] = {plus, minus, other};
)";

static std::string callByTable(const char *index) {
  return fmt::format("prototype: .callprototype (.param .b32 _) _ (.param .b32 "
                     "_);"
                     "mov.u64 %x1, table;"
                     "{}"
                     "mul.wide.u32 %x2, %r1, 8;"
                     "add.u64 %x1, %x1, %x2;"
                     "ld.global.u64 %x3, [%x1];"
                     "{{ .param .b32 a; .param .b32 r;"
                     "  st.param.b32 [a], %t;"
                     "  call (r), %x3, (a), prototype;"
                     "  ld.param.b32 %r2, [r]; }}"
                     "st.global.b32 [%at], %r2;",
                     index);
}

TEST(Call, FollowsPointers) {
  RunModule run(kTable, callByTable("and.b32 %r1, %t, 1;"));
  run.runCleanly();
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(run.result(lane), lane % 2 ? lane - 100 : lane + 100);
  RunModule alias(kTable, "mov.u64 %x3, less;"
                          "table2: .calltargets plus, minus;"
                          "{ .param .b32 a; .param .b32 r;"
                          "  st.param.b32 [a], %t;"
                          "  call (r), %x3, (a), table2;"
                          "  ld.param.b32 %r2, [r]; }"
                          "st.global.b32 [%at], %r2;");
  alias.runCleanly();
  EXPECT_EQ(alias.result(5), -95);
}

// A pointer that another launch has left in memory: C++'s virtual functions.
TEST(Call, ReachesFunctionsOfTablesThatTheEntryDoesNotName) {
  const char *text = R"(.version 8.0
.target sm_90
.address_size 64
.func one() { ret; }
.func two() { ret; }
.func three() { ret; }
.global .align 8 .u64 table[1] = {one};
.visible .entry make(.param .u64 out) {
.reg .b64 %x<2>;
mov.u64 %x0, two;
ld.param.u64 %x1, [out];
st.global.u64 [%x1], %x0;
call three, ();
ret;
}
.visible .entry use(.param .u64 in) {
.reg .b64 %x<2>;
ld.param.u64 %x0, [in];
ld.global.u64 %x1, [%x0];
prototype: .callprototype _ ();
call %x1, (), prototype;
ret;
}
.visible .entry none() { ret; }
)";
  ptx::Module module = ptx::parse(text);
  auto reached = [&](const char *entry) {
    std::vector<std::string> names;
    for (const ptx::Function *function :
         reachableFrom(module, *module.find(entry)).functions)
      names.push_back(function->name);
    return names;
  };
  EXPECT_EQ(reached("use"), (std::vector<std::string>{"use", "one", "two"}));
  EXPECT_EQ(reached("make"), (std::vector<std::string>{"make", "two", "three"}));
  EXPECT_EQ(reached("none"), std::vector<std::string>{"none"});
}

TEST(Call, FindsPointersToNothing) {
  expectContains(RunModule(kTable, callByTable("mov.b32 %r1, 2;")).finding(),
                 "call-target: other takes other parameters than the call "
                 "gives: thread 0");
  std::string wild = callByTable("mov.b32 %r1, 0;");
  wild.replace(wild.find("ld.global.u64 %x3, [%x1];"), 25,
               "mov.u64 %x3, 12345;      ");
  expectContains(RunModule(kTable, wild).finding(),
                 "call-target: 0x3039 is no function's address");
}

static const char *const kFactorial = R"(
.func (.reg .b32 result) factorial(.reg .b32 n)
{
  .reg .b32 %rest; .reg .pred %p;
  .local .align 4 .b32 kept;
  st.local.b32 [kept], n;
  mov.b32 result, 1;
  setp.lt.s32 %p, n, 2;
  @%p ret;
  sub.s32 %rest, n, 1;
  call (%rest), factorial, (%rest);
  ld.local.b32 n, [kept];
  mul.lo.s32 result, %rest, n;
  ret;
}
)";

TEST(Call, KeepsRegistersAndFramesOfRecursion) {
  RunModule run(kFactorial, "rem.u32 %r1, %t, 10;"
                            "call (%r2), factorial, (%r1);"
                            "st.global.b32 [%at], %r2;");
  run.runCleanly();
  for (int lane = 0; lane < 32; ++lane) {
    int expected = 1;
    for (int i = 2; i <= lane % 10; ++i)
      expected *= i;
    EXPECT_EQ(run.result(lane), expected);
  }
}

TEST(Call, EndsEndlessRecursion) {
  RunModule run(R"(
.func endless()
{
  .local .align 16 .b8 room[1024];
  .reg .b64 %a;
  mov.u64 %a, room;
  st.local.b32 [%a], 0;
  call endless;
  ret;
}
)",
                "call endless;");
  expectContains(run.finding(),
                 "stack-overflow: a thread is 513 calls deep with 525312 "
                 "bytes of local memory; it may have 16384 calls and 524288 "
                 "bytes");
}

/// Only what the entry reaches counts, for shared memory and for refusals.
TEST(Call, LoopsThatRepeatThemselves) {
  const char *functions = R"(
.func (.reg .b32 result) flip(.reg .b32 value)
{
xor.b32 result, value, 1;
ret;
}
.func (.param .b32 result) until(.param .b32 value)
{
.reg .b32 %a, %b;
.reg .pred %q;
ld.param.b32 %b, [value];
mov.u32 %a, 0;
again:
add.u32 %a, %a, 1;
setp.ne.u32 %q, %a, %b;
and.b32 %a, %a, 7;
@%q bra again;
st.param.b32 [result], %a;
ret;
}
)";
  // Around a call, and within one; the second ends for those who ask for less.
  expectContains(RunModule(functions, R"(
    mov.u32 %r0, 0;
  again:
    call (%r0), flip, (%r0);
    setp.lt.u32 %p0, %r0, 2;
    @%p0 bra again;
  )")
                     .finding(),
                 "endless-loop: the loop of PTX:");
  auto untilOf = [&](int value, int rounds) {
    return RunModule(functions, fmt::format(R"(
    .param .b32 a;
    .param .b32 r;
    mov.u32 %r1, 0;
    mov.u32 %r0, {};
  again:
    st.param.b32 [a], %r0;
    call (r), until, (a);
    ld.param.b32 %r2, [r];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, {};
    @%p0 bra again;
  )",
                                            value, rounds))
        .finding();
  };
  EXPECT_EQ(untilOf(8, 20000), "");
  std::string finding = untilOf(9, 1);
  expectContains(finding, "endless-loop: the loop of PTX:");
  expectContains(finding, "%a = 0x");
  expectContains(finding, "is as it was 8 rounds before");
}

TEST(Call, LooksAtWhatTheEntryReaches) {
  RunModule run(".shared .align 4 .b8 unused[400000];"
                ".shared .align 16 .b8 used[32];"
                ".extern .shared .align 4 .b8 scalar;"
                ".extern .shared .align 128 .b8 dynamic[];"
                ".visible .entry elsewhere() { frobnicate.b32; ret; }",
                ".shared .align 4 .b8 own[20];"
                "mov.u32 %r1, used; st.global.b32 [%out], %r1;"
                "mov.u32 %r1, own; st.global.b32 [%out+4], %r1;"
                "mov.u32 %r1, dynamic; st.global.b32 [%out+8], %r1;"
                "mov.u32 %r1, scalar; st.global.b32 [%out+12], %r1;");
  run.config.dynamicSmemBytes = 16;
  run.runCleanly();
  EXPECT_EQ(run.result(3), 1024);      // first, though it says extern
  EXPECT_EQ(run.result(1), 1024 + 4);  // then the entry's own
  EXPECT_EQ(run.result(0), 1024 + 32); // then the module's
  EXPECT_EQ(run.result(2), 1024 + 128);
}

TEST(Call, RefusesByReason) {
  expectContains(refusalOf(".extern .func missing();", "call missing;"),
                 "the function 'missing' has no body here");
  expectContains(refusalOf(kDouble, "call (%r1), twice, (%t, %t);"),
                 "the function has 1 parameters and the call 2");
  expectContains(refusalOf(kTable, "{ .param .b64 a; .param .b32 r;"
                                   "call (r), plus, (a); }"),
                 "parameter 0 of the function has 4 bytes and that of the call "
                 "8");
  expectContains(
      refusalOf(".func bad() { frobnicate.b32; ret; }", "@%p1 call bad;"),
      "no unit knows the opcode 'frobnicate'");
  expectContains(
      refusalOf(".shared .b32 s; .global .u64 g = s;", "mov.u64 %x1, g;"),
      "the initialiser of 'g' holds the address of 's'; only global "
      "and constant variables may");
}

} // namespace kiln::sim
