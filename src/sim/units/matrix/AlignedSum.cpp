// AlignedSum: by vectors of columns; where a float cannot hold what a vector
// needs (infinities, NaNs, results near the ends of the range), one by one.
#include "sim/units/matrix/AlignedSum.h"
#include "sim/units/scalar/Float.h"
#include "support/Half.h"
#include "support/HostProcessor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace kiln::sim {

/// Between these powers of two a float holds every addend, scaled or not.
static constexpr std::int32_t kSmallestPower = -90, kLargestPower = 90;
/// No sum of numbers that are not 0 has less.
static constexpr std::int32_t kLeastSum = -1000;
/// The exponent of the smallest normal f16, biased as in a float.
static constexpr std::int32_t kLeastHalf = 127 - 14;
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

SumRule groupSumRule(const ProductShape &shape, bool isFast) {
  SumRule rule{.isRoundedAfter = shape.typeD == AccumulatorType::f16,
               .leastX = leastNormal(shape.typeA),
               .leastY = leastNormal(shape.typeB),
               .isInOrder = isFast && bytesOf(shape.typeA) > 1};
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
  using Shorts __attribute__((vector_size(2 * Columns))) = std::int16_t;
  using Integers __attribute__((vector_size(4 * Columns))) = std::int32_t;
  using Words __attribute__((vector_size(4 * Columns))) = std::uint32_t;
  using Half __attribute__((vector_size(2 * Columns))) = std::int32_t;
  using HalfFloats __attribute__((vector_size(2 * Columns))) = float;
  using Doubles __attribute__((vector_size(4 * Columns))) = double;
  using Bits __attribute__((vector_size(4 * Columns))) = std::int64_t;
};

/// The exponents of all factors, biased as in a float, as addAligned's are laid
/// out: [line][k] and [k][columns].
struct Exponents {
  std::vector<std::int16_t> x, y;
};
/// The exponent of 0: less than any sum of two, with another too.
constexpr std::int16_t kNone = -16000;
} // namespace

// Vectors come and go by reference: to return one is another call on processors
// that have none so wide. A cast between them keeps the bits.
template <typename To>
[[gnu::always_inline]] static inline void load(const float *from, To &to) {
  std::memcpy(&to, from, sizeof(to));
}

/// Where conversions cut off (RoundTowardZero) and an integer of 32 bits has
/// room for the sum.
template <int Columns>
[[gnu::always_inline]] static inline void
finishCut(const SumRule &rule, const typename Lanes<Columns>::Integers &total,
          const typename Lanes<Columns>::Floats &inverse, float *out) {
  using L = Lanes<Columns>;
  auto bits = (typename L::Integers)__builtin_convertvector(
      total, typename L::Floats);
  bits &= -1 << (23 - rule.keptBits);
  auto result = (typename L::Floats)bits;
  result *= inverse;
  std::memcpy(out, &result, sizeof(result));
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

/// Some lines of so many columns; `isCut`: conversions to floats cut off.
template <int Columns, int Lines>
[[gnu::always_inline]] static inline void
addColumns(const SumRule &rule, const SumFactors &factors,
           const Exponents &exponents, bool isCut, int line, int column,
           float *sums, int pitch) {
  using L = Lanes<Columns>;
  typename L::Floats before[Lines];
  // Of a product: twice the bias of a float over its own.
  typename L::Shorts largest[Lines];
  const std::int32_t least = rule.isRoundedAfter ? kLeastHalf : 0;
  for (int i = 0; i < Lines; ++i) {
    load(sums + (line + i) * pitch + column, before[i]);
    typename L::Integers exponent =
        ((typename L::Integers)before[i] & 0x7f800000) >> 23;
    // Subnormal sums of f16 are numbers like any other.
    typename L::Integers lowest = typename L::Integers{} + least;
    exponent = exponent > lowest ? exponent : lowest;
    typename L::Integers none = typename L::Integers{} + kNone;
    exponent = before[i] == 0 ? none : exponent + 127;
    largest[i] = __builtin_convertvector(exponent, typename L::Shorts);
  }
  for (int inner = 0; inner < factors.k; ++inner) {
    typename L::Shorts y;
    std::memcpy(&y, exponents.y.data() + inner * factors.columns + column,
                sizeof(y));
    for (int i = 0; i < Lines; ++i) {
      typename L::Shorts both =
          exponents.x[(line + i) * factors.k + inner] + y;
      largest[i] = both > largest[i] ? both : largest[i];
    }
  }
  typename L::Integers parts[Lines][9]; // 128 products, and what was there
  typename L::Floats scale[Lines], inverse[Lines];
  typename L::Integers hard = {};
  for (int i = 0; i < Lines; ++i) {
    auto power = __builtin_convertvector(largest[i], typename L::Integers);
    power -= 2 * 127;
    hard |= (power > kLargestPower) |
            ((power < kSmallestPower) & (power >= kLeastSum));
    typename L::Integers smallest = typename L::Integers{} + kSmallestPower;
    power = power > smallest ? power : smallest;
    typename L::Integers up = (127 + rule.fractionBits - power) << 23;
    typename L::Integers down = (127 - rule.fractionBits + power) << 23;
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
  // Products alone have room; with what was there they may not.
  typename L::Integers total[Lines];
  for (int i = 0; i < Lines && isCut; ++i) {
    total[i] = parts[i][1];
    for (int part = 2; part < count; ++part)
      total[i] += parts[i][part];
    const std::int32_t most = INT32_MAX - (2 << rule.fractionBits);
    hard |= (total[i] > most) | (total[i] < -most);
    total[i] = (typename L::Integers)((typename L::Words)total[i] +
                                      (typename L::Words)parts[i][0]);
  }
  std::int32_t isHard = 0;
  for (int i = 0; i < Columns; ++i)
    isHard |= hard[i];
  for (int i = 0; i < Lines; ++i) {
    float *out = sums + (line + i) * pitch + column;
    if (isCut) {
      finishCut<Columns>(rule, total[i], inverse[i], out);
    } else {
      finishHalf<Columns>(rule, 0, parts[i], count, inverse[i], out);
      finishHalf<Columns>(rule, 1, parts[i], count, inverse[i], out);
    }
    for (int lane = 0; lane < Columns && isHard; ++lane)
      if (hard[lane]) {
        float sum =
            addPlainly(rule, factors, line + i, column + lane, before[i][lane]);
        std::memcpy(out + lane, &sum, sizeof(sum));
      }
  }
}

/// The exponents of so many numbers `step` apart, a subnormal one's that of the
/// smallest normal number; and the largest.
[[gnu::always_inline]] static inline int exponentsOf(const float *from,
                                                     int step, int count,
                                                     float least,
                                                     std::int16_t *to) {
  std::int32_t lowest = std::bit_cast<std::int32_t>(least) >> 23, highest = 0;
  for (int i = 0; i < count; ++i) {
    auto bits = std::bit_cast<std::int32_t>(from[i * step]) & 0x7fffffff;
    std::int32_t exponent = std::max(bits >> 23, lowest);
    highest = std::max(highest, exponent);
    to[i] = static_cast<std::int16_t>(bits == 0 ? kNone : exponent);
  }
  return highest;
}

/// False where an infinity or a NaN is among the factors.
[[gnu::always_inline]] static inline bool
findExponents(const SumRule &rule, const SumFactors &factors,
              Exponents &exponents) {
  exponents.x.resize(static_cast<std::size_t>(factors.lines * factors.k));
  exponents.y.resize(static_cast<std::size_t>(factors.columns * factors.k));
  int highest = 0;
  for (int line = 0; line < factors.lines; ++line)
    highest = std::max(
        highest, exponentsOf(factors.x + line * factors.lineStep, factors.step,
                             factors.k, rule.leastX,
                             exponents.x.data() + line * factors.k));
  for (int inner = 0; inner < factors.k; ++inner)
    highest = std::max(
        highest,
        exponentsOf(factors.y + inner * factors.pitch, 1, factors.columns,
                    rule.leastY,
                    exponents.y.data() + inner * factors.columns));
  return highest < 255;
}

/// Some lines of so many columns, one product after another.
template <int Columns, int Lines>
[[gnu::always_inline]] static inline void
addColumnsInOrder(const SumFactors &factors, int line, int column, float *sums,
                  int pitch) {
  using L = Lanes<Columns>;
  typename L::Floats sum[Lines];
  for (int i = 0; i < Lines; ++i)
    load(sums + (line + i) * pitch + column, sum[i]);
  for (int inner = 0; inner < factors.k; ++inner) {
    typename L::Floats y;
    load(factors.y + inner * factors.pitch + column, y);
    for (int i = 0; i < Lines; ++i)
      sum[i] +=
          factors.x[(line + i) * factors.lineStep + inner * factors.step] * y;
  }
  for (int i = 0; i < Lines; ++i)
    std::memcpy(sums + (line + i) * pitch + column, &sum[i], sizeof(sum[i]));
}

template <int Columns>
[[gnu::always_inline]] static inline void
addLinesInOrder(const SumFactors &factors, int column, float *sums, int pitch) {
  int line = 0;
  for (; line + kLines <= factors.lines; line += kLines)
    addColumnsInOrder<Columns, kLines>(factors, line, column, sums, pitch);
  for (; line < factors.lines; ++line)
    addColumnsInOrder<Columns, 1>(factors, line, column, sums, pitch);
}

KILN_WIDEST_VECTORS static void addInOrder(const SumFactors &factors,
                                           float *sums, int pitch) {
  int column = 0;
  for (; column + 16 <= factors.columns; column += 16)
    addLinesInOrder<16>(factors, column, sums, pitch);
  if (column < factors.columns)
    addLinesInOrder<8>(factors, column, sums, pitch);
}

template <int Columns>
[[gnu::always_inline]] static inline void
addLines(const SumRule &rule, const SumFactors &factors,
         const Exponents &exponents, bool isCut, int column, float *sums,
         int pitch) {
  int line = 0;
  for (; line + kLines <= factors.lines; line += kLines)
    addColumns<Columns, kLines>(rule, factors, exponents, isCut, line, column,
                                sums, pitch);
  for (; line < factors.lines; ++line)
    addColumns<Columns, 1>(rule, factors, exponents, isCut, line, column, sums,
                           pitch);
}

KILN_WIDEST_VECTORS static void addVectors(const SumRule &rule,
                                           const SumFactors &factors,
                                           const Exponents &exponents,
                                           bool isCut, float *sums, int pitch) {
  int column = 0;
  for (; column + 16 <= factors.columns; column += 16)
    addLines<16>(rule, factors, exponents, isCut, column, sums, pitch);
  if (column < factors.columns)
    addLines<8>(rule, factors, exponents, isCut, column, sums, pitch);
}

KILN_WIDEST_VECTORS static bool
findAllExponents(const SumRule &rule, const SumFactors &factors,
                 Exponents &exponents) {
  return findExponents(rule, factors, exponents);
}

void addAligned(const SumRule &rule, const SumFactors &factors, float *sums,
                int pitch) {
  if (rule.isInOrder)
    return addInOrder(factors, sums, pitch);
  static thread_local Exponents exponents;
  if (!findAllExponents(rule, factors, exponents)) {
    for (int line = 0; line < factors.lines; ++line)
      for (int column = 0; column < factors.columns; ++column) {
        float &sum = sums[line * pitch + column];
        sum = addPlainly(rule, factors, line, column, sum);
      }
    return;
  }
  // A product is less than 2^(fractionBits + 2).
  bool hasRoom = std::int64_t(factors.k) << (rule.fractionBits + 2) <=
                 std::int64_t(1) << 31;
  if (!hasRoom || rule.isRoundedAfter)
    return addVectors(rule, factors, exponents, /*isCut=*/false, sums, pitch);
  HostRounding<FE_TOWARDZERO> cut;
  addVectors(rule, factors, exponents, /*isCut=*/true, sums, pitch);
}

} // namespace kiln::sim
