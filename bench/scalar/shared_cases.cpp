// shared_cases: kernels whose threads work together in a CTA, or on what they
// find in memory.
#include "case.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace scalar {

using Result = Array::Result;

static Case reduction() {
  constexpr int kCount = 1 << 22, kCtas = 64, kThreads = 256;
  return {.name = "reduction",
          .file = "reduction",
          .grid = {kCtas, 1, 1},
          .block = {kThreads, 1, 1},
          .parameters = {random_floats(kCount, 1, 0, 1),
                         zeros(kCtas, Result::floats, 1e-4f), kCount},
          // What each CTA adds up, so that the sums can be compared.
          .on_host = [](Case &c) {
            const float *in = c.array(0).floats();
            int count = c.whole(2);
            for (int cta = 0; cta < kCtas; ++cta) {
              float sums[kThreads] = {};
              for (int i = cta * kThreads; i < count; i += kCtas * kThreads)
                for (int thread = 0; thread < kThreads; ++thread)
                  sums[thread] += in[i + thread];
              c.array(1).floats()[cta] =
                  std::accumulate(sums, sums + kThreads, 0.0f);
            }
          }};
}

static Case block_scan() {
  constexpr int kThreads = 256, kCtas = 2048, kCount = kThreads * kCtas;
  return {.name = "block_scan",
          .file = "block_scan",
          .grid = {kCtas, 1, 1},
          .block = {kThreads, 1, 1},
          .parameters = {random_ints(kCount, 1, 0, 1000),
                         zeros(kCount, Result::words),
                         zeros(kCtas, Result::words)},
          .on_host = [](Case &c) {
            for (int cta = 0; cta < kCtas; ++cta) {
              const std::int32_t *in = c.array(0).ints() + cta * kThreads;
              std::int32_t *out = c.array(1).ints() + cta * kThreads;
              std::partial_sum(in, in + kThreads, out);
              c.array(2).ints()[cta] = out[kThreads - 1];
            }
          }};
}

static Case histogram() {
  constexpr int kCount = 1 << 20;
  return {.name = "histogram",
          .file = "histogram",
          .has_atomics = true,
          .grid = {64, 1, 1},
          .block = {256, 1, 1},
          .parameters = {random_ints(kCount, 1, 0, 1 << 30),
                         zeros(256, Result::words), kCount},
          .on_host = [](Case &c) {
            for (int i = 0, n = c.whole(2); i < n; ++i)
              ++c.array(1).words()[c.array(0).words()[i] & 255];
          }};
}

static Case radix_pass() {
  constexpr int kTile = 256, kCtas = 1024;
  return {.name = "radix_pass",
          .file = "radix_pass",
          .has_atomics = true,
          .grid = {kCtas, 1, 1},
          .block = {kTile, 1, 1},
          .parameters = {random_ints(std::size_t(kTile) * kCtas, 1, 0, 1 << 30),
                         zeros(std::size_t(kTile) * kCtas, Result::words),
                         zeros(std::size_t(16) * kCtas, Result::words), 8},
          .on_host = [](Case &c) {
            int shift = c.whole(3);
            for (int cta = 0; cta < kCtas; ++cta) {
              const std::uint32_t *in = c.array(0).words() + cta * kTile;
              std::uint32_t *out = c.array(1).words() + cta * kTile;
              std::uint32_t *counts = c.array(2).words() + cta * 16;
              for (int i = 0; i < kTile; ++i)
                ++counts[(in[i] >> shift) & 15];
              std::uint32_t begins[16];
              std::exclusive_scan(counts, counts + 16, begins, 0u);
              for (int i = 0; i < kTile; ++i)
                out[begins[(in[i] >> shift) & 15]++] = in[i];
            }
          }};
}

/// Where the rows of a sparse matrix begin, `least` to `most` elements each.
static Array row_begins(int rows, int least, int most) {
  Array lengths =
      random_ints(static_cast<std::size_t>(rows) + 1, 7, least, most);
  std::exclusive_scan(lengths.initial.begin(), lengths.initial.end(),
                      lengths.initial.begin(), 0u);
  return lengths;
}

static Case spmv() {
  constexpr int kRows = 1 << 16;
  Array begins = row_begins(kRows, 4, 28);
  std::size_t elements = begins.initial.back();
  return {.name = "spmv",
          .file = "spmv",
          .grid = {kRows / 256, 1, 1},
          .block = {256, 1, 1},
          .parameters = {begins, random_ints(elements, 1, 0, kRows - 1),
                         random_floats(elements, 2, -1, 1),
                         random_floats(kRows, 3, -1, 1),
                         zeros(kRows, Result::floats, 1e-4f), kRows},
          .on_host = [](Case &c) {
            const std::int32_t *begins = c.array(0).ints(),
                               *columns = c.array(1).ints();
            const float *values = c.array(2).floats(), *x = c.array(3).floats();
            for (int row = 0, rows = c.whole(5); row < rows; ++row) {
              float sum = 0;
              for (int i = begins[row]; i < begins[row + 1]; ++i)
                sum += values[i] * x[columns[i]];
              c.array(4).floats()[row] = sum;
            }
          }};
}

static Case bfs_step() {
  constexpr int kNodes = 1 << 18, kFrontier = 1 << 15, kLevel = 5;
  Array begins = row_begins(kNodes, 2, 14);
  std::size_t edges = begins.initial.back();
  // The frontier has the level before, and half of the rest an older one.
  Array levels = random_ints(kNodes, 5, -1, 0);
  levels.result = Result::words;
  Array frontier;
  frontier.initial.resize(kNodes);
  std::iota(frontier.initial.begin(), frontier.initial.end(), 0u);
  std::shuffle(frontier.initial.begin(), frontier.initial.end(),
               std::mt19937(3));
  frontier.initial.resize(kFrontier);
  for (std::uint32_t node : frontier.initial)
    levels.initial[node] = kLevel - 1;
  return {.name = "bfs_step",
          .file = "bfs_step",
          .has_atomics = true,
          .grid = {kFrontier / 256, 1, 1},
          .block = {256, 1, 1},
          .parameters = {begins, random_ints(edges, 1, 0, kNodes - 1), frontier,
                         kFrontier, levels, zeros(kNodes, Result::set),
                         zeros(1, Result::words), kLevel},
          .on_host = [](Case &c) {
            const std::int32_t *begins = c.array(0).ints();
            std::int32_t *levels = c.array(4).ints();
            for (int i = 0, size = c.whole(3); i < size; ++i) {
              std::int32_t node = c.array(2).ints()[i];
              for (int edge = begins[node]; edge < begins[node + 1]; ++edge) {
                std::int32_t other = c.array(1).ints()[edge];
                if (levels[other] != -1)
                  continue;
                levels[other] = c.whole(7);
                c.array(5).ints()[c.array(6).ints()[0]++] = other;
              }
            }
          }};
}

std::vector<Case> shared_cases() {
  return {reduction(),  block_scan(), histogram(),
          radix_pass(), spmv(),       bfs_step()};
}

} // namespace scalar
