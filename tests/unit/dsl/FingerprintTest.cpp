// Fingerprint: the same module has the same one in every context, and whatever
// is changed shows.
#include "lower/Fingerprint.h"
#include "lower/Module.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <map>

using namespace kiln;

/// The fingerprint of a gpu.module with this body, in a context of its own.
static std::string of(const std::string &body,
                      const std::string &name = "kernel") {
  auto context = makeContext();
  std::string text = "gpu.module @m { llvm.func @" + name +
                     "(%a: i32, %b: i32) {\n" + body + "\nllvm.return } }";
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(text, context.get(), "file.mlir");
  EXPECT_TRUE(module) << text;
  return module ? fingerprint(module.get()) : "";
}

TEST(Fingerprint, IsOfTheModuleAlone) {
  const char *body = "%x = arith.addi %a, %b : i32\n"
                     "%y = llvm.inline_asm has_side_effects \"mov $0, $1;\", "
                     "\"=r,r\" %x : (i32) -> i32";
  EXPECT_EQ(of(body), of(body));
  EXPECT_FALSE(of(body).empty());
}

TEST(Fingerprint, EveryChangeShows) {
  // What differs is the operation, its operands, attributes, properties, types,
  // results' uses, location, order, nesting, branches.
  const char *const bodies[] = {
      "",
      "%x = arith.addi %a, %b : i32",
      "%x = arith.addi %b, %a : i32",
      "%x = arith.addi %a, %a : i32",
      "%x = arith.addi %a, %b overflow<nsw> : i32",
      "%x = arith.subi %a, %b : i32",
      "%x = arith.addi %a, %b {note = 1 : i32} : i32",
      "%x = arith.addi %a, %b {note = 2 : i32} : i32",
      "%x = arith.addi %a, %b {other = 1 : i32} : i32",
      "%x = arith.addi %a, %b : i32 loc(\"f.cpp\":3:4)",
      "%x = arith.addi %a, %b : i32 loc(\"f.cpp\":4:4)",
      "%x = arith.addi %a, %b : i32 loc(\"g.cpp\":3:4)",
      "%x = arith.addi %a, %b : i32 loc(callsite(\"f.cpp\":3:4 at "
      "\"g.cpp\":1:1))",
      "%x = arith.cmpi slt, %a, %b : i32",
      "%x = arith.cmpi ult, %a, %b : i32",
      "%x = arith.constant 1 : i32",
      "%x = arith.constant 2 : i32",
      "%x = arith.constant 1 : i64",
      "%x = arith.constant 1 : i32\n%y = arith.constant 1 : i32",
      "%x = arith.constant 1 : i32\n%y = arith.constant 2 : i32",
      "%y = arith.constant 2 : i32\n%x = arith.constant 1 : i32",
      "%x = arith.extsi %a : i32 to i64",
      "%x = arith.extsi %a : i32 to i48",
      "%y = llvm.inline_asm has_side_effects \"a\", \"=r,r\" %a : (i32) -> i32",
      "%y = llvm.inline_asm has_side_effects \"b\", \"=r,r\" %a : (i32) -> i32",
      "%y = llvm.inline_asm \"a\", \"=r,r\" %a : (i32) -> i32",
      "%c = arith.cmpi slt, %a, %b : i32\nscf.if %c { %x = arith.addi %a, %b : "
      "i32 }",
      "%c = arith.cmpi slt, %a, %b : i32\nscf.if %c { } else { %x = arith.addi "
      "%a, %b : i32 }",
      "%c = arith.cmpi slt, %a, %b : i32\nscf.if %c { }\n%x = arith.addi %a, "
      "%b : i32",
      "%c = arith.cmpi slt, %a, %b : i32\nllvm.cond_br %c, ^x, ^y\n^x: "
      "llvm.return\n^y: llvm.br ^z\n^z:",
      "%c = arith.cmpi slt, %a, %b : i32\nllvm.cond_br %c, ^y, ^x\n^x: "
      "llvm.return\n^y: llvm.br ^z\n^z:",
      "llvm.br ^x(%a : i32)\n^x(%p: i32):",
      "llvm.br ^x(%b : i32)\n^x(%p: i32):",
      "llvm.br ^x(%a : i32)\n^x(%p: i32 loc(\"f.cpp\":1:1)):",
  };
  std::map<std::string, std::string> seen;
  auto add = [&](const std::string &body, const std::string &name) {
    auto [found, is_new] = seen.try_emplace(of(body, name), body);
    EXPECT_TRUE(is_new) << body << "\nhas the fingerprint of\n"
                        << found->second;
  };
  // On one line each, so that lines do not tell them apart.
  for (std::string body : bodies)
    add(body, "kernel");
  add("", "other");
}
