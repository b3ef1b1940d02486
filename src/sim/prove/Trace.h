// Trace: the steps of one execution, and which of them happen before which.
//
// A step comes behind those of its own lanes, behind the one that issued it
// (work in flight), and behind every earlier one that it depends on. Two
// dependent steps with nothing between them are a race in the sense of
// partial-order reduction: exchanged, they may lead elsewhere. (Races of data
// are another matter: those are findings.)
#pragma once

#include "sim/prove/Touch.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace kiln::sim {

struct Op;

/// Numbers of steps, as bits.
class StepSet {
public:
  bool has(std::size_t step) const {
    return step / 64 < words_.size() && words_[step / 64] >> step % 64 & 1;
  }
  void add(std::size_t step) {
    if (step / 64 >= words_.size())
      words_.resize(step / 64 + 1);
    words_[step / 64] |= std::uint64_t(1) << step % 64;
  }
  void add(const StepSet &other) {
    if (other.words_.size() > words_.size())
      words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i)
      words_[i] |= other.words_[i];
  }
  /// Whether all of these are among others.
  bool isIn(const StepSet &other) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (words_[i] & ~(i < other.words_.size() ? other.words_[i] : 0))
        return false;
    return true;
  }
  bool meets(const StepSet &other) const {
    std::size_t count = std::min(words_.size(), other.words_.size());
    for (std::size_t i = 0; i < count; ++i)
      if (words_[i] & other.words_[i])
        return true;
    return false;
  }

private:
  std::vector<std::uint64_t> words_;
};

class Trace {
public:
  struct Step {
    int process = 0; ///< who took it
    Touches touches;
    StepSet past;           ///< what happens before it
    const Op *op = nullptr; ///< for the story
  };

  std::size_t size() const { return steps_.size(); }
  const Step &operator[](std::size_t step) const { return steps_[step]; }
  /// Add a step behind `before` of its own process; those it races with, the
  /// latest first.
  std::vector<std::size_t> add(Step step, std::span<const std::size_t> before);
  /// Forget all but the first `count`.
  void shorten(std::size_t count);
  /// The processes of the first steps of what would come, without `earlier` and
  /// all that happens after it, up to `later`: each of them could go instead of
  /// `earlier`.
  std::vector<int> initials(std::size_t earlier, std::size_t later) const;
  /// The steps in an order that nobody can tell from this one, in which
  /// processes take turns seldom.
  std::vector<std::size_t> withFewSwitches() const;

private:
  /// Touches of one object, by steps.
  using Object = std::pair<Touch::Of, std::pair<std::uint32_t, std::uint64_t>>;
  struct Entry {
    std::size_t step;
    Touch touch;
  };
  static Object objectOf(const Touch &touch) {
    return {touch.of, {touch.place, touch.object}};
  }

  std::vector<Step> steps_;
  std::map<Object, std::vector<Entry>> objects_;
  std::vector<std::size_t> unknown_; ///< steps that touch everything
};

} // namespace kiln::sim
