// WarpAccess: the accesses of a warp's lanes, looked at as a whole.
//
// Mostly the lanes of a load or a store are in one buffer, and their addresses
// are one, or one behind the other. Then their bounds are one comparison and
// their values one copy. What is wrong is left to who looks at each lane by
// itself (Accessor): here it only makes a difference that something is.
#pragma once

#include "sim/machine/Machine.h"
#include "sim/machine/events/Events.h"
#include "sim/units/memory/Access.h"

namespace kiln::sim {

class WarpAccess {
public:
  /// Find what `lanes` (not none) touch: `bytes` each, a power of two, at
  /// op.src[0] + op.imm. False where some lane may not, or they are not all in
  /// one space; then nothing has been done.
  bool find(Warp &warp, const Op &op, Space space, LaneMask lanes,
            std::uint32_t bytes, bool isWrite);

  Pattern pattern() const { return pattern_; }
  bool isGlobal() const { return space_ == Space::global; }
  int first() const { return first_; } ///< lane
  std::uint8_t *at(int lane) const {
    return data_ + (addresses_[lane] - base_);
  }
  /// All lanes from the first to the last touch bytes one behind the other.
  bool isDense() const { return isDense_; }

  ByteRange place(int lane) const {
    std::size_t distance = addresses_[lane] - base_;
    return {data_ + distance, valid_, offset_ + distance, owner_,
            space_ == Space::local};
  }
  /// The four bytes at each lane's address; of lanes that take no part, those
  /// of one that does.
  void gather(std::uint32_t *words) const;
  /// Whether all bytes that they touch were written.
  bool isWritten() const;
  /// They write all of them.
  void markWritten() const;
  /// Tell who watches accesses.
  void tell(LaneMask same = 0, const std::uint8_t *values = nullptr);

private:
  void computeAddresses();
  bool findGlobal(bool isWrite);
  bool findShared();
  bool findParameter();
  bool findLocal();

  Warp *warp_;
  const Op *op_;
  std::uint8_t *data_;
  ValidBits *valid_; ///< null: always written
  Cta *owner_;
  std::uint64_t base_;   ///< of `addresses_`: that of `data_`
  std::uint64_t window_; ///< where those begin that others are told of
  std::size_t offset_;  ///< of `data_` in `valid_`
  /// In the space: the first bytes that some lane touches.
  std::uint64_t low_, high_;
  std::uint64_t anyBits_;
  LaneMask lanes_;
  std::uint32_t bytes_;
  int first_;
  Space space_;
  Pattern pattern_;
  bool isWrite_, isDense_;
  /// Of lanes that take no part: that of the first one that does.
  alignas(64) std::array<std::uint64_t, kLanes> addresses_;
};

} // namespace kiln::sim
