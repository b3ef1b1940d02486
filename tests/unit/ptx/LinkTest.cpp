// Link: several modules as one.
#include "ptx/Link.h"
#include "kiln/base/error.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln::ptx {

static Module parsed(const std::string &body) {
  return parse(".version 8.0\n.target sm_90\n.address_size 64\n" + body);
}

static Module linked(const std::string &one, const std::string &two) {
  std::vector<Module> modules;
  modules.push_back(parsed(one));
  modules.push_back(parsed(two));
  return link(std::move(modules));
}

static std::string refusal(const std::string &one, const std::string &two) {
  try {
    linked(one, two);
  } catch (const UserError &error) {
    return error.message();
  }
  return "";
}

TEST(Link, WhatOneWantsIsWhatTheOtherHas) {
  Module module = linked(".extern .global .u32 x;\n.extern .func f();\n"
                         ".visible .entry k() { .reg .u32 %r<2>;\n"
                         "ld.global.u32 %r1, [x];\ncall f;\nret; }",
                         ".visible .global .u32 x = 7;\n"
                         ".visible .func f() { ret; }");
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_FALSE(module.variables[0].isExtern);
  EXPECT_EQ(module.variables[0].init.at(0), 7);
  ASSERT_EQ(module.functions.size(), 2u);
  EXPECT_TRUE(module.find("f")->hasBody);
  EXPECT_EQ(module.entries().size(), 1u);
}

TEST(Link, PrivateNamesStayApart) {
  const char *text = ".global .u32 own = {};\n.func help() {{ ret; }}\n"
                     ".visible .entry {}() {{ .reg .u32 %r<2>;\n"
                     "ld.global.u32 %r1, [own];\ncall help;\nret; }}";
  Module module = linked(fmt::format(fmt::runtime(text), 1, "one"),
                         fmt::format(fmt::runtime(text), 2, "two"));
  EXPECT_EQ(module.variables.size(), 2u);
  EXPECT_EQ(module.functions.size(), 4u);
  auto reads = [&](const char *entry) {
    const Function &function = *module.find(entry);
    return function.body.at(0).operands.at(1).elements.at(0).name;
  };
  EXPECT_NE(reads("one"), reads("two"));
  EXPECT_EQ(module.findVariable(reads("two"))->init.at(0), 2);
}

TEST(Link, OneOfSeveralWeakOnesIsEnough) {
  Module module =
      linked(".weak .func f() { ret; }", ".weak .func f() { ret; }");
  EXPECT_EQ(module.functions.size(), 1u);
}

TEST(Link, SourceFilesKeepTheirNames) {
  const char *text = ".file 1 \"{0}.cu\"\n.visible .entry {0}() {{\n"
                     ".loc 1 3 0\nret; }}";
  Module module = linked(fmt::format(fmt::runtime(text), "a"),
                         fmt::format(fmt::runtime(text), "b"));
  const Instruction &last = module.find("b")->body.at(0);
  EXPECT_EQ(module.files.at(last.source.file), "b.cu");
  EXPECT_EQ(last.source.line, 3);
}

TEST(Link, InlinedFunctionsKeepTheirPlacesAndNames) {
  const char *text = ".file 1 \"{0}.cu\"\n.visible .entry {0}() {{\n"
                     ".loc 1 9 0, function_name $L__info_string0, "
                     "inlined_at 1 7 0\nret; }}\n"
                     ".section .debug_str\n{{\n$L__info_string0:\n"
                     ".b8 {1}\n.b8 0\n}}\n";
  Module module =
      linked(fmt::format(fmt::runtime(text), "a", static_cast<int>('x')),
             fmt::format(fmt::runtime(text), "b", static_cast<int>('y')));
  for (auto [entry, name] : {std::pair{"a", "x"}, std::pair{"b", "y"}}) {
    const Function &function = *module.find(entry);
    const Inlined &inlined = function.inlined.at(
        static_cast<std::size_t>(function.body.at(0).source.inlined));
    EXPECT_EQ(module.files.at(inlined.at.file), std::string(entry) + ".cu");
    EXPECT_EQ(inlined.at.line, 7);
    EXPECT_EQ(module.debugStrings.at(inlined.name), name);
  }
}

TEST(Link, RefusesTwoDefinitionsAndNone) {
  EXPECT_EQ(refusal(".visible .global .u32 x;", ".visible .global .u32 x;"),
            "the variable 'x' is defined in two of the modules that are "
            "linked; one of them must be static or weak");
  EXPECT_EQ(
      refusal(".visible .func f() { ret; }", ".visible .func f() { ret; }"),
      "the function 'f' is defined in two of the modules that are "
      "linked; one of them must be static or weak");
  EXPECT_EQ(refusal(".extern .global .u32 x;", ".visible .entry k() { ret; }"),
            "the variable 'x' is wanted by one of the modules that are linked, "
            "and none of them has it");
}

} // namespace kiln::ptx
