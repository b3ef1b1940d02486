// AlignedSum: by vectors of columns; where a float cannot hold what a vector
// needs (infinities, NaNs, results near the ends of the range), one by one.
#include "sim/units/matrix/AlignedSum.h"
#include "support/Half.h"
#include "support/HostProcessor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace kiln::sim {

/// Between these powers a float holds every addend, scaled or not.
static constexpr float kSmallestPower = 0x1p-90f, kLargestPower = 0x1p90f;
/// Products that an integer of 32 bits has room for.
static constexpr int kProductsAtOnce = 16;
/// Lines whose sums stay in registers while k runs.
static constexpr int kLines = 4;

float leastNormal(OperandType type) {
  switch (type) {
  case OperandType::e4m3:
    return 0x1p-6f;
  case OperandType::f16:
  case OperandType::e5m2:
    return 0x1p-14f;
  case OperandType::e3m2:
    return 0x1p-2f;
  case OperandType::e2m3:
  case OperandType::e2m1:
    return 1;
  default:
    return 0x1p-126f;
  }
}

SumRule groupSumRule(const ProductShape &shape) {
  SumRule rule{.isRoundedAfter = shape.typeD == AccumulatorType::f16,
               .leastX = leastNormal(shape.typeA),
               .leastY = leastNormal(shape.typeB)};
  if (bytesOf(shape.typeA) == 1) {
    rule.fractionBits = 13;
    rule.keptBits = 13;
  }
  return rule;
}

std::uint16_t roundToHalf(float sum) {
  std::uint16_t half = floatToHalf(sum);
  return half == 0x8000 ? 0 : half;
}

/// The power of two of a number; a subnormal one has that of the smallest
/// normal number, and 0 has none.
static float powerOf(float value, float least) {
  float power =
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7f800000u);
  return value == 0 ? 0 : std::max(power, least);
}

namespace {
/// A sum one by one. Its addends are whole numbers of 2^(power - 46), where
/// power is their own.
struct PlainSum {
  const SumRule &rule;
  int power = INT32_MIN;
  bool hasPlus = false, hasMinus = false, isNan = false; ///< infinities
  std::int64_t sum = 0;

  void noteInfinity(bool isNegative) {
    (isNegative ? hasMinus : hasPlus) = true;
  }
  void add(std::int64_t significand, int itsPower) {
    int shift = 46 - rule.fractionBits + power - itsPower;
    std::int64_t kept = shift < 63 ? std::abs(significand) >> shift : 0;
    sum += significand < 0 ? -kept : kept;
  }
  float result() const;
};
} // namespace

float PlainSum::result() const {
  if (isNan || (hasPlus && hasMinus))
    return std::bit_cast<float>(0x7fffffffu);
  if (hasPlus || hasMinus)
    return hasPlus ? INFINITY : -INFINITY;
  double value =
      std::ldexp(static_cast<double>(sum), power - rule.fractionBits);
  if (rule.isRoundedAfter)
    return toOddFloat(value);
  if (std::fabs(value) >= 0x1p128)
    return value < 0 ? -INFINITY : INFINITY;
  auto nearest = static_cast<float>(value);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value))
    nearest = std::nextafter(nearest, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) &
                              ~0u << (23 - rule.keptBits));
}

/// A number as a whole number of 2^(power - 23).
static std::int64_t significandOf(float value, float power) {
  return static_cast<std::int64_t>(
      std::ldexp(static_cast<double>(value), 23 - std::ilogb(power)));
}

static float addPlainly(const SumRule &rule, const SumFactors &factors,
                        int line, int column, float sum) {
  PlainSum plain{rule};
  const float *x = factors.x + line * factors.lineStep;
  const float *y = factors.y + column;
  for (int inner = 0; inner < factors.k; ++inner) {
    float a = x[inner * factors.step], b = y[inner * factors.pitch];
    float product = a * b;
    if (factors.isAbsent && factors.isAbsent[line * factors.k + inner])
      continue;
    if (std::isfinite(a) && std::isfinite(b)) {
      if (a != 0 && b != 0)
        plain.power =
            std::max(plain.power, std::ilogb(powerOf(a, rule.leastX)) +
                                      std::ilogb(powerOf(b, rule.leastY)));
    } else if (std::isnan(product))
      plain.isNan = true;
    else
      plain.noteInfinity(product < 0);
  }
  float powerC =
      powerOf(sum, leastNormal(rule.isRoundedAfter ? OperandType::f16
                                                   : OperandType::bf16));
  if (std::isnan(sum))
    plain.isNan = true;
  else if (std::isinf(sum))
    plain.noteInfinity(sum < 0);
  else if (sum != 0)
    plain.power = std::max(plain.power, std::ilogb(powerC));
  if (plain.isNan || plain.hasPlus || plain.hasMinus)
    return plain.result();
  if (plain.power == INT32_MIN)
    return 0;
  for (int inner = 0; inner < factors.k; ++inner) {
    float a = x[inner * factors.step], b = y[inner * factors.pitch];
    if (a == 0 || b == 0)
      continue;
    float powerA = powerOf(a, rule.leastX), powerB = powerOf(b, rule.leastY);
    plain.add(significandOf(a, powerA) * significandOf(b, powerB),
              std::ilogb(powerA) + std::ilogb(powerB));
  }
  if (sum != 0)
    plain.add(significandOf(sum, powerC) << 23, std::ilogb(powerC));
  return plain.result();
}

namespace {
/// So many columns next to each other.
template <int Columns> struct Lanes {
  using Floats __attribute__((vector_size(4 * Columns))) = float;
  using Integers __attribute__((vector_size(4 * Columns))) = std::int32_t;
  using Half __attribute__((vector_size(2 * Columns))) = std::int32_t;
  using HalfFloats __attribute__((vector_size(2 * Columns))) = float;
  using Doubles __attribute__((vector_size(4 * Columns))) = double;
  using Bits __attribute__((vector_size(4 * Columns))) = std::int64_t;
};

/// The powers of all factors, as addAligned's are laid out: [line][k] and
/// [k][columns].
struct Powers {
  std::vector<float> x, y;
  /// The product of two may be less than a float holds, and look like none.
  std::int32_t canVanish = 0;
};
} // namespace

// Vectors come and go by reference: to return one is another call on processors
// that have none so wide. A cast between them keeps the bits.
template <typename To>
[[gnu::always_inline]] static inline void load(const float *from, To &to) {
  std::memcpy(&to, from, sizeof(to));
}

/// Half of the columns of a sum: add up, cut off, and put the point back.
template <int Columns>
[[gnu::always_inline]] static inline void
finishHalf(const SumRule &rule, int half,
           const typename Lanes<Columns>::Integers *parts, int count,
           const typename Lanes<Columns>::Floats &inverse, float *out) {
  using L = Lanes<Columns>;
  typename L::Doubles total = {};
  for (int i = 0; i < count; ++i) {
    typename L::Half part;
    std::memcpy(&part,
                reinterpret_cast<const char *>(&parts[i]) + half * sizeof(part),
                sizeof(part));
    total += __builtin_convertvector(part, typename L::Doubles);
  }
  auto bits = (typename L::Bits)total;
  std::int64_t lost = (std::int64_t(1) << (52 - rule.keptBits)) - 1;
  typename L::Bits kept = bits & ~lost;
  if (rule.isRoundedAfter) {
    lost = (std::int64_t(1) << 29) - 1;
    kept = (bits & ~lost) | (((bits & lost) != 0) & (lost + 1));
  }
  auto cut = (typename L::Doubles)kept;
  typename L::HalfFloats result =
      __builtin_convertvector(cut, typename L::HalfFloats);
  typename L::HalfFloats scale;
  std::memcpy(&scale,
              reinterpret_cast<const char *>(&inverse) + half * sizeof(scale),
              sizeof(scale));
  result *= scale;
  std::memcpy(out + half * Columns / 2, &result, sizeof(result));
}

/// Some lines of so many columns.
template <int Columns, int Lines>
[[gnu::always_inline]] static inline void
addColumns(const SumRule &rule, const SumFactors &factors, const Powers &powers,
           int line, int column, float *sums, int pitch) {
  using L = Lanes<Columns>;
  const float leastHalf = leastNormal(OperandType::f16);
  typename L::Floats largest[Lines], before[Lines];
  for (int i = 0; i < Lines; ++i) {
    load(sums + (line + i) * pitch + column, before[i]);
    typename L::Integers bits = (typename L::Integers)before[i] & 0x7f800000;
    largest[i] = (typename L::Floats)bits;
    if (rule.isRoundedAfter) { // subnormal sums are numbers like any other
      typename L::Floats least = typename L::Floats{} + leastHalf;
      least = before[i] == 0 ? typename L::Floats{} : least;
      largest[i] = largest[i] > least ? largest[i] : least;
    }
  }
  for (int inner = 0; inner < factors.k; ++inner) {
    typename L::Floats y;
    load(powers.y.data() + inner * factors.columns + column, y);
    for (int i = 0; i < Lines; ++i) {
      typename L::Floats power = powers.x[(line + i) * factors.k + inner] * y;
      largest[i] = power > largest[i] ? power : largest[i];
    }
  }
  typename L::Integers parts[Lines][9]; // 128 products, and what was there
  typename L::Floats scale[Lines], inverse[Lines];
  typename L::Integers hard = {};
  for (int i = 0; i < Lines; ++i) {
    typename L::Integers isNone =
        (largest[i] == 0) & (before[i] == 0) & (powers.canVanish - 1);
    hard |= (largest[i] > kLargestPower) |
            ((largest[i] < kSmallestPower) & ~isNone);
    typename L::Floats smallest = typename L::Floats{} + kSmallestPower;
    typename L::Floats power = largest[i] > smallest ? largest[i] : smallest;
    auto bits = (typename L::Integers)power;
    typename L::Integers up = ((rule.fractionBits + 254) << 23) - bits;
    typename L::Integers down = bits - (rule.fractionBits << 23);
    scale[i] = (typename L::Floats)up;
    inverse[i] = (typename L::Floats)down;
    parts[i][0] =
        __builtin_convertvector(before[i] * scale[i], typename L::Integers);
  }
  int count = 1;
  for (int first = 0; first < factors.k; first += kProductsAtOnce, ++count) {
    typename L::Integers part[Lines] = {};
    int end = std::min(first + kProductsAtOnce, factors.k);
    for (int inner = first; inner < end; ++inner) {
      typename L::Floats y;
      load(factors.y + inner * factors.pitch + column, y);
      for (int i = 0; i < Lines; ++i) {
        float x =
            factors.x[(line + i) * factors.lineStep + inner * factors.step];
        part[i] +=
            __builtin_convertvector(x * y * scale[i], typename L::Integers);
      }
    }
    for (int i = 0; i < Lines; ++i)
      parts[i][count] = part[i];
  }
  std::int32_t isHard = 0;
  for (int i = 0; i < Columns; ++i)
    isHard |= hard[i];
  for (int i = 0; i < Lines; ++i) {
    float *out = sums + (line + i) * pitch + column;
    finishHalf<Columns>(rule, 0, parts[i], count, inverse[i], out);
    finishHalf<Columns>(rule, 1, parts[i], count, inverse[i], out);
    for (int lane = 0; lane < Columns && isHard; ++lane)
      if (hard[lane]) {
        float sum =
            addPlainly(rule, factors, line + i, column + lane, before[i][lane]);
        std::memcpy(out + lane, &sum, sizeof(sum));
      }
  }
}

namespace {
/// Of powers, as bits; 0 is none.
struct Range {
  std::int32_t smallest = INT32_MAX, largest = 0;
  int exponent() const { return smallest >> 23; } ///< the least, biased
};
} // namespace

/// powerOf of so many numbers `step` apart, in whole numbers, for that is what
/// a compiler makes vectors of.
[[gnu::always_inline]] static inline void powersOf(const float *from, int step,
                                                   int count, float least,
                                                   float *to, Range &range) {
  auto leastBits = std::bit_cast<std::int32_t>(least);
  for (int i = 0; i < count; ++i) {
    auto bits = std::bit_cast<std::int32_t>(from[i * step]) & 0x7fffffff;
    std::int32_t power = std::max(bits & 0x7f800000, leastBits);
    std::int32_t small = bits == 0 ? INT32_MAX : power;
    power = bits == 0 ? 0 : power;
    range.smallest = std::min(range.smallest, small);
    range.largest = std::max(range.largest, power);
    to[i] = std::bit_cast<float>(power);
  }
}

/// False where an infinity or a NaN is among the factors.
[[gnu::always_inline]] static inline bool
findPowers(const SumRule &rule, const SumFactors &factors, Powers &powers) {
  powers.x.resize(static_cast<std::size_t>(factors.lines * factors.k));
  powers.y.resize(static_cast<std::size_t>(factors.columns * factors.k));
  Range x, y;
  for (int line = 0; line < factors.lines; ++line)
    powersOf(factors.x + line * factors.lineStep, factors.step, factors.k,
             rule.leastX, powers.x.data() + line * factors.k, x);
  for (int inner = 0; inner < factors.k; ++inner)
    powersOf(factors.y + inner * factors.pitch, 1, factors.columns, rule.leastY,
             powers.y.data() + inner * factors.columns, y);
  powers.canVanish = x.exponent() + y.exponent() - 2 * 127 < -149;
  return std::max(x.largest, y.largest) < 0x7f800000;
}

template <int Columns>
[[gnu::always_inline]] static inline void
addLines(const SumRule &rule, const SumFactors &factors, const Powers &powers,
         int column, float *sums, int pitch) {
  int line = 0;
  for (; line + kLines <= factors.lines; line += kLines)
    addColumns<Columns, kLines>(rule, factors, powers, line, column, sums,
                                pitch);
  for (; line < factors.lines; ++line)
    addColumns<Columns, 1>(rule, factors, powers, line, column, sums, pitch);
}

KILN_WIDEST_VECTORS void addAligned(const SumRule &rule,
                                    const SumFactors &factors, float *sums,
                                    int pitch) {
  static thread_local Powers powers;
  if (!findPowers(rule, factors, powers)) {
    for (int line = 0; line < factors.lines; ++line)
      for (int column = 0; column < factors.columns; ++column) {
        float &sum = sums[line * pitch + column];
        sum = addPlainly(rule, factors, line, column, sum);
      }
    return;
  }
  int column = 0;
  for (; column + 16 <= factors.columns; column += 16)
    addLines<16>(rule, factors, powers, column, sums, pitch);
  if (column < factors.columns)
    addLines<8>(rule, factors, powers, column, sums, pitch);
}

} // namespace kiln::sim
