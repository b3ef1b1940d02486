// Vector: several values at once, in LLVM's vectors of the width of a register.
//
// Values are put into a vector and taken out again around every operation;
// LLVM removes what cancels, so a chain of operations stays packed.
#include "kiln/language/value/vector.h"
#include "dsl/kernel/State.h"
#include "kiln/language/value/math.h"
#include "support/Error.h"

namespace kiln {

namespace arith = mlir::arith;

namespace {
/// Where vectors are made and taken apart.
struct Packing {
  KernelBuilder::State &state;
  Where where;

  explicit Packing(const Where &where)
      : state(KernelBuilder::State::current(where)), where(where) {}

  mlir::OpBuilder &builder() const { return state.builder; }
  mlir::Location loc() const { return state.at(where); }

  /// `count` neighbours from `first` on.
  mlir::Value gather(const Values &values, std::size_t first,
                     std::size_t count) const {
    Type type = values[first].type();
    auto width = static_cast<std::int64_t>(count);
    mlir::Value vector = mlir::LLVM::PoisonOp::create(
        builder(), loc(), mlir::VectorType::get(width, state.lower(type)));
    for (std::size_t i = 0; i < count; ++i)
      vector = mlir::LLVM::InsertElementOp::create(
          builder(), loc(), vector,
          state.use(At(values[first + i], where), type),
          state.constant(Type::i32, static_cast<int>(i), where));
    return vector;
  }
  /// The elements of `vector`, appended to `values`.
  void scatter(mlir::Value vector, Type type, Values &values) const {
    auto count = mlir::cast<mlir::VectorType>(vector.getType()).getDimSize(0);
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(
          state.wrap(mlir::LLVM::ExtractElementOp::create(
                         builder(), loc(), vector,
                         state.constant(Type::i32, static_cast<int>(i), where)),
                     type));
  }
  mlir::Value bitcast(mlir::Value value, mlir::Type to) const {
    return mlir::LLVM::BitcastOp::create(builder(), loc(), to, value);
  }
  mlir::Value call(const std::string &intrinsic, mlir::Type result,
                   mlir::ValueRange operands) const {
    auto op = mlir::LLVM::CallIntrinsicOp::create(
        builder(), loc(), result, builder().getStringAttr(intrinsic), operands);
    return op->getResult(0);
  }
};
} // namespace

static bool isHalf(Type type) {
  return type == Type::f16 || type == Type::bf16;
}

/// A vector of one type; all others are refused.
static void checkSame(const Values &values, const char *what,
                      const Where &where) {
  for (const Value &value : values)
    if (value.type() != values[0].type())
      userErrorAt(where, "{} of a vector of {} and {}; a vector has one type",
                  what, name(values[0].type()), name(value.type()));
}

/// The right operand as long as the left one and of its type.
static Values matched(const Values &lhs, const AtEach &rhs, const char *what) {
  const Where &where = rhs.where();
  checkSame(lhs, what, where);
  if (rhs.scalar()) {
    if (lhs.empty())
      return {};
    auto &state = KernelBuilder::State::current(where);
    return Values(lhs.size(), state.resolve(*rhs.scalar(), lhs[0].type()));
  }
  if (rhs.values().size() != lhs.size())
    userErrorAt(where, "{} of vectors of {} and {} values; both have the same",
                what, lhs.size(), rhs.values().size());
  checkSame(rhs.values(), what, where);
  return rhs.values();
}

/// `onPair` of every two halves and `onOne` of what is left.
template <typename OnPair, typename OnOne>
static Values elementwise(const std::vector<Values> &operands,
                          const Where &where, OnPair onPair, OnOne onOne) {
  Packing packing(where);
  Values results;
  std::size_t count = operands[0].size();
  for (std::size_t i = 0; i < count;) {
    bool isPair = i + 1 < count;
    for (const Values &each : operands)
      isPair &=
          isHalf(each[i].type()) && each[i].type() == operands[0][i].type();
    if (!isPair) {
      results.push_back(onOne(i));
      ++i;
      continue;
    }
    llvm::SmallVector<mlir::Value, 3> pairs;
    for (const Values &each : operands)
      pairs.push_back(packing.gather(each, i, 2));
    packing.scatter(onPair(packing, pairs), operands[0][i].type(), results);
    i += 2;
  }
  return results;
}

/// An operation of two, which MLIR calls `Op` for floats.
template <typename Op>
static Values binary(const Values &lhs, const AtEach &rhs, const char *what,
                     Value (*onOne)(const Value &, At)) {
  Values right = matched(lhs, rhs, what);
  return elementwise(
      {lhs, right}, rhs.where(),
      [](const Packing &packing, mlir::ValueRange pairs) -> mlir::Value {
        return Op::create(packing.builder(), packing.loc(), pairs[0], pairs[1]);
      },
      [&](std::size_t i) { return onOne(lhs[i], At(right[i], rhs.where())); });
}

Values operator+(const Values &lhs, AtEach rhs) {
  return binary<arith::AddFOp>(lhs, rhs, "+", operator+);
}
Values operator-(const Values &lhs, AtEach rhs) {
  return binary<arith::SubFOp>(lhs, rhs, "-", operator-);
}
Values operator*(const Values &lhs, AtEach rhs) {
  return binary<arith::MulFOp>(lhs, rhs, "*", operator*);
}
Values min(const Values &lhs, At rhs) {
  return binary<mlir::LLVM::MinNumOp>(lhs, rhs, "min", min);
}
Values min(const Values &lhs, const Values &rhs, Where where) {
  return binary<mlir::LLVM::MinNumOp>(lhs, AtEach(rhs, where), "min", min);
}
Values max(const Values &lhs, At rhs) {
  return binary<mlir::LLVM::MaxNumOp>(lhs, rhs, "max", max);
}
Values max(const Values &lhs, const Values &rhs, Where where) {
  return binary<mlir::LLVM::MaxNumOp>(lhs, AtEach(rhs, where), "max", max);
}

Values fma(const Values &a, AtEach b, AtEach c) {
  Values factors = matched(a, b, "fma"), sums = matched(a, c, "fma");
  return elementwise(
      {a, factors, sums}, b.where(),
      [](const Packing &packing, mlir::ValueRange pairs) -> mlir::Value {
        return mlir::LLVM::FMAOp::create(packing.builder(), packing.loc(),
                                         pairs[0], pairs[1], pairs[2]);
      },
      [&](std::size_t i) {
        return fma(a[i], At(factors[i], b.where()), At(sums[i], c.where()));
      });
}

// Conversions.

/// Two floats in another type by one instruction: eight bits to and from f16,
/// and to them from f32.
static mlir::Value convertPair(const Packing &packing, const Values &pair,
                               Type type) {
  Type from = pair[0].type();
  mlir::OpBuilder &builder = packing.builder();
  mlir::Type bytes = mlir::VectorType::get(2, builder.getI8Type());
  auto operand = [&](std::size_t i) {
    return packing.state.use(At(pair[i], packing.where), from);
  };
  if (isEightBitFloat(type) && from == Type::f32)
    // The instruction's first operand goes to the upper half.
    return packing.bitcast(
        packing.call(fmt::format("llvm.nvvm.ff.to.{}x2.rn", name(type)),
                     builder.getI16Type(), {operand(1), operand(0)}),
        bytes);
  if (isEightBitFloat(type) && from == Type::f16)
    return packing.bitcast(
        packing.call(fmt::format("llvm.nvvm.f16x2.to.{}x2.rn", name(type)),
                     builder.getI16Type(), {packing.gather(pair, 0, 2)}),
        bytes);
  return packing.call(
      fmt::format("llvm.nvvm.{}x2.to.f16x2.rn", name(from)),
      mlir::VectorType::get(2, builder.getF16Type()),
      {packing.bitcast(packing.gather(pair, 0, 2), builder.getI16Type())});
}

Values cast(const Values &values, Type type, Where where) {
  Packing packing(where);
  checkSame(values, "cast", where);
  if (values.empty() || values[0].type() == type)
    return values;
  Type from = values[0].type();
  for (Type one : {from, type})
    if (isEightBitFloat(one) && one != Type::e4m3 && one != Type::e5m2)
      userErrorAt(where,
                  "{} is cast to {}; {} is copied and multiplied, and of the "
                  "narrow floats e4m3 and e5m2 are converted",
                  name(from), name(type), name(one));
  if (isEightBitFloat(from) && type != Type::f16)
    // f16 holds every value of eight bits.
    return cast(cast(values, Type::f16, where), type, where);
  if (isEightBitFloat(type) && from != Type::f16 && from != Type::f32)
    return cast(cast(values, Type::f32, where), type, where);
  Values results;
  if (!isEightBitFloat(from) && !isEightBitFloat(type)) {
    // LLVM makes pairs of f32 to f16 and bf16 itself.
    for (const Value &value : values)
      results.push_back(cast(At(value, where), type));
    return results;
  }
  for (std::size_t i = 0; i < values.size(); i += 2) {
    mlir::Type bits = packing.state.lower(from);
    bool isAlone = i + 1 == values.size();
    Value other =
        isAlone ? packing.state.wrap(arith::ConstantOp::create(
                                         packing.builder(), packing.loc(),
                                         packing.builder().getZeroAttr(bits)),
                                     from)
                : values[i + 1];
    packing.scatter(convertPair(packing, {values[i], other}, type), type,
                    results);
  }
  results.resize(values.size());
  return results;
}

Value pack(const Values &values, Where where) {
  Packing packing(where);
  checkSame(values, "pack", where);
  if (values.empty() ||
      size_bits(values[0].type()) * static_cast<int>(values.size()) != 32)
    userErrorAt(where,
                "pack was given {} values{}; a word of 32 bits takes two of 16 "
                "or four of 8",
                values.size(),
                values.empty() ? std::string()
                               : fmt::format(" of {}", name(values[0].type())));
  mlir::Value vector = packing.gather(values, 0, values.size());
  return packing.state.wrap(
      packing.bitcast(vector, packing.builder().getI32Type()), Type::u32);
}

Values unpack(At word, Type type) {
  Packing packing(word.where());
  mlir::Value bits = packing.state.use(word, Type::u32);
  int size = size_bits(type);
  if (size != 8 && size != 16)
    userErrorAt(word.where(),
                "unpack to {}; a word of 32 bits holds values of 8 or 16",
                name(type));
  Values values;
  packing.scatter(
      packing.bitcast(
          bits, mlir::VectorType::get(32 / size, packing.state.lower(type))),
      type, values);
  return values;
}

} // namespace kiln
