// AccessLog: addresses, in as few words as they need.
#include "sim/clocks/AccessLog.h"
#include "sim/clocks/Shadow.h"
#include "support/limits/Reserve.h"

namespace kiln::sim {

std::size_t AccessLog::sizeOf(const LoggedAccess &access) {
  bool isSpelt = access.form == LoggedAccess::Form::scattered;
  auto lanes = static_cast<std::size_t>(countLanes(access.lanes));
  return kHead + (isSpelt ? (lanes + 1) / 2 : 0);
}

std::size_t AccessLog::seal() {
  if (last_)
    last_->isKnown = {};
  return words_.size();
}

void AccessLog::shrink() {
  last_ = nullptr;
  words_.shrink_to_fit();
}

AccessLog::Word *AccessLog::grow(std::size_t words) {
  std::size_t at = words_.size();
  if (words_.empty())
    reserveBounded(words_, 128);
  words_.resize(at + words);
  return &words_[at];
}

bool AccessLog::addStep(const LoggedAccess &access,
                        const std::uint64_t *addresses) {
  std::size_t place = placeOf(access);
  Last::Entry &entry = last_->entries[place];
  LoggedAccess &before = entry.access;
  bool isAlike = last_->isKnown[place] && before.op == access.op &&
                 before.component == access.component &&
                 before.edge == access.edge &&
                 before.parting == access.parting &&
                 before.flags == access.flags && before.bytes == access.bytes &&
                 before.form == access.form && !(access.lanes & ~before.lanes);
  if (!isAlike)
    return false;
  Addresses &known = last_->addresses[place];
  int first = firstLane(access.lanes);
  std::uint64_t distance =
      addresses[first] - known[static_cast<std::size_t>(first)];
  auto narrow = static_cast<std::int32_t>(distance);
  LaneMask moved = testLanes([&](int lane) {
    return addresses[lane] == known[static_cast<std::size_t>(lane)] + distance;
  });
  if ((access.lanes & ~moved) ||
      static_cast<std::uint64_t>(std::int64_t(narrow)) != distance)
    return false;
  std::memcpy(known.data(), addresses, sizeof(known));
  if (entry.step) {
    Step step;
    std::memcpy(&step, &words_[entry.step], sizeof(step));
    if (step.count == 1)
      step.timeStep = access.time - step.time;
    bool isSame = step.lanes == access.lanes && step.distance == narrow &&
                  access.time == step.time + step.count * step.timeStep;
    if (isSame) {
      ++step.count;
      std::memcpy(&words_[entry.step], &step, sizeof(step));
      return true;
    }
  }
  before.lanes = access.lanes;
  Step step{.place = static_cast<std::uint16_t>(place),
            .unused = 0,
            .form = LoggedAccess::Form::step,
            .count = 1,
            .time = access.time,
            .timeStep = 0,
            .lanes = access.lanes,
            .distance = narrow};
  entry.step = words_.size();
  hasSteps_ = true;
  std::memcpy(grow(kStep), &step, sizeof(step));
  return true;
}

bool AccessLog::add(const LoggedAccess &access, const std::uint64_t *addresses,
                    std::uint64_t low, std::uint64_t high) {
  // Who does not come back needs no table.
  constexpr std::size_t kShort = 256;
  bool isRead = !(access.flags & Record::kWrite);
  if (!last_ && words_.size() > kShort)
    last_ = std::make_unique_for_overwrite<Last>();
  if (last_ && isRead && addStep(access, addresses))
    return true;
  bool isSpelt = access.form == LoggedAccess::Form::scattered;
  if (isSpelt && high - low > ~std::uint32_t(0))
    return false;
  LoggedAccess spelt = access;
  spelt.base = isSpelt ? low : addresses[firstLane(access.lanes)];
  Word *words = grow(sizeOf(spelt));
  std::memcpy(words, &spelt, sizeof(spelt));
  if (last_ && isRead) {
    std::size_t place = placeOf(access);
    last_->isKnown[place] = true;
    last_->entries[place] = {spelt, 0};
    std::memcpy(last_->addresses[place].data(), addresses, sizeof(Addresses));
  }
  if (!isSpelt)
    return true;
  auto *distances = reinterpret_cast<std::uint32_t *>(words + kHead);
  if (access.lanes == kAllLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      distances[lane] = static_cast<std::uint32_t>(addresses[lane] - low);
  else
    forEachLane(access.lanes, [&](int lane) {
      *distances++ = static_cast<std::uint32_t>(addresses[lane] - low);
    });
  return true;
}

bool AccessLog::Reader::next() {
  if (at_ >= words_.size())
    return false;
  begin_ = at_;
  LoggedAccess access;
  std::memcpy(&step_, &words_[at_], sizeof(step_));
  isStep_ = step_.form == LoggedAccess::Form::step;
  if (isStep_) {
    at_ += kStep;
    last_ = &lasts_[step_.place];
    return true;
  }
  std::memcpy(&access, &words_[at_], sizeof(access));
  at_ += sizeOf(access);
  last_ = &lasts_[placeOf(access) % lasts_.size()];
  last_->access = access;
  spell();
  return true;
}

void AccessLog::Reader::spell() {
  const LoggedAccess &access = last_->access;
  const auto *distances =
      reinterpret_cast<const std::uint32_t *>(&words_[begin_] + kHead);
  int first = firstLane(access.lanes);
  last_->addresses.fill(access.base);
  forEachLane(access.lanes, [&](int lane) {
    auto &address = last_->addresses[static_cast<std::size_t>(lane)];
    if (access.form == LoggedAccess::Form::scattered)
      address += *distances++;
    else if (access.form == LoggedAccess::Form::consecutive)
      address += static_cast<std::uint64_t>(lane - first) * access.bytes;
  });
}

bool AccessLog::Reader::move() {
  if (!step_.count)
    return false;
  --step_.count;
  last_->access.lanes = step_.lanes;
  last_->access.time = step_.time;
  step_.time += step_.timeStep;
  for (std::uint64_t &address : last_->addresses)
    address += static_cast<std::uint64_t>(std::int64_t(step_.distance));
  return true;
}

void AccessLog::Reader::copyTo(Words &words) {
  words.insert(words.end(),
               words_.begin() + static_cast<std::ptrdiff_t>(begin_),
               words_.begin() + static_cast<std::ptrdiff_t>(at_));
  // Those behind it go on from where it ends.
  while (isStep_ && move())
    ;
}

} // namespace kiln::sim
