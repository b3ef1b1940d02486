// CoveringArray: rows in which every pair of values of two factors occurs.
//
// Most mistakes show when two things meet; all pairs need a few dozen rows
// where the full product needs a million. Pairs that no allowed row can have
// are left out.
#pragma once

#include <functional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace conformance {

/// One value, by its number, for each factor.
using Row = std::vector<int>;

class CoveringArray {
public:
  /// `sizes`: how many values each factor has.
  CoveringArray(std::vector<int> sizes,
                std::function<bool(const Row &)> is_allowed, unsigned seed = 1)
      : sizes_(std::move(sizes)), is_allowed_(std::move(is_allowed)),
        random_(seed) {
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g)
        for (int v = 0; v < sizes_[f]; ++v)
          for (int w = 0; w < sizes_[g]; ++w)
            missing_.insert({f, v, g, w});
    while (!missing_.empty())
      add_row();
  }

  const std::vector<Row> &rows() const { return rows_; }
  /// Pairs that no allowed row was found for.
  int impossible() const { return impossible_; }

private:
  using Pair = std::tuple<int, int, int, int>;
  static constexpr int kTries = 400, kCandidates = 12;

  int factors() const { return static_cast<int>(sizes_.size()); }

  /// A random allowed row with that pair; empty where there seems to be none.
  Row draw(const Pair &pair) {
    auto [f, v, g, w] = pair;
    for (int i = 0; i < kTries; ++i) {
      Row row;
      for (int size : sizes_)
        row.push_back(static_cast<int>(random_() % size));
      row[f] = v, row[g] = w;
      if (is_allowed_(row))
        return row;
    }
    return {};
  }
  int gain(const Row &row) const {
    int count = 0;
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g)
        count += static_cast<int>(missing_.count({f, row[f], g, row[g]}));
    return count;
  }
  /// The best of some rows with the first missing pair.
  void add_row() {
    Pair pair = *missing_.begin();
    Row best;
    for (int i = 0; i < kCandidates; ++i) {
      Row row = draw(pair);
      if (row.empty())
        break;
      if (best.empty() || gain(row) > gain(best))
        best = row;
    }
    if (best.empty()) {
      missing_.erase(pair);
      ++impossible_;
      return;
    }
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g)
        missing_.erase({f, best[f], g, best[g]});
    rows_.push_back(std::move(best));
  }

  std::vector<int> sizes_;
  std::function<bool(const Row &)> is_allowed_;
  std::mt19937 random_;
  std::set<Pair> missing_;
  std::vector<Row> rows_;
  int impossible_ = 0;
};

} // namespace conformance
