// Snapshot: a log for each region, of what is touched from now on.
#include "sim/launch/Snapshot.h"
#include "sim/launch/Footprint.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

namespace {
class LoggedMemory final : public Snapshot {
public:
  LoggedMemory(std::shared_ptr<GlobalMemory> memory,
               std::shared_ptr<Streams> streams)
      : memory_(std::move(memory)), streams_(std::move(streams)) {
    auto lock = hold();
    isIdle_ = streams_->areEmpty();
    for (const auto &[base, region] : memory_->regions()) {
      auto log = std::make_shared<TouchLog>(region->bytes);
      region->logs.push_back(log);
      logs_.emplace(base, std::move(log));
    }
    if (DeviceHeap *heap = memory_->heap())
      blocks_ = heap->blocks();
    previous_ = streams_->previous();
  }
  ~LoggedMemory() override {
    auto lock = hold();
    forEach([](Region &region, const std::shared_ptr<TouchLog> &log) {
      std::erase(region.logs, log);
    });
  }

  bool is_idle() const override { return isIdle_; }
  std::unique_lock<std::recursive_mutex> hold() const override {
    return std::unique_lock(streams_->mutex());
  }

  void restore() const override {
    auto lock = hold();
    forEach([](Region &region, const std::shared_ptr<TouchLog> &log) {
      log->restore(region);
    });
    if (DeviceHeap *heap = memory_->heap(); heap && blocks_)
      heap->put(*blocks_);
    streams_->setPrevious(previous_);
  }

  std::vector<Memory> memory() const override;
  std::unique_ptr<Footprint> footprint(std::size_t mostBytes) const override;

private:
  /// The regions that are still there, with their logs.
  template <typename Body> void forEach(Body &&body) const {
    for (const auto &[base, log] : logs_) {
      auto found = memory_->regions().find(base);
      if (found == memory_->regions().end())
        continue;
      auto &logs = found->second->logs;
      if (std::find(logs.begin(), logs.end(), log) != logs.end())
        body(*found->second, log);
    }
  }

  std::shared_ptr<GlobalMemory> memory_;
  std::shared_ptr<Streams> streams_;
  std::map<std::uint64_t, std::shared_ptr<TouchLog>> logs_; ///< by address
  std::optional<DeviceHeap::Blocks> blocks_;
  Streams::Previous previous_;
  bool isIdle_ = false;
};
} // namespace

/// Which bytes of a region had been written; empty: all of them.
static std::vector<std::byte> writtenOf(const Region &region,
                                        const TouchLog &log) {
  std::vector<std::byte> written((region.bytes + 7) / 8);
  bool isAll = true;
  for (std::size_t block = 0; block < log.blockCount(); ++block) {
    std::size_t begin = block * TouchLog::kBlockBytes;
    std::size_t bytes = std::min(TouchLog::kBlockBytes, region.bytes - begin);
    const std::uint64_t *valid = log.valid(region, block);
    for (std::size_t i = 0; i * 64 < bytes; ++i) {
      std::size_t bits = std::min<std::size_t>(64, bytes - i * 64);
      std::uint64_t all = ~std::uint64_t(0) >> (64 - bits);
      std::uint64_t word = valid[i] ^ region.valid.flip();
      std::memcpy(written.data() + begin / 8 + i * 8, &word, (bits + 7) / 8);
      isAll &= (word & all) == all;
    }
  }
  if (isAll)
    written.clear();
  return written;
}

/// A region as the log knows it.
static Snapshot::Memory memoryOf(const Region &region, const TouchLog &log) {
  Snapshot::Memory memory{region.name, region.base, region.bytes};
  for (std::size_t block = 0; block < log.blockCount(); ++block) {
    if (!log.isTouched(block))
      continue;
    memory.is_written |= log.isWritten(block);
    std::size_t begin = block * TouchLog::kBlockBytes;
    std::size_t bytes = std::min(TouchLog::kBlockBytes, region.bytes - begin);
    const auto *data =
        reinterpret_cast<const std::byte *>(log.data(region, block));
    memory.pieces.emplace_back(begin,
                               std::vector<std::byte>(data, data + bytes));
  }
  memory.is_touched = !memory.pieces.empty();
  if (memory.is_touched)
    memory.written = writtenOf(region, log);
  return memory;
}

std::vector<Snapshot::Memory> LoggedMemory::memory() const {
  auto lock = hold();
  std::vector<Memory> all;
  forEach([&](const Region &region, const std::shared_ptr<TouchLog> &log) {
    all.push_back(memoryOf(region, *log));
  });
  return all;
}

std::unique_ptr<Footprint>
LoggedMemory::footprint(std::size_t mostBytes) const {
  auto lock = hold();
  if (memory_->heap())
    return nullptr;
  auto footprint = std::make_unique<LaunchFootprint>(memory_, streams_);
  bool fits = true;
  forEach([&](const Region &region, const std::shared_ptr<TouchLog> &log) {
    fits = fits && footprint->add(region, *log, mostBytes);
  });
  if (!fits)
    return nullptr;
  return footprint;
}

std::unique_ptr<Snapshot> takeSnapshot(std::shared_ptr<GlobalMemory> memory,
                                          std::shared_ptr<Streams> streams) {
  return std::make_unique<LoggedMemory>(std::move(memory), std::move(streams));
}

} // namespace kiln::sim
