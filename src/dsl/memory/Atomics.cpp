// Atomics: ld, atom and red on elements of global and shared memory.
//
// Written as PTX, because LLVM's atomicrmw gives the scope and the order other
// names and keeps `atom` where no result is used.
#include "kiln/language/memory/atomics.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

namespace kiln {

namespace {
/// Which types an operation has.
enum class Types : std::uint8_t { numbers, integers, any };

struct Operation {
  const char *ptx;
  Types types;
  bool isBitwise; ///< PTX writes its type as .b32 or .b64
};
} // namespace

static constexpr Operation kAdd{"add", Types::numbers, false};
static constexpr Operation kMin{"min", Types::integers, false};
static constexpr Operation kMax{"max", Types::integers, false};
static constexpr Operation kAnd{"and", Types::integers, true};
static constexpr Operation kOr{"or", Types::integers, true};
static constexpr Operation kXor{"xor", Types::integers, true};
static constexpr Operation kExchange{"exch", Types::any, true};
static constexpr Operation kCompareExchange{"cas", Types::any, true};

/// The type of the instruction, or nothing where it has none for `type`.
static std::string typeOf(const Operation &operation, Type type) {
  int bits = size_bits(type);
  bool isReal = is_float(type);
  if (bits < 32 || (isReal && operation.types == Types::integers) ||
      (type == Type::tf32 && operation.types != Types::any))
    return "";
  if (operation.isBitwise)
    return fmt::format("b{}", bits);
  if (isReal)
    return fmt::format("f{}", bits);
  // Two's complement: add has no s64 of its own.
  bool isSigned = is_signed_integer(type) &&
                  !(operation.types == Types::numbers && bits == 64);
  return fmt::format("{}{}", isSigned ? 's' : 'u', bits);
}

/// ".relaxed.gpu"
static std::string describe(const AtomicOptions &options) {
  static constexpr const char *kOrders[] = {"relaxed", "acquire", "release",
                                            "acq_rel"};
  static constexpr const char *kScopes[] = {"cta", "cluster", "gpu", "sys"};
  return fmt::format(".{}.{}", kOrders[static_cast<int>(options.order)],
                     kScopes[static_cast<int>(options.scope)]);
}

/// The instruction up to its operands: "atom.relaxed.gpu.global.add.s32".
static std::string mnemonic(const char *opcode, const Operation &operation,
                            const Element &element,
                            const AtomicOptions &options, const Where &where) {
  static constexpr const char *kAccepted[] = {
      "i32, u32, i64, u64, index, f32 and f64", "i32, u32, i64, u64 and index",
      "types of 32 and 64 bits"};
  std::string type = typeOf(operation, element.type());
  if (type.empty())
    userErrorAt(where, "there is no {}.{} of {}; it takes {}", opcode,
                operation.ptx, name(element.type()),
                kAccepted[static_cast<int>(operation.types)]);
  return fmt::format("{}{}.{}.{}.{}", opcode, describe(options),
                     element.is_shared() ? "shared" : "global", operation.ptx,
                     type);
}

/// The constraint of a register for an element of 32 or 64 bits.
static char atomicRegister(Type type) {
  bool isWide = size_bits(type) == 64;
  if (is_float(type))
    return isWide ? 'd' : 'f';
  return isWide ? 'l' : 'r';
}

static void markWritten(KernelBuilder::State &state, const Element &element) {
  state.markWritten(element.argument());
}

static Value addAtomic(const Operation &operation, const Element &element,
                       const std::vector<At> &values,
                       const AtomicOptions &options) {
  const Where &where = values.back().where();
  auto &state = KernelBuilder::State::current(where);
  std::string text = mnemonic("atom", operation, element, options, where);
  text += values.size() == 2 ? " $0, [$1], $2, $3;" : " $0, [$1], $2;";
  char constraint = atomicRegister(element.type());
  std::string constraints = fmt::format("={0},l,{0}", constraint);
  llvm::SmallVector<mlir::Value> operands = {
      state.use(element.address(), where)};
  for (const At &value : values)
    operands.push_back(state.use(value, element.type()));
  if (values.size() == 2)
    constraints += fmt::format(",{}", constraint);
  markWritten(state, element);
  return state.wrap(state.inlineAsm(text, constraints + ",~{memory}", operands,
                                    state.lower(element.type()), where),
                    element.type());
}

static void addReduction(const Operation &operation, const Element &element,
                         const At &value, const AtomicOptions &options) {
  const Where &where = value.where();
  auto &state = KernelBuilder::State::current(where);
  if (options.order != MemoryOrder::relaxed &&
      options.order != MemoryOrder::release)
    userErrorAt(where,
                "reduce_{} gives no value, so nothing can be acquired "
                "by it; its order is relaxed or release",
                operation.ptx);
  std::string text = mnemonic("red", operation, element, options, where);
  state.inlineAsm(
      text + " [$0], $1;",
      fmt::format("l,{},~{{memory}}", atomicRegister(element.type())),
      {state.use(element.address(), where), state.use(value, element.type())},
      nullptr, where);
  markWritten(state, element);
}

Value atomic_load(const Element &element, const AtomicOptions &options,
                  Where where) {
  auto &state = KernelBuilder::State::current(where);
  int bits = size_bits(element.type());
  if (bits < 32)
    userErrorAt(where,
                "there is no atomic_load of {}; it takes types of 32 "
                "and 64 bits",
                name(element.type()));
  if (options.order != MemoryOrder::relaxed &&
      options.order != MemoryOrder::acquire)
    userErrorAt(where, "atomic_load writes nothing, so nothing can be released "
                       "by it; its order is relaxed or acquire");
  std::string text =
      fmt::format("ld{}.{}.b{} $0, [$1];", describe(options),
                  element.is_shared() ? "shared" : "global", bits);
  std::string constraints =
      fmt::format("={},l,~{{memory}}", atomicRegister(element.type()));
  return state.wrap(state.inlineAsm(text, constraints,
                                    {state.use(element.address(), where)},
                                    state.lower(element.type()), where),
                    element.type());
}

Value atomic_add(const Element &element, At value,
                 const AtomicOptions &options) {
  return addAtomic(kAdd, element, {value}, options);
}
Value atomic_min(const Element &element, At value,
                 const AtomicOptions &options) {
  return addAtomic(kMin, element, {value}, options);
}
Value atomic_max(const Element &element, At value,
                 const AtomicOptions &options) {
  return addAtomic(kMax, element, {value}, options);
}
Value atomic_and(const Element &element, At value,
                 const AtomicOptions &options) {
  return addAtomic(kAnd, element, {value}, options);
}
Value atomic_or(const Element &element, At value,
                const AtomicOptions &options) {
  return addAtomic(kOr, element, {value}, options);
}
Value atomic_xor(const Element &element, At value,
                 const AtomicOptions &options) {
  return addAtomic(kXor, element, {value}, options);
}
Value atomic_exchange(const Element &element, At value,
                      const AtomicOptions &options) {
  return addAtomic(kExchange, element, {value}, options);
}
Value atomic_compare_exchange(const Element &element, At expected, At value,
                              const AtomicOptions &options) {
  return addAtomic(kCompareExchange, element, {expected, value}, options);
}

void reduce_add(const Element &element, At value,
                const AtomicOptions &options) {
  addReduction(kAdd, element, value, options);
}
void reduce_min(const Element &element, At value,
                const AtomicOptions &options) {
  addReduction(kMin, element, value, options);
}
void reduce_max(const Element &element, At value,
                const AtomicOptions &options) {
  addReduction(kMax, element, value, options);
}
void reduce_and(const Element &element, At value,
                const AtomicOptions &options) {
  addReduction(kAnd, element, value, options);
}
void reduce_or(const Element &element, At value, const AtomicOptions &options) {
  addReduction(kOr, element, value, options);
}
void reduce_xor(const Element &element, At value,
                const AtomicOptions &options) {
  addReduction(kXor, element, value, options);
}

} // namespace kiln
