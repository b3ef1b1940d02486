// Access: from an address of any space to the bytes behind it.
#pragma once

#include "sim/Machine.h"

namespace kiln::sim {

/// The space of an instruction's modifiers: .shared, .shared::cta,
/// .shared::cluster, .global, .const, .local, .param, or none.
Space spaceOf(const ptx::Instruction &instruction);

/// Bytes somewhere in memory, and the bits that say whether they were written.
struct Place {
  std::uint8_t *data = nullptr;
  ValidBits *valid = nullptr; ///< null: always written
  std::size_t offset = 0;     ///< of the first byte in `valid`
  Cta *owner = nullptr;       ///< shared memory: whose it is

  bool isWritten(std::size_t bytes) const {
    return !valid || valid->all(offset, bytes);
  }
  void markWritten(std::size_t bytes) const {
    if (valid)
      valid->set(offset, bytes);
  }
};

/// Finds places for one instruction; remembers the last buffer it was in.
class Accessor {
public:
  Accessor(Warp &warp, const Op &op, const char *verb)
      : warp_(warp), op_(op), verb_(verb) {}

  /// The `bytes` at `address` of `lane`, aligned to `alignment`. Ends the
  /// launch with a finding where they are not there.
  Place locate(Space space, std::uint64_t address, std::size_t bytes,
               std::size_t alignment, int lane, bool isWrite);
  /// The same in shared memory; also gives the CTA it belongs to.
  Place locateShared(std::uint64_t address, std::size_t bytes,
                     std::size_t alignment, int lane, Cta **owner = nullptr);
  /// In global memory.
  Place locateGlobal(std::uint64_t address, std::size_t bytes,
                     std::size_t alignment, int lane, bool isWrite);

private:
  [[noreturn]] void fault(const char *id, int lane, const std::string &message);

  Warp &warp_;
  const Op &op_;
  const char *verb_;
  Region *last_ = nullptr;
};

/// End the launch where part of a warp reaches an instruction for all of it.
void checkAligned(Warp &warp, const Op &op, LaneMask active);
/// The same, and where a warp has fewer than 32 lanes: for instructions whose
/// lanes hold parts of a matrix.
void checkWholeWarp(Warp &warp, const Op &op, LaneMask active);

/// The CTA and the plain shared address that a shared::cluster address means.
Cta *sharedOwner(Cta &cta, std::uint64_t address, std::uint32_t &plain);

} // namespace kiln::sim
