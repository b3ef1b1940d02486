// Parser: modules as compilers write them, names in scopes, and every refusal.
#include "ptx/Ast.h"

#include "kiln/base/error.h"
#include "unit/ptx/ParserSamples.h"

#include <gmock/gmock.h>

#include <bit>
#include <chrono>

namespace kiln::ptx {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Operand::Kind;

static std::string errorOf(const std::string &text) {
  try {
    parse(text, "t.ptx");
  } catch (const UserError &error) {
    return error.what();
  }
  return "no error";
}

/// An entry with a few registers and this body, which begins in line 2.
static std::string entry(const std::string &body) {
  return ".entry e(.param .u64 p0) { .reg .b32 %r<9>; .reg .b64 %rd<9>; "
         ".reg .pred %p<3>; .reg .f32 %f<9>;\n" +
         body + "\n}";
}

static Function parseBody(const std::string &body) {
  return parse(entry(body)).functions.at(0);
}

/// The operand `x` of `mov.b64 %rd1, x`.
static Operand parseOperand(const std::string &text) {
  Function function = parseBody("mov.b64 %rd1, " + text + ";");
  return function.body.at(0).operands.at(1);
}

static std::int64_t valueOf(const std::string &text) {
  Operand operand = parseOperand(text);
  EXPECT_EQ(operand.kind, Kind::immediate) << text;
  return static_cast<std::int64_t>(operand.bits);
}

static const Instruction &findOpcode(const Function &function,
                                     const std::string &opcode) {
  for (const Instruction &instruction : function.body)
    if (instruction.opcode == opcode)
      return instruction;
  ADD_FAILURE() << "no " << opcode;
  return function.body.at(0);
}

TEST(ParserTest, ModuleDirectives) {
  Module module = parse(std::string(kNvccSample));
  EXPECT_EQ(module.versionMajor, 9);
  EXPECT_EQ(module.versionMinor, 0);
  EXPECT_EQ(module.target, "sm_90a");
  EXPECT_THAT(module.targetOptions, ElementsAre("debug"));
  EXPECT_EQ(module.files.at(1), "/src/k.cu");
  EXPECT_EQ(module.files.at(2), "device.h");
  ASSERT_EQ(module.entries().size(), 1U);
  EXPECT_EQ(module.entries()[0]->name, "k");
  EXPECT_FALSE(module.find("vprintf")->hasBody);
  EXPECT_EQ(module.find("vprintf")->results.at(0).bytes, 4U);
  EXPECT_EQ(module.find("helper")->directives.count("noreturn"), 1U);
  EXPECT_EQ(module.find("nothing"), nullptr);
}

TEST(ParserTest, ParametersAndDirectivesOfAnEntry) {
  Module module = parse(std::string(kHopperSample));
  const Function &function = *module.find("h");
  EXPECT_EQ(function.parameters.at(0).bytes, 128U);
  EXPECT_EQ(function.parameters.at(0).align, 64);
  EXPECT_THAT(function.directives.at("reqntid"), ElementsAre(256, 1, 1));
  EXPECT_THAT(function.directives.at("explicitcluster"), IsEmpty());
  EXPECT_TRUE(module.variables.at(0).isExtern);
  EXPECT_EQ(module.variables.at(0).bytes, 0U);
  EXPECT_EQ(module.variables.at(0).align, 1024);
}

TEST(ParserTest, Initialisers) {
  Module module = parse(std::string(kNvccSample));
  const Variable &grid = module.variables.at(1);
  EXPECT_EQ(grid.bytes, 24U);
  ASSERT_EQ(grid.init.size(), 16U); // the second row's tail is zero
  auto element = [&](int index) {
    std::uint32_t bits = 0;
    for (int byte = 0; byte < 4; ++byte)
      bits |= grid.init[index * 4 + byte] << (8 * byte);
    return std::bit_cast<float>(bits);
  };
  EXPECT_EQ(element(0), 1.0F);
  EXPECT_EQ(element(1), 2.0F);
  EXPECT_EQ(element(3), -1.5F);
  EXPECT_THAT(module.variables.at(2).init, ElementsAre(5, 0, 0, 0));
}

TEST(ParserTest, Relocations) {
  Module module = parse(std::string(kNvccSample));
  const auto &words = module.variables.at(3).relocations;
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[0].symbol, "gi");
  EXPECT_EQ(words[0].offset, 8U);
  EXPECT_EQ(words[0].addend, 8);
  EXPECT_TRUE(words[0].isGeneric);
  EXPECT_EQ(words[1].symbol, "helper");
  EXPECT_EQ(words[1].bytes, 8);
  const Variable &bytes = module.variables.at(4);
  EXPECT_EQ(bytes.bytes, 4U);
  EXPECT_THAT(bytes.init, ElementsAre(0, 0, 104, 0));
  EXPECT_EQ(bytes.relocations.at(0).shift, 0);
  EXPECT_EQ(bytes.relocations.at(1).shift, 8);
  EXPECT_EQ(bytes.relocations.at(1).bytes, 1);
}

TEST(ParserTest, SourceLinesStayOverLineZero) {
  Function function = *parse(std::string(kNvccSample)).find("k");
  EXPECT_EQ(function.body.at(0).source.line, 12);
  EXPECT_EQ(findOpcode(function, "st").source.file, 2);
  EXPECT_EQ(findOpcode(function, "st").source.line, 90);
  EXPECT_EQ(findOpcode(function, "setp").source.line, 90);
}

TEST(ParserTest, BranchTablesAndForwardLabels) {
  Function function = *parse(std::string(kNvccSample)).find("k");
  const Instruction &branch = findOpcode(function, "brx");
  EXPECT_TRUE(branch.isPredicateNegated);
  EXPECT_EQ(branch.operands.at(1).name, "$L_brx_0");
  const std::vector<int> &targets = function.branchTargets.at("$L_brx_0");
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_EQ(function.body.at(targets[0]).text,
            "st.param.b64 [param0+0], %rd1;");
  EXPECT_EQ(function.body.at(targets[1]).text, "call helper, (%r1);");
  EXPECT_EQ(findOpcode(function, "bra").operands.at(0).target, targets[0]);
}

TEST(ParserTest, CallsAndTheirParameters) {
  Function function = *parse(std::string(kNvccSample)).find("k");
  const Instruction &direct = findOpcode(function, "call");
  ASSERT_EQ(direct.operands.size(), 3U);
  EXPECT_EQ(direct.operands[0].elements.at(0).name, "retval0");
  EXPECT_EQ(direct.operands[1].kind, Kind::symbol);
  EXPECT_EQ(direct.operands[1].name, "vprintf");
  EXPECT_EQ(direct.operands[2].elements.size(), 2U);
  // The second sequence has parameters of its own under names of their own.
  const Instruction &indirect = (&direct)[2];
  EXPECT_EQ(indirect.operands.at(0).elements.at(0).name, "retval0@1");
  EXPECT_EQ(indirect.operands.at(1).kind, Kind::reg);
  EXPECT_EQ(indirect.operands.at(2).elements.at(0).name, "param0@1");
  EXPECT_EQ(indirect.operands.at(3).name, "prototype_1");
  EXPECT_EQ(function.locals.back().name, "retval0@1");
}

TEST(ParserTest, CallTargetsAndAliases) {
  Module module = parse(".func f; .func g; .alias a, f;\n" +
                        entry("t: .calltargets f, g;\n"
                              "call %rd1, t; call a;"));
  EXPECT_THAT(module.find("e")->callTargets.at("t"), ElementsAre("f", "g"));
  EXPECT_EQ(module.find("a")->name, "f");
}

TEST(ParserTest, RegisterParameters) {
  Function function = *parse(std::string(kNvccSample)).find("twice");
  EXPECT_EQ(function.results.at(0).space, StateSpace::none);
  ASSERT_EQ(function.registers.size(), 2U);
  EXPECT_EQ(function.body.at(0).operands.at(1).reg, 1);
}

TEST(ParserTest, ScopesRepeatLabelsAndRegisters) {
  Function function = *parse(std::string(kHopperSample)).find("h");
  std::vector<int> targets;
  std::vector<int> predicates;
  for (const Instruction &instruction : function.body) {
    if (instruction.opcode != "bra")
      continue;
    targets.push_back(instruction.operands.at(0).target);
    predicates.push_back(instruction.predicate);
  }
  EXPECT_THAT(targets, ElementsAre(6, 3, 9, 6));
  EXPECT_NE(predicates.at(0), predicates.at(2));
  EXPECT_EQ(function.registers.at(predicates[2]).name, "P1");
}

TEST(ParserTest, InnerNamesHideOuterOnes) {
  Function function = parseBody("L: { bra L; .reg .f32 %r1; mov.f32 %r1, %r2;\n"
                                "L: } mov.b32 %r1, %r2; bra L;");
  EXPECT_EQ(function.body.at(0).operands.at(0).target, 2);
  EXPECT_EQ(function.body.at(3).operands.at(0).target, 0);
  int inner = function.body.at(1).operands.at(0).reg;
  int outer = function.body.at(2).operands.at(0).reg;
  EXPECT_EQ(function.registers.at(inner).type, ScalarType::f32);
  EXPECT_EQ(function.registers.at(outer).type, ScalarType::b32);
}

TEST(ParserTest, LocalsDoNotHideTheModulesVariables) {
  Module module =
      parse(".shared .b32 x;" + entry("{ .shared .b32 x; mov.b64 %rd1, x; }\n"
                                      "mov.b64 %rd1, x;"));
  const Function &function = module.functions.at(0);
  EXPECT_EQ(function.body.at(0).operands.at(1).name, "x@1");
  EXPECT_EQ(function.body.at(1).operands.at(1).name, "x");
}

TEST(ParserTest, OnlyUsedRegistersOfARangeHaveEntries) {
  Function function = parseBody(".reg .b32 %big<2000000000>; not.b32 %big7, "
                                "%big1999999;");
  ASSERT_EQ(function.registers.size(), 2U);
  EXPECT_EQ(function.registers[0].name, "%big7");
}

TEST(ParserTest, AddressForms) {
  Operand tensor =
      parse(std::string(kHopperSample)).find("h")->body.at(2).operands.at(1);
  ASSERT_EQ(tensor.kind, Kind::address);
  EXPECT_EQ(tensor.elements.at(0).kind, Kind::reg);
  EXPECT_EQ(tensor.elements.at(1).kind, Kind::vector);
  EXPECT_EQ(tensor.elements.at(1).elements.at(1).bits, 64U);
  EXPECT_EQ(parseOperand("[%rd1+-4]").offset, -4);
  EXPECT_EQ(parseOperand("[%rd1-4+2*8]").offset, 12);
  Operand symbol = parseOperand("[p0+8]");
  EXPECT_EQ(symbol.offset, 8);
  EXPECT_EQ(symbol.elements.at(0).name, "p0");
  EXPECT_EQ(symbol.elements.at(0).offset, 0);
  EXPECT_EQ(parseOperand("[64]").elements.at(0).bits, 64U);
}

TEST(ParserTest, RegisterForms) {
  Function function = parseBody("setp.eq.s32 %p1|%p2, %r1, -%r2, !%p1;\n"
                                "elect.sync _|%p2, -1; vadd %r1.b0, _;");
  const auto &operands = function.body.at(0).operands;
  EXPECT_EQ(function.registers.at(operands.at(0).pairedReg).name, "%p2");
  EXPECT_TRUE(operands.at(2).isNegated);
  EXPECT_TRUE(operands.at(3).isNegated);
  EXPECT_EQ(function.body.at(1).operands.at(0).kind, Kind::sink);
  EXPECT_EQ(function.body.at(1).operands.at(0).pairedReg,
            operands[0].pairedReg);
  EXPECT_EQ(function.body.at(2).operands.at(0).name, "b0");
  EXPECT_EQ(parseOperand("%ctaid.y").kind, Kind::special);
  EXPECT_EQ(parseOperand("%ctaid.y").name, "%ctaid.y");
  EXPECT_EQ(parseOperand("p0+4").offset, 4);
}

// `.reg .v2 .f32 most;` is a vector and each of its elements.
TEST(ParserTest, VectorsOfRegisters) {
  Module module = parse(R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 o) {
.reg .v2 .f32 most;
.reg .v4 .b32 four<3>;
.reg .f32 f;
.reg .b64 a;
max.f32 most.y, most.x, f;
mov.b64 a, most;
st.v4.b32 [a], four2;
mov.b32 f, four2.a;
ret;
}
)");
  const Function &function = module.functions[0];
  const auto &body = function.body;
  auto nameOf = [&](const Operand &operand) {
    return operand.kind == Operand::Kind::reg
               ? function.registers[operand.reg].name
               : "";
  };
  EXPECT_EQ(nameOf(body[0].operands[0]), "most.y");
  EXPECT_EQ(nameOf(body[0].operands[1]), "most.x");
  EXPECT_EQ(function.registers[body[0].operands[0].reg].type, ScalarType::f32);
  const Operand &both = body[1].operands[1];
  ASSERT_EQ(both.kind, Operand::Kind::vector);
  ASSERT_EQ(both.elements.size(), 2);
  EXPECT_EQ(nameOf(both.elements[1]), "most.y");
  ASSERT_EQ(body[2].operands[1].elements.size(), 4);
  EXPECT_EQ(nameOf(body[2].operands[1].elements[3]), "four2.w");
  EXPECT_EQ(nameOf(body[3].operands[1]), "four2.w");
}

TEST(ParserTest, ConstantExpressions) {
  EXPECT_EQ(valueOf("-1"), -1);
  EXPECT_EQ(valueOf("0x1F"), 31);
  EXPECT_EQ(valueOf("017U"), 15);
  EXPECT_EQ(valueOf("0b101"), 5);
  EXPECT_EQ(valueOf("1+2*3"), 7);
  EXPECT_EQ(valueOf("(1+2)*3 - 7%4"), 6);
  EXPECT_EQ(valueOf("1<<4|3&2^1"), 19);
  EXPECT_EQ(valueOf("~0 == -1 ? 10 : 20"), 10);
  EXPECT_EQ(valueOf("!5 || 0"), 0);
  EXPECT_EQ(valueOf("-8 >> 1"), -4);
  EXPECT_EQ(valueOf("(.u64)-8 >> 60"), 15);
  EXPECT_EQ(valueOf("-1 < 1"), 1);
  EXPECT_EQ(valueOf("-1 < 1U"), 0);
  EXPECT_EQ(valueOf("1 << 64"), 0);
  EXPECT_EQ(valueOf("(-0x7FFFFFFFFFFFFFFF-1) / -1"), INT64_MIN);
}

TEST(ParserTest, Reals) {
  Operand single = parseOperand("-0f3F800000");
  EXPECT_TRUE(single.isSingle);
  EXPECT_EQ(single.bits, 0xBF800000U);
  EXPECT_EQ(parseOperand("0d3FF0000000000000").bits, 0x3FF0000000000000U);
  EXPECT_EQ(std::bit_cast<double>(parseOperand("1.5*2").bits), 3.0);
}

TEST(ParserTest, InstructionsKnowTheirText) {
  Instruction instruction =
      parseBody("\n@!%p1 ld.shared::cta.b32 %r1,\n /* x */ [%rd1];").body[0];
  EXPECT_EQ(instruction.line, 3);
  EXPECT_EQ(instruction.text, "@!%p1 ld.shared::cta.b32 %r1, [%rd1];");
  EXPECT_EQ(instruction.fullOpcode(), "ld.shared::cta.b32");
  EXPECT_TRUE(instruction.has("shared::cta"));
  EXPECT_FALSE(instruction.has("shared"));
}

TEST(ParserTest, VariablesOfVectorsAndAttributes) {
  Module module = parse(".global .attribute(.managed) .v4 .f32 a[2];\n"
                        ".weak .const .v2 .b16 b = {1, 2}; .shared .b64 c, d;\n"
                        ".visible .global .b32 w = WARP_SZ;");
  EXPECT_EQ(module.variables.at(0).bytes, 32U);
  EXPECT_EQ(module.variables.at(0).align, 16);
  EXPECT_THAT(module.variables.at(1).init, ElementsAre(1, 0, 2, 0));
  EXPECT_TRUE(module.variables.at(1).isVisible);
  EXPECT_EQ(module.variables.at(3).name, "d");
  EXPECT_EQ(module.variables.at(3).align, 8);
  EXPECT_EQ(module.variables.at(4).init.at(0), 32);
}

TEST(ParserTest, TypesHaveNamesAndSizes) {
  ScalarType type = ScalarType::pred;
  ASSERT_TRUE(parseScalarType("bf16x2", type));
  EXPECT_EQ(type, ScalarType::bf16x2);
  EXPECT_EQ(sizeBytes(type), 4);
  ASSERT_TRUE(parseScalarType("e5m2x2", type));
  EXPECT_EQ(type, ScalarType::e5m2x2);
  EXPECT_EQ(sizeBytes(ScalarType::b128), 16);
  EXPECT_FALSE(parseScalarType("f31", type));
}

TEST(ParserTest, TablesInTwoScopesHaveTwoNames) {
  Function function = parseBody("{ t: .branchtargets A; brx.idx %r1, t; A: }\n"
                                "{ t: .branchtargets A; brx.idx %r1, t; A: }");
  EXPECT_THAT(function.branchTargets.at("t"), ElementsAre(1));
  EXPECT_THAT(function.branchTargets.at("t@1"), ElementsAre(2));
  EXPECT_EQ(function.body.at(1).operands.at(1).name, "t@1");
}

TEST(ParserTest, DefinitionsReplaceDeclarations) {
  Module module = parse(".extern .global .b32 v; .global .b32 v = 7;\n"
                        ".func f; .func f { ret; } .func f;");
  ASSERT_EQ(module.variables.size(), 1U);
  EXPECT_EQ(module.variables[0].init.at(0), 7);
  ASSERT_EQ(module.functions.size(), 1U);
  EXPECT_TRUE(module.functions[0].hasBody);
}

struct Refusal {
  std::string text;
  const char *message;
};
class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, SaysWhereAndWhy) {
  EXPECT_THAT(errorOf(GetParam().text), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Body, RefusalTest,
    ::testing::Values(
        Refusal{entry("not.b32 %r1, %r2\nexit;"),
                "t.ptx:3: expected ';' after the "
                "instruction, found 'exit': exit;"},
        Refusal{entry("bra X;"), "t.ptx:2: the label 'X' is not defined where "
                                 "this scope sees it: bra X;"},
        Refusal{entry("{ X: } bra X;"), "the label 'X' is not defined"},
        Refusal{entry("t: .branchtargets X;"), "the label 'X' is not defined"},
        Refusal{entry("X:\nX:"), "the label 'X' is defined twice in one scope"},
        Refusal{entry("not.b32 %r9, %r1;"),
                "t.ptx:2: the register '%r9' is not declared"},
        Refusal{entry("@q ret;"), "the register 'q' is not declared"},
        Refusal{entry("@%r1 ret;"), "the register '%r1' is not a predicate"},
        Refusal{entry(".reg .b32 a;\n.reg .b32 a;"),
                "t.ptx:3: 'a' is declared twice in one scope, first in line 2"},
        Refusal{entry(".reg .b32 %r3;"), "first as one of '%r<9>' in line 1"},
        Refusal{entry(".reg .b32 x4, x<9>;"),
                "registers of 'x<9>' are declared twice in one scope"},
        Refusal{entry("mov.b64 %rd1, nobody;"),
                "'nobody' is neither declared in this function nor a variable "
                "or a function of the module"},
        Refusal{entry("{ ret;"), "expected '}' for the scope opened in line 1, "
                                 "found the end of the text"},
        Refusal{entry("mov.b32 %r1, ;"), "expected an operand, found ';'"},
        Refusal{entry(".bogus 1;"), "expected an instruction, a label, a "
                                    "declaration, '.loc', '.pragma' or '}'"},
        Refusal{entry("ld %r1, [%rd1;"), "expected ']' after the address"},
        Refusal{entry(".reg .q32 a;"), "expected a type such as .b32"},
        Refusal{entry("mov %r1, 1/0;"), "'/' by zero"},
        Refusal{entry("mov %r1, ~1.0;"), "'~' takes an integer"},
        Refusal{entry("mov %r1, (.s64)1.0;"), "a cast takes an integer"},
        Refusal{entry("mov %r1, 1.0 & 2;"), "'&' takes integers"},
        Refusal{entry("mov %r1, [%rd1+1.5];"), "expected an integer, this is"},
        Refusal{entry("mov %r1, 089;"), "'089' is not a valid octal number"},
        Refusal{entry("mov %r1, 0x11112222333344445;"), "more than 64 bits"},
        Refusal{entry("mov %r1, " + std::string(9999, '(')),
                "nested deeper than 200 levels"},
        Refusal{entry("mov %r1, " + std::string(9999, '-') + "1;"),
                "nested deeper than 200 levels"},
        Refusal{entry(std::string(9999, '{')),
                "nested deeper than 200 levels"}));

INSTANTIATE_TEST_SUITE_P(
    Punctuation, RefusalTest,
    ::testing::Values(
        Refusal{entry(".loc 1 x 3"), "expected a line after .loc, found 'x'"},
        Refusal{entry(".loc 1 2 3, function_name f, at"),
                "expected 'inlined_at' after function_name, found 'at'"},
        Refusal{entry(".reg .b32 a<x>;"), "expected the number of registers"},
        Refusal{entry(".reg .b32 a<2;"), "expected '>' after the number of"},
        Refusal{entry(".reg .b32 a"), "expected ';' after the registers"},
        Refusal{entry(".local .b32 4;"), "expected the name of a variable"},
        Refusal{entry(".local .b32 a[2;"), "expected ']' after the size of an"},
        Refusal{entry(".pragma \"x\""), "expected ';' after the pragma"},
        Refusal{entry("t: .calltargets 1;"), "expected the name of a function"},
        Refusal{entry("t: .callprototype 1;"), "the name of a prototype ('_')"},
        Refusal{entry("@%p1 ;"), "expected the name of an instruction"},
        Refusal{entry("mov {%r1, %r2, %rd1;"), "expected '}' after the oper"},
        Refusal{entry("call (%r1, f;"), "expected ')' after the operands"},
        Refusal{entry("mov %r1, (1;"), "expected ')' after the expression"},
        Refusal{entry("mov %r1, 1?2;"), "expected ':' between the values of"},
        Refusal{entry("mov %r1, 1+;"), "expected a constant, found ';'"},
        Refusal{".attribute", "found '.attribute': .attribute"},
        Refusal{".global .attribute(.managed", "expected ')' after the attri"},
        Refusal{".global .b32 a[2] = 1;", "expected '{' before a list of"},
        Refusal{".global .b32 a[2] = {1;", "expected '}' after a list of"},
        Refusal{".global .b32 a = 0xFF(a;", "expected ')' after the masked"},
        Refusal{".global .b32 a", "expected ';' after the variable, found the "
                                  "end of the text"}));

INSTANTIATE_TEST_SUITE_P(
    Module, RefusalTest,
    ::testing::Values(
        Refusal{"ret;", "t.ptx:1: expected '.entry', '.func', a variable"},
        Refusal{".version x", "expected a version such as 8.0, found 'x'"},
        Refusal{".target sm_999", "expected one of sm_10, sm_11, sm_12"},
        Refusal{".target foo", "sm_121a, sm_121f, found 'foo'"},
        Refusal{".target sm_90a, foo",
                "expected one of texmode_unified, texmode_independent, debug, "
                "map_f64_to_f32, found 'foo'"},
        Refusal{".address_size 32", "addresses have 64 bits, not 32"},
        Refusal{".file 1 x", "expected the name of a file in quotes"},
        Refusal{".section .s { 1", "expected '}' for the section opened in"},
        Refusal{".pragma 1;", "expected a string after .pragma"},
        Refusal{".alias a, b;",
                "the alias 'a' names 'b', which is no function"},
        Refusal{".entry e .foo 1 { }", "expected '{', ';' or one of .maxntid"},
        Refusal{".entry e 1", "expected '{' or ';' after the head"},
        Refusal{".entry e(.global .b32 x) { }", "expected '.param', '.reg'"},
        Refusal{".func f { }\n.func f { }",
                "t.ptx:2: the function 'f' is defined twice, first in line 1"},
        Refusal{".global .b32 a;\n.global .b32 a;",
                "t.ptx:2: the variable 'a' is defined twice, first in line 1"},
        Refusal{".global .align 3 .b8 a;", "a power of two, not 3"},
        Refusal{".global .b8 a[-1];", "an array cannot have -1 elements"},
        Refusal{".global .b8 a[2][];", "only the first dimension"},
        Refusal{".global .b8 a[99999999][99999999];",
                "'a' is larger than 281474976710656 bytes"},
        Refusal{".global .b8 a[2][99999999] = {{1}, {1}};",
                "with the initialiser of 'a' those of the module span more "
                "than 67108864 bytes"},
        // Each alone is small enough.
        Refusal{".global .b8 a[2][30000000] = {{1}, {1}};\n"
                ".global .b8 b[2][40000000] = {{1}, {1}};",
                "with the initialiser of 'b' those of the module span more"},
        Refusal{".global .b64 x;\n.global .b128 a = x;",
                "an address cannot initialise 'a', whose elements have 16 "
                "bytes"},
        Refusal{".global .b8 a[2] = {1, 2, 3};",
                "'a' has more values than the 2 it can hold"},
        Refusal{".global .b8 a = 1.5;", "a real number cannot initialise 'a'"},
        Refusal{".global .b8 a = 0xF0(b);", "a mask of an address is 0xFF"},
        Refusal{".global .u64 a = b;", "the initialiser of 'a' names 'b', "
                                       "which the module does not declare"}));

TEST(ParserTest, LargeModulesTakeLittleTime) {
  std::string body;
  for (int index = 0; body.size() < 2'000'000; ++index)
    body += "$L" + std::to_string(index) +
            ": { .reg .pred p; setp.eq.b32 p, %r1, 0; @p bra D; D: }\n"
            "mad.lo.s32 %r1, %r2, %r3, %r4;\n";
  auto begin = std::chrono::steady_clock::now();
  Function function = parseBody(body);
  EXPECT_GT(function.body.size(), 50000U);
  // A tenth of this is usual; quadratic behaviour takes minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

} // namespace kiln::ptx
