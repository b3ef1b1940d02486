// RawPtx: instructions written as text, after MLIR's BasicPtxBuilder.
//
// LLVM numbers the registers of inline assembly with the results first; the
// placeholders of the text count the operands as the user wrote them. This file
// translates between the two.
#include "dsl/kernel/State.h"
#include "kiln/language/value/control.h"
#include "kiln/language/value/ptx.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

using Access = PtxOperand::Access;

PtxOperand in(At value) { return {Access::read, Type::i32, value}; }
PtxOperand out(Type type) { return {Access::write, type, std::nullopt}; }
PtxOperand inout(At value) { return {Access::read_write, Type::i32, value}; }

namespace {
/// Assembles one inline assembly out of the user's operands.
struct RawPtx {
  KernelBuilder::State &state;
  Where where;
  llvm::SmallVector<Type> resultTypes;
  llvm::SmallVector<mlir::Type> results; ///< as registers hold them
  llvm::SmallVector<mlir::Value> inputs;
  std::vector<std::string> constraints; ///< of the results, then of inputs
  std::vector<std::string> inputConstraints;
  /// Per operand: its number among the results or among the inputs.
  std::vector<std::pair<bool, std::size_t>> places;

  std::string number(std::size_t operand) const {
    auto [isResult, index] = places[operand];
    return fmt::format("${}", isResult ? index : results.size() + index);
  }
};
} // namespace

/// The register an operand lies in. Addresses are those of 64 bits.
static char registerOf(Type type, bool isAddress, const Where &where) {
  if (isAddress)
    return 'l';
  switch (size_bits(type)) {
  case 1:
    return 'b';
  case 16:
    return 'h';
  case 32:
    return is_float(type) ? 'f' : 'r';
  case 64:
    return is_float(type) ? 'd' : 'l';
  default:
    userErrorAt(where,
                "inline_ptx has no register for {}; cast or widen it to 16 "
                "bits",
                name(type));
  }
}

/// Halves are in registers of 16 bits without a meaning.
static mlir::Type inRegister(KernelBuilder::State &state, Type type) {
  return size_bits(type) == 16 ? mlir::Type(state.builder.getI16Type())
                               : state.lower(type);
}

static mlir::Value convert(RawPtx &raw, mlir::Value value, mlir::Type to) {
  if (value.getType() == to)
    return value;
  return mlir::LLVM::BitcastOp::create(raw.state.builder,
                                       raw.state.at(raw.where), to, value);
}

static void addOperand(RawPtx &raw, const PtxOperand &operand) {
  Type type = operand.type();
  mlir::Value value;
  bool isAddress = false;
  if (operand.value()) {
    Value given = value_of(*operand.value());
    type = given.type();
    value = raw.state.use(given, raw.where);
    isAddress = mlir::isa<mlir::LLVM::LLVMPointerType>(value.getType());
  }
  char constraint = registerOf(type, isAddress, raw.where);
  if (isAddress && operand.access() != Access::read)
    userErrorAt(raw.where, "an operand of inline_ptx is an address and inout; "
                           "addresses are read");
  bool isResult = operand.access() != Access::read;
  if (isResult) {
    raw.places.push_back({true, raw.results.size()});
    raw.resultTypes.push_back(type);
    raw.results.push_back(inRegister(raw.state, type));
    raw.constraints.push_back(fmt::format("={}", constraint));
  } else {
    raw.places.push_back({false, raw.inputs.size()});
  }
  if (!value)
    return;
  raw.inputs.push_back(
      isAddress ? value : convert(raw, value, inRegister(raw.state, type)));
  // What is read and written names the result whose register it shares.
  raw.inputConstraints.push_back(isResult
                                     ? fmt::format("{}", raw.results.size() - 1)
                                     : std::string(1, constraint));
}

/// The placeholder that begins at `at`: its number and its length; a length of
/// 0: this brace is PTX's own.
static std::pair<std::size_t, std::size_t>
placeholderAt(const std::string &text, std::size_t at) {
  std::size_t end = at + 1, number = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9' &&
         end - at <= 3)
    number = number * 10 + (text[end++] - '0');
  if (end == at + 1 || end == text.size() || text[end] != '}')
    return {0, 0};
  return {number, end + 1 - at};
}

/// The text as LLVM takes it. Throws for placeholders and operands that do not
/// match.
static std::string translate(const RawPtx &raw, const std::string &text) {
  std::string result;
  std::vector<bool> isUsed(raw.places.size(), false);
  for (std::size_t i = 0; i < text.size();) {
    auto [number, length] = text[i] == '{'
                                ? placeholderAt(text, i)
                                : std::pair<std::size_t, std::size_t>();
    if (length == 0) {
      // A dollar sign may be part of a PTX name.
      result += text[i] == '$' ? "$$" : std::string(1, text[i]);
      ++i;
      continue;
    }
    if (number >= raw.places.size())
      userErrorAt(raw.where,
                  "inline_ptx(\"{}\") names operand {{{}}} and has {}", text,
                  number, raw.places.size());
    isUsed[number] = true;
    result += raw.number(number);
    i += length;
  }
  auto unused = std::find(isUsed.begin(), isUsed.end(), false);
  if (unused != isUsed.end())
    userErrorAt(raw.where, "inline_ptx(\"{}\") never names its operand {{{}}}",
                text, unused - isUsed.begin());
  return result;
}

/// Refuse what the assembler would complain about in a text nobody wrote.
static void checkText(const std::string &text, bool hasPredicate,
                      const Where &where) {
  std::size_t last = text.find_last_not_of(" \n\t");
  if (last == std::string::npos || (text[last] != ';' && text[last] != '}'))
    userErrorAt(where,
                "inline_ptx(\"{}\") does not end an instruction; end it with "
                "';'",
                text);
  if (hasPredicate &&
      (std::count(text.begin(), text.end(), ';') != 1 || text[last] == '}'))
    userErrorAt(where,
                "inline_ptx(\"{}\") is not one instruction, and a predicate "
                "guards one; use if_ around several",
                text);
}

/// What the assembly wrote, as Values.
static std::vector<Value> unpack(RawPtx &raw, mlir::Value packed) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < raw.results.size(); ++i) {
    mlir::Value value = raw.results.size() == 1
                            ? packed
                            : mlir::LLVM::ExtractValueOp::create(
                                  raw.state.builder, raw.state.at(raw.where),
                                  packed, static_cast<std::int64_t>(i));
    Type type = raw.resultTypes[i];
    values.push_back(
        raw.state.wrap(convert(raw, value, raw.state.lower(type)), type));
  }
  return values;
}

std::vector<Value> inline_ptx(const std::string &text,
                              const std::vector<PtxOperand> &operands,
                              const PtxOptions &options, Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (options.predicate) {
    std::vector<Value> results;
    PtxOptions inner = options;
    inner.predicate.reset();
    inner.is_pure = false;
    predicated(At(*options.predicate, where),
               [&] { results = inline_ptx(text, operands, inner, where); });
    return results;
  }
  checkText(text, bool(state.predicate), where);
  RawPtx raw{state, where, {}, {}, {}, {}, {}, {}};
  for (const PtxOperand &operand : operands)
    addOperand(raw, operand);
  std::string translated = translate(raw, text);
  if (options.is_pure && raw.results.empty())
    userErrorAt(where,
                "inline_ptx(\"{}\") is pure and writes nothing, so it would be "
                "removed; give it an out or leave is_pure",
                text);
  auto &constraints = raw.constraints;
  constraints.insert(constraints.end(), raw.inputConstraints.begin(),
                     raw.inputConstraints.end());
  if (!options.is_pure)
    constraints.push_back("~{memory}");
  mlir::Type result = raw.results.empty() ? mlir::Type()
                      : raw.results.size() == 1
                          ? raw.results[0]
                          : mlir::LLVM::LLVMStructType::getLiteral(
                                state.context.get(), raw.results);
  std::string joined = llvm::join(constraints, ",");
  mlir::Value packed =
      options.is_pure
          ? state.pureAsm(translated, joined, raw.inputs, result, where)
          : state.inlineAsm(translated, joined, raw.inputs, result, where);
  return unpack(raw, packed);
}

} // namespace kiln
