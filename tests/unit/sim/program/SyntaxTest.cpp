// Syntax: every form of the registry with operands dropped, added and replaced
// by others; what is said of modifiers and operands that no form has.
#include "SyntaxSamples.h"

#include "kiln/base/error.h"
#include "sim/launch/Launch.h"
#include "sim/units/Units.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

namespace kiln::sim {

/// The instruction stands in line 18.
static std::string moduleWith(const std::string &instruction) {
  return fmt::format(R"(.version 8.6
.target sm_100a
.address_size 64
.global .align 16 .b8 gvar[64];
.func simple() {{ ret; }} .func (.reg .b32 r) makes() {{ mov.b32 r, 1; ret; }}
.func takes(.reg .b32 a) {{ ret; }}
.func (.reg .b32 r) gives(.reg .b32 a) {{ mov.b32 r, a; ret; }}
.visible .entry test(.param .u64 par)
{{
.reg .pred %p<8>; .reg .b16 %rs<8>; .reg .b32 %r<10>; .reg .b64 %rd<8>;
.reg .f32 %f<10>; .reg .f64 %fd<4>; .reg .b128 %q<4>;
.shared .align 16 .b8 svar[64];
.local .align 16 .b8 lvar[64];
TABLE: .branchtargets DONE, NEXT;
PROTO: .callprototype _ (); PROTO1: .callprototype (.reg .b32 _) _ ();
PROTO2: .callprototype (.reg .b32 _) _ (.reg .b32 _);
NEXT:
{}
DONE: ret;
}}
)",
                     instruction);
}

/// Decode it; empty, or what was said against it. Anything but a UserError is
/// thrown on.
static std::string decode(const std::string &instruction) {
  try {
    ptx::Module module = ptx::parse(moduleWith(instruction));
    GlobalMemory memory;
    LaunchConfig config;
    config.params.resize(8);
    Launch(memory, module, *module.entries().at(0), config);
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

/// Opcode and operands, split where a comma is in no brackets.
static std::vector<std::string> split(const std::string &instruction) {
  std::size_t space = instruction.find(' ');
  if (space == std::string::npos)
    return {instruction.substr(0, instruction.size() - 1)};
  std::vector<std::string> parts = {instruction.substr(0, space), ""};
  int depth = 0;
  for (char c : instruction.substr(space + 1)) {
    depth +=
        (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else if (c != ';' && !(c == ' ' && parts.back().empty()))
      parts.back() += c;
  }
  return parts;
}

static std::string join(const std::vector<std::string> &parts) {
  std::string text = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i)
    text += (i == 1 ? " " : ", ") + parts[i];
  return text + ";";
}

/// A refusal names the line of the instruction.
static void expectVerdict(const std::string &instruction) {
  std::string said;
  try {
    said = decode(instruction);
  } catch (const std::exception &error) {
    ADD_FAILURE() << instruction << ": " << error.what();
    return;
  }
  EXPECT_TRUE(said.empty() || said.find("line 18") != std::string::npos ||
              said.find("PTX:18") != std::string::npos)
      << instruction << ": " << said;
}

TEST(Syntax, HasASampleOfEveryForm) {
  std::set<std::pair<std::string, std::size_t>> seen;
  for (const char *sample : kSyntaxSamples) {
    EXPECT_EQ(decode(sample), "") << sample;
    ptx::Module module = ptx::parse(moduleWith(sample));
    const ptx::Function &entry = *module.entries().at(0);
    const ptx::Instruction &instruction = entry.body.at(0);
    const Instruction *row = instructionSet().find(instruction.opcode);
    ASSERT_TRUE(row) << sample;
    try {
      seen.emplace(row->opcode, row->syntax.check(entry, instruction));
    } catch (const UserError &) {
      // It has been told above.
    }
  }
  for (const Instruction &row : instructionSet().rows())
    for (std::size_t form = 0; form < row.syntax.rules().size(); ++form)
      EXPECT_TRUE(seen.contains({row.opcode, form}))
          << "no sample of form " << form << " of " << row.opcode;
}

TEST(Syntax, TellsOperandsThatAreMissingOrLeftOver) {
  for (const char *sample : kSyntaxSamples) {
    std::vector<std::string> parts = split(sample);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      std::vector<std::string> fewer = parts;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      expectVerdict(join(fewer));
    }
    for (const char *surplus : {"%r1", "%rd1", "%p1", "0", "_", "[%rd1]"}) {
      std::vector<std::string> more = parts;
      more.push_back(surplus);
      expectVerdict(join(more));
      more.push_back(surplus);
      std::string said = decode(join(more));
      bool isTold = said.find("operand") != std::string::npos;
      EXPECT_TRUE(isTold) << join(more) << ": " << said;
    }
  }
}

TEST(Syntax, TellsOperandsOfAnotherKind) {
  for (const char *sample : kSyntaxSamples) {
    std::vector<std::string> parts = split(sample);
    for (std::size_t i = 1; i < parts.size(); ++i)
      for (const char *other : {"%p1",
                                "!%p1",
                                "%rs1",
                                "%r1",
                                "%rd1",
                                "%f1",
                                "%fd1",
                                "%q1",
                                "7",
                                "-1",
                                "18446744073709551615",
                                "1.5",
                                "_",
                                "%tid.x",
                                "WARP_SZ",
                                "gvar",
                                "gvar+4",
                                "par",
                                "test",
                                "simple",
                                "NEXT",
                                "TABLE",
                                "PROTO",
                                "nowhere",
                                "-%r1",
                                "%r1.b0",
                                "%r1.x",
                                "_.b0",
                                "%r1|%p1",
                                "%r1|%r2",
                                "%p1|%p2",
                                "_|%p1",
                                "{}",
                                "{%r1}",
                                "{%r1, %r2}",
                                "{%rd1, %rd2}",
                                "{%p1, %p2}",
                                "{_, _}",
                                "{%r1, NEXT}",
                                "{%r1, [%rd1]}",
                                "{{%r1}, %r2}",
                                "{%r1, %r2, %r3, %r4, %r5}",
                                "[%rd1]",
                                "[gvar+4]",
                                "[5]",
                                "[%f1]",
                                "[%p1]",
                                "[%q1]",
                                "[-%r1]",
                                "[_]",
                                "[NEXT]",
                                "[%tid.x]",
                                "[{%r1}]",
                                "[%rd1, {%r1}]",
                                "[%rd1, {%p1, %r1}]",
                                "[%rd1, %r1]",
                                "[%rd1, {%r1, %r2, %r3, %r4, %r5, %r6}]"}) {
        std::vector<std::string> changed = parts;
        changed[i] = other;
        expectVerdict(join(changed));
      }
  }
}

TEST(Syntax, SaysWhatWouldBeAccepted) {
  static constexpr std::pair<const char *, const char *> kCases[] = {
      {"bra %r1;", "operand 1 of bra is the register %r1 of type .b32, and "
                   "must be a label"},
      {"bra 5;", "operand 1 of bra is an integer, and must be a label"},
      {"bra par;", "operand 1 of bra is the symbol 'par', and must be a label"},
      {"mbarrier.init.shared.b64 [%r1];",
       "mbarrier.init takes 2 operands (address, value), not 1"},
      {"ret 1;", "ret takes no operands, not 1"},
      {"ld.global.u32 %r1;", "ld takes 2 operands (result, address), not 1"},
      {"ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];",
       "operand 1 of ld is a vector of 3, and must be a vector of 2 of type "
       ".u32 or wider"},
      {"bar.sync 0, 32, 1;",
       "bar.sync takes 1 to 2 operands (value, optional value), not 3"},
      {"add.u32 %r1, %p1, 1;", "operand 2 of add is the predicate %p1, and "
                               "must be a value of type .u32"},
      {"add.u32 %r1, -%r2, 1;", "operand 2 of add is the negated register "
                                "%r2, and must be a value of type .u32"},
      {"add.u32 %r1, %r2.b0, 1;", "operand 2 of add is the register %r2.b0 of "
                                  "type .b32, and must be a value of type "
                                  ".u32"},
      {"add.u32 %r1|%p1, %r2, 1;", "operand 1 of add is the pair %r1|%p1, and "
                                   "must be a register of type .u32"},
      {"add.u32 %r1, %r2, 1.5;", "operand 3 of add is a real number, and must "
                                 "be a value of type .u32"},
      {"add.u32 _, %r2, 1;", "operand 1 of add is '_', and must be a register "
                             "of type .u32"},
      {"add.u32 %r1, %tid.x, 1;", "operand 2 of add is the special register "
                                  "%tid.x, and must be a value of type .u32"},
      {"setp.lt.u32 %r1, %r2, 1;", "operand 1 of setp.lt is the register %r1 "
                                   "of type .b32, and must be a predicate"},
      {"elect.sync %r1, -1;", "must be a register of type .b32 paired with a "
                              "predicate"},
      {"ld.global.u32 %r1, [%f1];", "operand 2 of ld is the address of the "
                                    "register %f1 of type .f32, and must be "
                                    "an address"},
      {"ld.global.u32 %r1, NEXT;",
       "operand 2 of ld is the label 'NEXT', and must be an address"},
      {"cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {%r1}];",
       "is an address with coordinates, and must be a tensor map's address "
       "with 2 coordinates"},
      {"cp.async.wait_group %r1;", "must be an integer constant"},
      {"brx.idx %r1, [%rd1];",
       "is an address, and must be the name of a table or a prototype"},
      {"call gives, (%p1);",
       "operand 2 of call is a list in parentheses, and must be a list of "
       "registers, constants and parameters"},
      {"call 5;", "operand 1 of call is an integer, and must be a function"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, "
       "%f4}, {%r1, %r2}, %r3, {%f1, %f2, %f3, %f4};",
       "operand 3 of mma is the register %r3 of type .b32, and must be a "
       "vector of registers"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r3];",
       "must be a vector of elements of type .b32"},
      {"mov.b32 {%r1, %r2}, %r3;",
       "operand 1 of mov is a vector of 2, and must be a register of type .b32 "
       "or a vector of the parts of type .b32"},
      {"vadd.s32.s32.s32 %f1, %r2, %r3;",
       "must be a register of 32 bits or a part of one"},
      {"call 7, PROTO;", "operand 1 of call is an integer, and must be"},
      // Modifiers.
      {"ld.foo.u32 %r1, [%rd1];", "the modifier .foo is not known for ld"},
      {"mbarrier.init.parity.b64 [%rd1], 1;",
       "the modifier .parity is not known for mbarrier.init"},
      {"mbarrier.b64 [%rd1], 1;", "mbarrier needs one of .init .inval"},
      {"shfl.idx.b32 %r1, %r2, 0, 31;", "shfl.idx needs .sync"},
      {"shfl.sync.up.down.b32 %r1, %r2, 0, 31, -1;",
       "shfl takes one of .up .down, not several"},
      {"ld.global.shared.u32 %r1, [%rd1];",
       "ld takes one of .global .shared, not several"},
      {"add.u32.u64 %r1, %r2, 1;", "add takes 1 type, not 2"},
      {"add %r1, %r2, 1;", "add takes 1 type, not 0"},
      {"cvt.u32 %r1, %r2;", "cvt takes 2 types, not 1"},
  };
  for (const auto &[instruction, expected] : kCases) {
    std::string said = decode(instruction);
    EXPECT_NE(said.find(expected), std::string::npos)
        << instruction << ": " << said;
  }
}

TEST(Syntax, ListsRefusalsByLine) {
  std::string said =
      decode("add.u32 %r1;\nshfl.up.b32 %r1, %r2, 1, 0;\nbra 5;");
  std::size_t first = said.find("line 18"), second = said.find("line 19"),
              third = said.find("line 20");
  EXPECT_TRUE(first < second && second < third && third != std::string::npos)
      << said;
}

TEST(Syntax, RefusesCallsThatCannotBeMade) {
  EXPECT_NE(decode("call test, (%rd1);")
                .find("'test' is an entry; a call takes a .func"),
            std::string::npos);
  ptx::Module module = ptx::parse(R"(.version 8.6
.target sm_90a
.address_size 64
.func odd(.reg .pred p) { ret; }
.visible .entry test() { call odd, (1); ret; }
)");
  GlobalMemory memory;
  EXPECT_THROW(Launch(memory, module, *module.entries().at(0), {}), UserError);
}

} // namespace kiln::sim
