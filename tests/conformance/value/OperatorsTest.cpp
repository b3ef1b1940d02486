// Operators: arithmetic, comparison and conversion against the host's own.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <cmath>
#include <optional>

using namespace conformance;

class Operators : public OnDevice {};
INSTANTIATE_ON_DEVICES(Operators);

static constexpr int kThreads = 128;

namespace {
template <typename T> constexpr Type type_of = Type::i32;
template <> constexpr Type type_of<std::int8_t> = Type::i8;
template <> constexpr Type type_of<std::int16_t> = Type::i16;
template <> constexpr Type type_of<std::int64_t> = Type::i64;
template <> constexpr Type type_of<std::uint8_t> = Type::u8;
template <> constexpr Type type_of<std::uint16_t> = Type::u16;
template <> constexpr Type type_of<std::uint32_t> = Type::u32;
template <> constexpr Type type_of<std::uint64_t> = Type::u64;
template <> constexpr Type type_of<float> = Type::f32;
template <> constexpr Type type_of<double> = Type::f64;

/// One operation, as a kernel and as the host does it.
template <typename T> struct Operation {
  const char *name;
  Value (*in_kernel)(const Value &, const Value &);
  T (*on_host)(T, T);
};

/// The low bits of a product. Two u16 would be promoted to int and overflow it.
template <typename T> T times(T a, T b) {
  if constexpr (std::is_unsigned_v<T>)
    return T(1u * a * b);
  else
    return T(a * b);
}

/// What every number type has.
template <typename T> std::vector<Operation<T>> shared_operations() {
  using V = const Value &;
  return {
      {"+", [](V a, V b) { return a + b; }, [](T a, T b) { return T(a + b); }},
      {"-", [](V a, V b) { return a - b; }, [](T a, T b) { return T(a - b); }},
      {"*", [](V a, V b) { return a * b; },
       [](T a, T b) { return times(a, b); }},
      {"/", [](V a, V b) { return a / b; }, [](T a, T b) { return T(a / b); }},
      {"negation", [](V a, V b) { return -a; }, [](T a, T b) { return T(-a); }},
      {"min", [](V a, V b) { return min(a, b); },
       [](T a, T b) { return std::min(a, b); }},
      {"max", [](V a, V b) { return max(a, b); },
       [](T a, T b) { return std::max(a, b); }},
      {"literal on the left", [](V a, V b) { return 7 - a; },
       [](T a, T b) { return T(7 - a); }},
      {"<", [](V a, V b) { return select(a < b, 1, literal_like(0, a)); },
       [](T a, T b) { return T(a < b); }},
      {"<=", [](V a, V b) { return select(a <= b, 1, literal_like(0, a)); },
       [](T a, T b) { return T(a <= b); }},
      {">", [](V a, V b) { return select(a > b, 1, literal_like(0, a)); },
       [](T a, T b) { return T(a > b); }},
      {">=", [](V a, V b) { return select(a >= b, 1, literal_like(0, a)); },
       [](T a, T b) { return T(a >= b); }},
      {"==", [](V a, V b) { return select(a == b, a, literal_like(9, a)); },
       [](T a, T b) { return a == b ? a : T(9); }},
      {"!=", [](V a, V b) { return select(a != b, a, literal_like(9, a)); },
       [](T a, T b) { return a != b ? a : T(9); }},
      {"logic",
       [](V a, V b) { return select((a < b && !(a == 0)) || b == 1, a, b); },
       [](T a, T b) { return (a < b && !(a == 0)) || b == 1 ? a : b; }},
  };
}

template <typename T> std::vector<Operation<T>> operations_of() {
  auto list = shared_operations<T>();
  if constexpr (std::is_integral_v<T>) {
    using V = const Value &;
    std::vector<Operation<T>> integers = {
        {"%", [](V a, V b) { return a % b; },
         [](T a, T b) { return T(a % b); }},
        {"&", [](V a, V b) { return a & b; },
         [](T a, T b) { return T(a & b); }},
        {"|", [](V a, V b) { return a | b; },
         [](T a, T b) { return T(a | b); }},
        {"^", [](V a, V b) { return a ^ b; },
         [](T a, T b) { return T(a ^ b); }},
        {"<<", [](V a, V b) { return a << (b & 7); },
         [](T a, T b) { return T(std::make_unsigned_t<T>(a) << (b & 7)); }},
        {">>", [](V a, V b) { return a >> (b & 7); },
         [](T a, T b) { return T(a >> (b & 7)); }},
    };
    list.insert(list.end(), integers.begin(), integers.end());
  }
  return list;
}

/// Numbers whose products stay in range; integers reach the ends where the
/// type wraps by the rules of C++ (the unsigned ones).
template <typename T> std::vector<T> numbers(unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> result(kThreads);
  for (T &number : result) {
    if constexpr (std::is_floating_point_v<T>)
      number = std::uniform_real_distribution<T>(-100, 100)(random);
    else if constexpr (std::is_unsigned_v<T>)
      number = static_cast<T>(random());
    else
      number = static_cast<T>(std::uniform_int_distribution<int>(
          sizeof(T) == 1 ? -11 : -181, sizeof(T) == 1 ? 11 : 181)(random));
  }
  return result;
}

template <typename T> Kernel build_operators() {
  auto operations = operations_of<T>();
  KernelBuilder kb("operators", {.threads = kThreads});
  Tensor a = kb.tensor("a", type_of<T>, {kThreads});
  Tensor b = kb.tensor("b", type_of<T>, {kThreads});
  Tensor out = kb.tensor("out", type_of<T>,
                         {static_cast<int>(operations.size()), kThreads});
  Value i = thread_id(), x = a(i), y = b(i);
  for (std::size_t k = 0; k < operations.size(); ++k)
    out(static_cast<int>(k), i) = operations[k].in_kernel(x, y);
  return compile_checked(kb.module());
}

template <typename T>
void expect_operators(Device &device, const Kernel &kernel) {
  auto operations = operations_of<T>();
  for (unsigned seed : {1u, 2u}) {
    std::vector<T> a = numbers<T>(seed), b = numbers<T>(seed + 10);
    for (T &divisor : b)
      if (divisor == 0)
        divisor = 1;
    a[0] = b[0]; // equal somewhere
    std::vector<T> out(operations.size() * kThreads);
    run(device, kernel, a, b, out);
    for (std::size_t k = 0; k < operations.size(); ++k)
      for (int i = 0; i < kThreads; ++i)
        ASSERT_EQ(out[k * kThreads + i], operations[k].on_host(a[i], b[i]))
            << name(type_of<T>) << " " << operations[k].name << " of " << +a[i]
            << " and " << +b[i];
  }
}
} // namespace

#define OPERATOR_CASE(Name, T)                                                 \
  TEST_P(Operators, Name) {                                                    \
    Kernel kernel = build_operators<T>();                                      \
    OPEN_OR_SKIP(device);                                                      \
    expect_operators<T>(device, kernel);                                       \
  }
OPERATOR_CASE(I8, std::int8_t)
OPERATOR_CASE(I16, std::int16_t)
OPERATOR_CASE(I32, std::int32_t)
OPERATOR_CASE(I64, std::int64_t)
OPERATOR_CASE(U8, std::uint8_t)
OPERATOR_CASE(U16, std::uint16_t)
OPERATOR_CASE(U32, std::uint32_t)
OPERATOR_CASE(U64, std::uint64_t)
OPERATOR_CASE(F32, float)
OPERATOR_CASE(F64, double)
#undef OPERATOR_CASE

TEST_P(Operators, HalfTypesRoundOnce) {
  for (Type type : {f16, bf16}) {
    KernelBuilder kb("halves", {.threads = kThreads});
    Tensor a = kb.tensor("a", type, {kThreads});
    Tensor b = kb.tensor("b", type, {kThreads});
    Tensor out = kb.tensor("out", type, {5, kThreads});
    Value i = thread_id(), x = a(i), y = b(i);
    out(0, i) = x + y;
    out(1, i) = x * y;
    out(2, i) = x - y;
    out(3, i) = max(x, y);
    out(4, i) = -x;
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    auto a_bytes = random_elements(type, kThreads, 1);
    auto b_bytes = random_elements(type, kThreads, 2);
    auto out_bytes = poisoned(type, 5 * kThreads);
    run(*device, kernel, a_bytes, b_bytes, out_bytes);
    auto as = values(type, a_bytes), bs = values(type, b_bytes);
    std::vector<double> expected;
    for (int k = 0; k < 5; ++k)
      for (int i = 0; i < kThreads; ++i) {
        double p = as[i], q = bs[i];
        double all[] = {p + q, p * q, p - q, std::max(p, q), -p};
        expected.push_back(all[k]);
      }
    EXPECT_EQ(out_bytes, elements(type, expected)) << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

static constexpr Type kNumberTypes[] = {
    i8, i16, i32, i64, u8, u16, u32, u64, Type::index, f16, bf16, f32, f64};

/// What a cast gives; nothing where C++ leaves it open.
static std::optional<double> cast_on_host(double value, Type from, Type to) {
  if (is_float(to)) {
    if (to == Type::f16 && std::abs(value) > 65504)
      return std::nullopt;
    return from_bits(to, to_bits(to, value));
  }
  double whole = std::trunc(value);
  if (is_float(from) && (is_unsigned_integer(to) && whole < 0))
    return std::nullopt;
  // Integers wrap to the bits that are kept.
  std::uint64_t bits =
      whole < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(whole))
                : static_cast<std::uint64_t>(whole);
  int width = size_bits(to);
  if (width < 64)
    bits &= (std::uint64_t{1} << width) - 1;
  return from_bits(to, bits);
}

TEST_P(Operators, CastsBetweenAllNumberTypes) {
  for (Type from : kNumberTypes) {
    KernelBuilder kb("casts", {.threads = 32});
    Tensor in = kb.tensor("from", from, {32});
    std::vector<Tensor> outs;
    for (Type to : kNumberTypes)
      outs.push_back(kb.tensor(std::string(name(to)), to, {32}));
    Value i = thread_id(), x = in(i);
    for (const Tensor &out : outs)
      out(i) = cast(x, out.type());
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;

    std::vector<double> numbers(32);
    for (int k = 0; k < 32; ++k)
      numbers[k] = is_float(from) ? k * 3.25 : k * 4;
    for (int k = 1; k < 32 && !is_unsigned_integer(from); k += 2)
      numbers[k] = -numbers[k];
    if (from == Type::u32)
      numbers[31] = 3e9;
    if (from == Type::u64 || from == Type::index)
      numbers[31] = std::ldexp(1.0, 63) + std::ldexp(1.0, 40);
    auto in_bytes = elements(from, numbers);
    numbers = values(from, in_bytes);
    std::vector<std::vector<std::uint8_t>> results;
    for (Type to : kNumberTypes)
      results.push_back(poisoned(to, 32));
    std::vector<HostArgument> arguments = {in_bytes};
    for (auto &result : results)
      arguments.push_back(result);
    run(*device, kernel, std::span<const HostArgument>(arguments));
    for (std::size_t t = 0; t < results.size(); ++t) {
      auto found = values(kNumberTypes[t], results[t]);
      for (int k = 0; k < 32; ++k) {
        auto expected = cast_on_host(numbers[k], from, kNumberTypes[t]);
        EXPECT_EQ(found[k], expected.value_or(found[k]))
            << name(from) << " " << numbers[k] << " to "
            << name(kNumberTypes[t]);
      }
    }
  }
  SKIP_WITHOUT_DEVICE();
}
