// Footprint: the blocks of memory that a launch has touched, as it found them and
// as it left them.
#pragma once

#include "kiln/check/simulation.h"
#include "sim/launch/Streams.h"
#include "sim/machine/memory/Memory.h"

namespace kiln::sim {

class LaunchFootprint final : public Footprint {
public:
  LaunchFootprint(std::shared_ptr<GlobalMemory> memory,
                  std::shared_ptr<Streams> streams)
      : memory_(std::move(memory)), streams_(std::move(streams)) {}

  /// Add what was touched of a region since the log was begun; false where that
  /// takes more than `most` bytes with what is there already.
  bool add(const Region &region, const TouchLog &log, std::size_t most);

  std::size_t bytes() const override { return bytes_; }
  bool repeat() const override;

private:
  struct Contents {
    std::vector<std::uint8_t> data;
    std::vector<std::uint64_t> valid; ///< as ValidBits keeps them

    bool isIn(const Region &region, std::size_t begin) const;
    void putInto(Region &region, std::size_t begin) const;
  };
  struct Block {
    std::size_t begin;
    Contents found, left; ///< left: empty where it is as it was found
  };
  struct Part {
    std::uint64_t base;
    std::size_t bytes;
    std::uint64_t flip; ///< of its valid bits
    std::vector<Block> blocks;
  };
  /// The buffer; null: it is gone.
  Region *find(const Part &part) const;

  std::shared_ptr<GlobalMemory> memory_;
  std::shared_ptr<Streams> streams_;
  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
};

} // namespace kiln::sim
