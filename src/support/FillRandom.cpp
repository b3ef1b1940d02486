// FillRandom: the numbers that products are tried with, the same on every
// machine and in every order of the threads.
#include "support/FillRandom.h"
#include "support/Error.h"
#include "support/Parallel.h"

#include <cmath>
#include <cstring>

namespace kiln {

static constexpr std::size_t kFillChunk = 1 << 16;
static constexpr std::size_t kQuantiles = 1 << 16;

/// The i-th number of the SplitMix64 generator that starts at `seed`.
static std::uint64_t splitMix64(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double unitRandom(std::uint64_t seed, std::uint64_t i) {
  return static_cast<double>(splitMix64(seed, i) >> 11) * 0x1p-53;
}

static void put(Type type, void *data, std::size_t i, std::uint64_t bits) {
  if (is_subbyte(type))
    return store_bits(type, data, static_cast<std::int64_t>(i), bits);
  auto bytes = static_cast<std::size_t>(size_bytes(type));
  std::memcpy(static_cast<std::byte *>(data) + i * bytes, &bits, bytes);
}

/// One random number in the bits of the type.
static std::uint64_t randomBits(Type type, double unit, double lo, double hi) {
  if (!is_float(type))
    return to_bits(type, std::floor(lo + unit * (hi - lo + 1)));
  std::uint64_t bits = to_bits(type, lo + unit * (hi - lo));
  double value = from_bits(type, bits);
  if (value < hi || lo >= hi)
    return bits;
  // Rounded up to hi, which is excluded: the number before it. A float's bits
  // are sign and magnitude, in units of the last place (tf32: of the 13th).
  std::uint64_t step = type == Type::tf32 ? 1 << 13 : 1;
  return std::signbit(value) ? bits + step : bits - step;
}

void fill_random(Type type, void *data, std::size_t count, std::uint64_t seed,
                 double lo, double hi) {
  if (!(lo <= hi))
    userError("random numbers from {} to {}: the first must not be larger", lo,
              hi);
  auto chunks =
      static_cast<std::int64_t>((count + kFillChunk - 1) / kFillChunk);
  forEach(chunks, workersFor(chunks), [&](unsigned, std::int64_t chunk) {
    std::size_t begin = static_cast<std::size_t>(chunk) * kFillChunk;
    std::size_t end = std::min(count, begin + kFillChunk);
    for (std::size_t i = begin; i < end; ++i) {
      std::uint64_t bits = randomBits(type, unitRandom(seed, i), lo, hi);
      put(type, data, i, bits);
    }
  });
}

/// The x below which a fraction `p` of a normal distribution lies.
static double normalQuantile(double p) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Equally likely numbers: of a normal distribution, or all an integer has.
static double equallyLikely(Type type, std::size_t i) {
  double p = (static_cast<double>(i) + 0.5) / kQuantiles;
  if (is_float(type))
    return normalQuantile(p);
  double count = std::ldexp(1.0, size_bits(type));
  double least = is_signed_integer(type) ? -count / 2 : 0;
  return least + std::floor(p * count);
}

void fill_normal(Type type, void *data, std::size_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> table(kQuantiles);
  forEach(kQuantiles, workersFor(kQuantiles), [&](unsigned, std::int64_t i) {
    table[i] = to_bits(type, equallyLikely(type, i));
  });
  auto chunks =
      static_cast<std::int64_t>((count + kFillChunk - 1) / kFillChunk);
  forEach(chunks, workersFor(chunks), [&](unsigned, std::int64_t chunk) {
    std::size_t begin = static_cast<std::size_t>(chunk) * kFillChunk;
    std::size_t end = std::min(count, begin + kFillChunk);
    // Each number of the generator gives four elements.
    std::uint64_t drawn = 0;
    for (std::size_t i = begin; i < end; ++i, drawn >>= 16) {
      if (i % 4 == 0)
        drawn = splitMix64(seed, i / 4);
      put(type, data, i, table[drawn % kQuantiles]);
    }
  });
}

} // namespace kiln
