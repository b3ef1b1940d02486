// Values: arithmetic, comparison, conversion, and variables.
#include "dsl/kernel/State.h"
#include "kiln/language/value/value.h"
#include "kiln/language/value/vector.h"
#include "support/Error.h"

namespace kiln {

namespace {
namespace arith = mlir::arith;

/// Both operands of a binary operation, of one type.
struct Operands {
  KernelBuilder::State &state;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  Type type;
  mlir::Value lhs, rhs;

  bool isFloat() const { return is_float(type); }
  bool isSigned() const { return is_signed_integer(type); }
  Value wrap(mlir::Value value) { return state.wrap(value, type); }
  Value wrapCondition(mlir::Value value) { return state.wrap(value, Type::i1); }
};
} // namespace

void checkArithmetic(const Value &value, mlir::Value mlirValue,
                     const char *what, const Where &where) {
  if (mlir::isa<mlir::LLVM::LLVMPointerType>(mlirValue.getType()))
    userErrorAt(where,
                "'{}' was applied to an address; tiles, barriers and "
                "tensors are indexed, not computed with",
                what);
  if (isEightBitFloat(value.type()))
    userErrorAt(where,
                "'{}' was applied to {}, which can be loaded, stored, cast and "
                "multiplied by wgmma, and not computed with",
                what, name(value.type()));
}

static Operands prepare(const Value &lhs, const At &rhs, const char *what) {
  auto &state = KernelBuilder::State::current(rhs.where());
  mlir::Value left = state.use(lhs, rhs.where());
  checkArithmetic(lhs, left, what, rhs.where());
  Value right = state.resolve(rhs, lhs.type());
  if (right.type() != lhs.type())
    userErrorAt(rhs.where(),
                "the operands of '{}' are {} and {}; `cast` one of them", what,
                name(lhs.type()), name(right.type()));
  return {state,      state.builder, state.at(rhs.where()),
          lhs.type(), left,          state.use(right, rhs.where())};
}

/// Refuse an operation a type does not have.
static void refuse(const Operands &operands, bool isRefused, const char *what,
                   const At &rhs) {
  if (isRefused)
    userErrorAt(rhs.where(), "there is no '{}' of {}", what,
                name(operands.type));
}

Value operator+(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "+");
  return o.wrap(
      o.isFloat()
          ? mlir::Value(arith::AddFOp::create(o.builder, o.loc, o.lhs, o.rhs))
          : mlir::Value(arith::AddIOp::create(o.builder, o.loc, o.lhs, o.rhs)));
}

Value operator-(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "-");
  return o.wrap(
      o.isFloat()
          ? mlir::Value(arith::SubFOp::create(o.builder, o.loc, o.lhs, o.rhs))
          : mlir::Value(arith::SubIOp::create(o.builder, o.loc, o.lhs, o.rhs)));
}

Value operator*(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "*");
  return o.wrap(
      o.isFloat()
          ? mlir::Value(arith::MulFOp::create(o.builder, o.loc, o.lhs, o.rhs))
          : mlir::Value(arith::MulIOp::create(o.builder, o.loc, o.lhs, o.rhs)));
}

Value operator/(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "/");
  if (o.isFloat())
    return o.wrap(arith::DivFOp::create(o.builder, o.loc, o.lhs, o.rhs));
  if (o.isSigned())
    return o.wrap(arith::DivSIOp::create(o.builder, o.loc, o.lhs, o.rhs));
  return o.wrap(arith::DivUIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator%(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "%");
  refuse(o, o.isFloat(), "%", rhs);
  if (o.isSigned())
    return o.wrap(arith::RemSIOp::create(o.builder, o.loc, o.lhs, o.rhs));
  return o.wrap(arith::RemUIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator&(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "&");
  refuse(o, o.isFloat(), "&", rhs);
  return o.wrap(arith::AndIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator|(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "|");
  refuse(o, o.isFloat(), "|", rhs);
  return o.wrap(arith::OrIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator^(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "^");
  refuse(o, o.isFloat(), "^", rhs);
  return o.wrap(arith::XOrIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator<<(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "<<");
  refuse(o, o.isFloat(), "<<", rhs);
  return o.wrap(arith::ShLIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator>>(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, ">>");
  refuse(o, o.isFloat(), ">>", rhs);
  if (o.isSigned())
    return o.wrap(arith::ShRSIOp::create(o.builder, o.loc, o.lhs, o.rhs));
  return o.wrap(arith::ShRUIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

/// The predicates of one comparison for the three kinds of type.
static Value compare(const Value &lhs, const At &rhs, const char *what,
                     arith::CmpFPredicate onFloat,
                     arith::CmpIPredicate onSigned,
                     arith::CmpIPredicate onUnsigned) {
  Operands o = prepare(lhs, rhs, what);
  if (o.isFloat())
    return o.wrapCondition(
        arith::CmpFOp::create(o.builder, o.loc, onFloat, o.lhs, o.rhs));
  return o.wrapCondition(arith::CmpIOp::create(
      o.builder, o.loc, o.isSigned() ? onSigned : onUnsigned, o.lhs, o.rhs));
}

Value operator==(const Value &lhs, At rhs) {
  return compare(lhs, rhs, "==", arith::CmpFPredicate::OEQ,
                 arith::CmpIPredicate::eq, arith::CmpIPredicate::eq);
}
Value operator!=(const Value &lhs, At rhs) {
  return compare(lhs, rhs, "!=", arith::CmpFPredicate::UNE,
                 arith::CmpIPredicate::ne, arith::CmpIPredicate::ne);
}
Value operator<(const Value &lhs, At rhs) {
  return compare(lhs, rhs, "<", arith::CmpFPredicate::OLT,
                 arith::CmpIPredicate::slt, arith::CmpIPredicate::ult);
}
Value operator<=(const Value &lhs, At rhs) {
  return compare(lhs, rhs, "<=", arith::CmpFPredicate::OLE,
                 arith::CmpIPredicate::sle, arith::CmpIPredicate::ule);
}
Value operator>(const Value &lhs, At rhs) {
  return compare(lhs, rhs, ">", arith::CmpFPredicate::OGT,
                 arith::CmpIPredicate::sgt, arith::CmpIPredicate::ugt);
}
Value operator>=(const Value &lhs, At rhs) {
  return compare(lhs, rhs, ">=", arith::CmpFPredicate::OGE,
                 arith::CmpIPredicate::sge, arith::CmpIPredicate::uge);
}

Value operator&&(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "&&");
  refuse(o, o.type != Type::i1, "&&", rhs);
  return o.wrap(arith::AndIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator||(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "||");
  refuse(o, o.type != Type::i1, "||", rhs);
  return o.wrap(arith::OrIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value operator!(At operand) {
  auto &state = KernelBuilder::State::current(operand.where());
  mlir::Value value = state.use(operand, Type::i1);
  mlir::Value one = state.constant(Type::i1, 1, operand.where());
  return state.wrap(arith::XOrIOp::create(
                        state.builder, state.at(operand.where()), value, one),
                    Type::i1);
}

Value operator-(At operand) {
  Value value = value_of(operand);
  auto &state = KernelBuilder::State::current(operand.where());
  if (is_float(value.type()))
    return state.wrap(arith::NegFOp::create(state.builder,
                                            state.at(operand.where()),
                                            state.use(value, operand.where())),
                      value.type());
  return literal_like(At(0, operand.where()), value) -
         At(value, operand.where());
}

Value literal_like(At literal, const Value &like) {
  auto &state = KernelBuilder::State::current(literal.where());
  return state.resolve(literal, like.type());
}

/// The type a literal or Dim has when nothing else decides.
static Type defaultType(const At &operand) {
  return std::holds_alternative<double>(operand.operand()) ? Type::f32
                                                           : Type::i32;
}

Value value_of(At operand) {
  auto &state = KernelBuilder::State::current(operand.where());
  return state.resolve(operand, defaultType(operand));
}

Value constant(Type type, At literal) {
  if (std::holds_alternative<Value>(literal.operand()))
    userErrorAt(literal.where(), "`constant` takes a literal; `cast` converts "
                                 "a Value");
  return KernelBuilder::State::current(literal.where()).resolve(literal, type);
}

/// A float in another width.
static mlir::Value castFloat(Operands o, mlir::Type to, int toBits) {
  int fromBits = size_bits(o.type);
  if (fromBits == toBits) {
    // f16 and bf16 meet in f32.
    mlir::Value wide =
        arith::ExtFOp::create(o.builder, o.loc, o.builder.getF32Type(), o.lhs);
    return arith::TruncFOp::create(o.builder, o.loc, to, wide);
  }
  if (fromBits < toBits)
    return arith::ExtFOp::create(o.builder, o.loc, to, o.lhs);
  return arith::TruncFOp::create(o.builder, o.loc, to, o.lhs);
}

/// An integer in another width.
static mlir::Value castInteger(Operands o, mlir::Type to, int toBits) {
  int fromBits = size_bits(o.type);
  if (fromBits == toBits)
    return o.lhs;
  if (fromBits > toBits)
    return arith::TruncIOp::create(o.builder, o.loc, to, o.lhs);
  if (o.isSigned())
    return arith::ExtSIOp::create(o.builder, o.loc, to, o.lhs);
  return arith::ExtUIOp::create(o.builder, o.loc, to, o.lhs);
}

/// f32 to tf32: 10 bits of fraction, nearest, ties away from zero.
static Value roundToTf32(KernelBuilder::State &state, const Value &value,
                         const Where &where) {
  mlir::Value result = state.inlineAsm("cvt.rna.tf32.f32 $0, $1;", "=f,f",
                                       {state.use(value, where)},
                                       state.lower(Type::tf32), where);
  return state.wrap(result, Type::tf32);
}

Value cast(At operand, Type type) {
  auto &state = KernelBuilder::State::current(operand.where());
  if (!std::holds_alternative<Value>(operand.operand()))
    return state.resolve(operand, type);
  Value value = std::get<Value>(operand.operand());
  if (type == value.type())
    return value;
  if (isEightBitFloat(value.type()) || isEightBitFloat(type))
    return cast(Values{value}, type, operand.where())[0];
  Operands o = prepare(value, At(value, operand.where()), "cast");
  if (type == Type::tf32)
    return roundToTf32(state, cast(operand, Type::f32), operand.where());
  mlir::Type to = state.lower(type);
  bool toFloat = is_float(type);
  mlir::Value result;
  if (o.isFloat() && toFloat)
    result = to == o.lhs.getType() ? o.lhs : castFloat(o, to, size_bits(type));
  else if (!o.isFloat() && !toFloat)
    result = castInteger(o, to, size_bits(type));
  else if (toFloat && o.isSigned())
    result = arith::SIToFPOp::create(o.builder, o.loc, to, o.lhs);
  else if (toFloat)
    result = arith::UIToFPOp::create(o.builder, o.loc, to, o.lhs);
  else if (is_signed_integer(type))
    result = arith::FPToSIOp::create(o.builder, o.loc, to, o.lhs);
  else
    result = arith::FPToUIOp::create(o.builder, o.loc, to, o.lhs);
  return state.wrap(result, type);
}

Value select(At condition, At onTrue, At onFalse) {
  auto &state = KernelBuilder::State::current(condition.where());
  // Whichever arm is a Value decides the type of the other.
  bool trueIsValue = std::holds_alternative<Value>(onTrue.operand());
  bool falseIsValue = std::holds_alternative<Value>(onFalse.operand());
  Type type = trueIsValue                        ? value_of(onTrue).type()
              : falseIsValue                     ? value_of(onFalse).type()
              : defaultType(onTrue) == Type::f32 ? Type::f32
                                                 : defaultType(onFalse);
  Value lhs = state.resolve(onTrue, type);
  Operands o = prepare(lhs, onFalse, "select");
  mlir::Value test = state.use(condition, Type::i1);
  return o.wrap(arith::SelectOp::create(o.builder, o.loc, test, o.lhs, o.rhs));
}

Value min(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "min");
  if (o.isFloat())
    return o.wrap(mlir::LLVM::MinNumOp::create(o.builder, o.loc, o.lhs, o.rhs));
  if (o.isSigned())
    return o.wrap(arith::MinSIOp::create(o.builder, o.loc, o.lhs, o.rhs));
  return o.wrap(arith::MinUIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value max(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "max");
  if (o.isFloat())
    return o.wrap(mlir::LLVM::MaxNumOp::create(o.builder, o.loc, o.lhs, o.rhs));
  if (o.isSigned())
    return o.wrap(arith::MaxSIOp::create(o.builder, o.loc, o.lhs, o.rhs));
  return o.wrap(arith::MaxUIOp::create(o.builder, o.loc, o.lhs, o.rhs));
}

Value ceil_div(const Value &lhs, At rhs) {
  Operands o = prepare(lhs, rhs, "ceil_div");
  refuse(o, o.isFloat(), "ceil_div", rhs);
  Value divisor = o.wrap(o.rhs);
  return (lhs + (divisor - At(1, rhs.where()))) / At(divisor, rhs.where());
}

// Variables: an alloca of the entry block that LLVM turns into registers.

Var::Var(Type type, At initial) : type_(type) {
  auto &state = KernelBuilder::State::current(initial.where());
  mlir::Value value = state.use(initial, type);
  kernel_ = state.token;
  slot_ = state.slot(state.lower(type), initial.where()).getAsOpaquePointer();
  mlir::LLVM::StoreOp::create(state.builder, state.at(initial.where()), value,
                              mlir::Value::getFromOpaquePointer(slot_));
}

Var::Var(At initial) : Var(value_of(initial).type(), initial) {}

/// The variable's memory, if it is of the kernel under construction.
static mlir::Value slotOf(void *slot, const void *kernel,
                          KernelBuilder::State &state, const Where &where) {
  if (kernel != state.token)
    userErrorAt(where, "this Var belongs to another kernel than {}",
                state.name);
  return mlir::Value::getFromOpaquePointer(slot);
}

Var::operator Value() const {
  Where where = Where::current();
  auto &state = KernelBuilder::State::current(where);
  mlir::Value slot = slotOf(slot_, kernel_, state, where);
  // Reads have no line of their own: they vanish into the operation that uses
  // them.
  mlir::Value value = mlir::LLVM::LoadOp::create(state.builder, slot.getLoc(),
                                                 state.lower(type_), slot);
  return state.wrap(value, type_);
}

Var &Var::operator=(At value) {
  auto &state = KernelBuilder::State::current(value.where());
  mlir::Value slot = slotOf(slot_, kernel_, state, value.where());
  mlir::LLVM::StoreOp::create(state.builder, state.at(value.where()),
                              state.use(value, type_), slot);
  return *this;
}

} // namespace kiln
