// Math: functions of one instruction.
//
// MLIR's math dialect becomes calls of CUDA's libdevice, which Kiln does not
// link; what LLVM's NVPTX back end has an intrinsic for is one, and the
// special-function unit is reached by its instructions' own text.
#include "kiln/language/value/math.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include <optional>

namespace kiln {

namespace {
/// The operand of a function, checked to be a number.
struct Operand {
  KernelBuilder::State &state;
  Type type;
  mlir::Value value;
  Where where;

  Operand(const At &x, Type fallback, const char *what)
      : state(KernelBuilder::State::current(x.where())), where(x.where()) {
    Value resolved = state.resolve(x, fallback);
    type = resolved.type();
    value = state.use(resolved, where);
    checkArithmetic(resolved, value, what, where);
  }
  mlir::Location loc() const { return state.at(where); }
  Value wrap(mlir::Value result) const { return state.wrap(result, type); }
};
} // namespace

/// The operand of a function of f32 alone.
static Operand f32Operand(const At &x, const char *what) {
  Operand o(x, Type::f32, what);
  if (o.type != Type::f32)
    userErrorAt(o.where,
                "{} is a function of f32, not of {}; `cast` to f32 "
                "and back",
                what, name(o.type));
  return o;
}

/// ".ftz" where the call or else the kernel asks for it.
static const char *ftzOf(const Operand &o, const MathOptions &options) {
  return options.ftz.value_or(o.state.options.ftz) ? ".ftz" : "";
}

/// `NAME.approx.f32`
static Value specialFunction(const At &x, const char *what, const char *name,
                             const MathOptions &options) {
  Operand o = f32Operand(x, what);
  return o.wrap(o.state.pureAsm(
      fmt::format("{}.approx{}.f32 $0, $1;", name, ftzOf(o, options)), "=f,f",
      {o.value}, o.state.lower(Type::f32), o.where));
}

Value sqrt(At x, const MathOptions &options) {
  return specialFunction(x, "sqrt", "sqrt", options);
}
Value rsqrt(At x, const MathOptions &options) {
  return specialFunction(x, "rsqrt", "rsqrt", options);
}
Value rcp(At x, const MathOptions &options) {
  return specialFunction(x, "rcp", "rcp", options);
}
Value exp2(At x, const MathOptions &options) {
  return specialFunction(x, "exp2", "ex2", options);
}
Value log2(At x, const MathOptions &options) {
  return specialFunction(x, "log2", "lg2", options);
}
Value sin(At x, const MathOptions &options) {
  return specialFunction(x, "sin", "sin", options);
}
Value cos(At x, const MathOptions &options) {
  return specialFunction(x, "cos", "cos", options);
}
Value tanh(At x) {
  // There is no .ftz of it.
  return specialFunction(x, "tanh", "tanh", {.ftz = false});
}

Value fast_divide(const Value &a, At b, const MathOptions &options) {
  Operand o = f32Operand(At(a, b.where()), "fast_divide");
  return o.wrap(o.state.pureAsm(
      fmt::format("div.approx{}.f32 $0, $1, $2;", ftzOf(o, options)), "=f,f,f",
      {o.value, o.state.use(b, Type::f32)}, o.state.lower(Type::f32), o.where));
}

Value abs(At x) {
  Operand o(x, Type::f32, "abs");
  if (is_signed_integer(o.type))
    return o.wrap(mlir::LLVM::AbsOp::create(o.state.builder, o.loc(),
                                            o.value.getType(), o.value,
                                            /*is_int_min_poison=*/false));
  if (!is_float(o.type))
    userErrorAt(o.where, "{} has no sign; abs takes floats and signed integers",
                name(o.type));
  // By its name: the operation llvm.intr.fabs is turned into a libdevice call.
  const char *suffix = o.type == Type::f16    ? "f16"
                       : o.type == Type::bf16 ? "bf16"
                       : o.type == Type::f64  ? "f64"
                                              : "f32";
  auto call = mlir::LLVM::CallIntrinsicOp::create(
      o.state.builder, o.loc(), o.value.getType(),
      o.state.builder.getStringAttr(fmt::format("llvm.fabs.{}", suffix)),
      mlir::ValueRange(o.value));
  return o.wrap(call->getResult(0));
}

Value fma(const Value &a, At b, At c) {
  Operand o(At(a, b.where()), Type::f32, "fma");
  if (!is_float(o.type) || o.type == Type::tf32)
    userErrorAt(o.where,
                "fma takes f16, bf16, f32 and f64, not {}; write "
                "a * b + c",
                name(o.type));
  return o.wrap(mlir::LLVM::FMAOp::create(o.state.builder, o.loc(), o.value,
                                          o.state.use(b, o.type),
                                          o.state.use(c, o.type)));
}

/// An operand whose bits are counted: an integer.
static Operand bitsOf(const At &x, const char *what) {
  Operand o(x, Type::i32, what);
  if (is_float(o.type) || o.type == Type::i1)
    userErrorAt(o.where,
                "{} looks at the bits of an integer, not of {}; "
                "`bitcast` reads them as one",
                what, name(o.type));
  return o;
}

Value popcount(At x) {
  Operand o = bitsOf(x, "popcount");
  return o.wrap(mlir::LLVM::CtPopOp::create(o.state.builder, o.loc(), o.value));
}

Value count_leading_zeros(At x) {
  Operand o = bitsOf(x, "count_leading_zeros");
  return o.wrap(mlir::LLVM::CountLeadingZerosOp::create(
      o.state.builder, o.loc(), o.value.getType(), o.value,
      /*is_zero_poison=*/false));
}

Value reverse_bits(At x) {
  Operand o = bitsOf(x, "reverse_bits");
  mlir::OpBuilder &builder = o.state.builder;
  int bits = size_bits(o.type);
  if (bits >= 32)
    return o.wrap(mlir::LLVM::BitReverseOp::create(builder, o.loc(), o.value));
  // LLVM would swap the bits of narrow integers step by step.
  mlir::Value word = mlir::arith::ExtUIOp::create(
      builder, o.loc(), builder.getI32Type(), o.value);
  word = mlir::LLVM::BitReverseOp::create(builder, o.loc(), word);
  mlir::Value shift = o.state.constant(Type::i32, 32 - bits, o.where);
  word = mlir::arith::ShRUIOp::create(builder, o.loc(), word, shift);
  return o.wrap(
      mlir::arith::TruncIOp::create(builder, o.loc(), o.value.getType(), word));
}

Value bitcast(At x, Type type) {
  auto &state = KernelBuilder::State::current(x.where());
  Value value = value_of(x);
  mlir::Value bits = state.use(value, x.where());
  if (mlir::isa<mlir::LLVM::LLVMPointerType>(bits.getType()))
    userErrorAt(x.where(), "bitcast was applied to an address; inline_ptx "
                           "takes addresses as they are");
  if (size_bits(value.type()) != size_bits(type))
    userErrorAt(x.where(),
                "bitcast from {} to {}: one has {} bits, the other "
                "{}; `cast` converts between sizes",
                name(value.type()), name(type), size_bits(value.type()),
                size_bits(type));
  mlir::Type to = state.lower(type);
  if (to == bits.getType())
    return state.wrap(bits, type);
  return state.wrap(mlir::LLVM::BitcastOp::create(
                        state.builder, state.at(x.where()), to, bits),
                    type);
}

// Conversions with a rounding: cvt.ROUNDING.TO.FROM.

namespace {
/// A type as cvt names it, and the register it lies in.
struct CvtType {
  const char *ptx;
  char constraint;
};
} // namespace

static std::optional<CvtType> cvtType(Type type) {
  switch (type) {
  case Type::i32:
    return CvtType{"s32", 'r'};
  case Type::u32:
    return CvtType{"u32", 'r'};
  case Type::i64:
    return CvtType{"s64", 'l'};
  case Type::u64:
  case Type::index:
    return CvtType{"u64", 'l'};
  case Type::f16:
    return CvtType{"f16", 'h'};
  case Type::bf16:
    return CvtType{"bf16", 'h'};
  case Type::tf32:
    return CvtType{"tf32", 'r'};
  case Type::f32:
    return CvtType{"f32", 'f'};
  case Type::f64:
    return CvtType{"f64", 'd'};
  default:
    return std::nullopt;
  }
}

/// Whether one cvt rounds from `from` to `to` in that way.
static bool canRound(Type from, Type to, Rounding rounding) {
  if (!cvtType(from) || !cvtType(to))
    return false;
  if (rounding == Rounding::nearest_away)
    return from == Type::f32 && to == Type::tf32;
  auto isWide = [](Type type) {
    return type == Type::f32 || type == Type::f64;
  };
  if (isWide(from) && !is_float(to))
    return true;
  if (!is_float(from))
    return isWide(to);
  if (from == Type::f64)
    return to == Type::f32;
  if (from != Type::f32)
    return false;
  bool isTowardInfinity =
      rounding == Rounding::down || rounding == Rounding::up;
  return to == Type::f16 || to == Type::bf16 ||
         (to == Type::tf32 && !isTowardInfinity);
}

Value cast(At operand, Type type, Rounding rounding) {
  static constexpr const char *kModifiers[] = {"rn", "rz", "rm", "rp", "rna"};
  static constexpr const char *kWords[] = {"to nearest even", "toward zero",
                                           "down", "up",
                                           "to nearest away from zero"};
  auto &state = KernelBuilder::State::current(operand.where());
  Value value = value_of(operand);
  mlir::Value from = state.use(value, operand.where());
  checkArithmetic(value, from, "cast", operand.where());
  auto mode = static_cast<int>(rounding);
  if (!canRound(value.type(), type, rounding))
    userErrorAt(
        operand.where(),
        "there is no cast from {} to {} that rounds {}; roundings are "
        "for f32 and f64 to and from integers of 32 and 64 bits, f64 "
        "to f32, f32 to f16 and bf16, and f32 to tf32 (to nearest even, "
        "toward zero, or to nearest away from zero)",
        name(value.type()), name(type), kWords[mode]);
  CvtType source = *cvtType(value.type()), target = *cvtType(type);
  mlir::Type to = state.lower(type);
  // Halves lie in registers of 16 bits, tf32 in one of 32, whatever they mean.
  mlir::Type inRegister =
      is_float(type) && target.constraint != 'f' && target.constraint != 'd'
          ? mlir::Type(state.builder.getIntegerType(
                target.constraint == 'h' ? 16 : 32))
          : to;
  mlir::Value result = state.pureAsm(
      fmt::format("cvt.{}{}.{}.{} $0, $1;", kModifiers[mode],
                  is_float(type) ? "" : "i", target.ptx, source.ptx),
      fmt::format("={},{}", target.constraint, source.constraint), {from},
      inRegister, operand.where());
  if (inRegister != to)
    result = mlir::LLVM::BitcastOp::create(
        state.builder, state.at(operand.where()), to, result);
  return state.wrap(result, type);
}

} // namespace kiln
