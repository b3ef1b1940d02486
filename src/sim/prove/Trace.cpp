// Trace: happens-before, as steps are added.
#include "sim/prove/Trace.h"

#include <algorithm>
#include <functional>

namespace kiln::sim {

std::vector<std::size_t> Trace::add(Step step,
                                    std::span<const std::size_t> before) {
  for (std::size_t earlier : before) {
    step.past.add(steps_[earlier].past);
    step.past.add(earlier);
  }
  // Of each object the steps that this one depends on.
  std::vector<std::size_t> dependent;
  bool isUnknown = false;
  for (const Touch &touch : step.touches) {
    isUnknown |= touch.of == Touch::Of::everything;
    auto found = objects_.find(objectOf(touch));
    if (found == objects_.end())
      continue;
    for (const Entry &entry : found->second)
      if (isDependentOn(entry.touch, touch) && !step.past.has(entry.step))
        dependent.push_back(entry.step);
  }
  dependent.insert(dependent.end(), unknown_.begin(), unknown_.end());
  if (isUnknown)
    for (std::size_t i = 0; i < steps_.size(); ++i)
      dependent.push_back(i);
  // The latest first: what happens before one of them is no race.
  std::sort(dependent.begin(), dependent.end(), std::greater<>());
  dependent.erase(std::unique(dependent.begin(), dependent.end()),
                  dependent.end());
  std::vector<std::size_t> races;
  for (std::size_t earlier : dependent) {
    if (step.past.has(earlier))
      continue;
    races.push_back(earlier);
    step.past.add(steps_[earlier].past);
    step.past.add(earlier);
  }
  std::size_t number = steps_.size();
  for (const Touch &touch : step.touches)
    objects_[objectOf(touch)].push_back({number, touch});
  if (isUnknown)
    unknown_.push_back(number);
  steps_.push_back(std::move(step));
  return races;
}

void Trace::shorten(std::size_t count) {
  for (std::size_t i = count; i < steps_.size(); ++i)
    for (const Touch &touch : steps_[i].touches) {
      auto &entries = objects_[objectOf(touch)];
      while (!entries.empty() && entries.back().step >= count)
        entries.pop_back();
    }
  while (!unknown_.empty() && unknown_.back() >= count)
    unknown_.pop_back();
  steps_.resize(count);
}

std::vector<std::size_t> Trace::withFewSwitches() const {
  std::map<int, std::vector<std::size_t>> ofProcess; // the last one first
  for (std::size_t step = steps_.size(); step-- > 0;)
    ofProcess[steps_[step].process].push_back(step);
  StepSet done;
  std::vector<std::size_t> order;
  auto canGo = [&](const std::vector<std::size_t> &left) {
    return !left.empty() && steps_[left.back()].past.isIn(done);
  };
  auto run = [&](std::vector<std::size_t> &left) {
    while (canGo(left)) {
      done.add(left.back());
      order.push_back(left.back());
      left.pop_back();
    }
  };
  while (order.size() < steps_.size()) {
    // Whoever came first goes on as long as it can.
    std::vector<std::size_t> *next = nullptr;
    for (auto &[process, left] : ofProcess)
      if (canGo(left) && (!next || left.back() < next->back()))
        next = &left;
    run(*next);
  }
  return order;
}

std::vector<int> Trace::initials(std::size_t earlier, std::size_t later) const {
  StepSet sequence;
  std::vector<int> first;
  for (std::size_t step = earlier + 1; step <= later; ++step) {
    const Step &one = steps_[step];
    if (step != later && one.past.has(earlier))
      continue;
    if (!one.past.meets(sequence))
      first.push_back(one.process);
    sequence.add(step);
  }
  return first;
}

} // namespace kiln::sim
