// Access: from an address of any space to the bytes behind it.
#pragma once

#include "sim/machine/Machine.h"

#include <cstring>

namespace kiln::sim {

/// Bytes somewhere in memory, and the bits that say whether they were written.
struct ByteRange {
  std::uint8_t *data = nullptr;
  ValidBits *valid = nullptr; ///< null: always written
  std::size_t offset = 0;     ///< of the first byte in `valid`
  Cta *owner = nullptr;       ///< shared memory: whose it is
  bool isLocal = false;       ///< a thread's own memory

  bool isWritten(std::size_t bytes) const {
    return !valid || valid->all(offset, bytes);
  }
  void markWritten(std::size_t bytes) const {
    if (valid)
      valid->set(offset, bytes);
  }
  /// Which of up to 8 bytes were never written: all ones in each.
  std::uint64_t unwritten(std::size_t bytes) const {
    return valid ? valid->unwritten(offset, bytes) : 0;
  }
  /// Up to 8 bytes were written, with a value those bytes of which are not.
  void mark(std::size_t bytes, std::uint64_t unwritten) const {
    if (valid)
      valid->put(offset, bytes, unwritten);
  }
  /// The same of a value that comes from what an instruction has read first.
  void mark(std::size_t bytes, std::uint64_t unwritten,
            std::uint32_t origin) const {
    mark(bytes, unwritten);
    if (valid && unwritten && !isGlobal())
      valid->setOrigin(offset, bytes, origin);
  }
  bool isGlobal() const { return valid && !owner && !isLocal; }
  /// The bytes from `distance` on.
  ByteRange behind(std::size_t distance) const {
    return {data + distance, valid, offset + distance, owner, isLocal};
  }
};

/// Whether the launch ahead, which has not ended, may still write bytes that
/// nobody has written: to read them so early is a finding of another kind.
inline bool mayYetBeWritten(Warp &warp, const ByteRange &place) {
  return place.isGlobal() && !warp.machine().gridControl().isPrimaryOver();
}

/// Where the first of some bytes that nobody has written was read first; by
/// `op`, where nobody has before.
std::uint32_t originOf(Warp &warp, const Op &op, const ByteRange &place,
                       std::size_t bytes);

/// Finds places for one instruction; remembers the last buffer it was in. No
/// other code turns an address that a kernel computed into a pointer.
class Accessor {
public:
  /// `isBehind`: of a masked load, which is told where its value is used.
  Accessor(Warp &warp, const Op &op, const char *verb, bool isBehind = false)
      : warp_(warp), op_(op), verb_(verb),
        isTold_((!op.isMasked || isBehind) &&
                warp.watchers().wants(EventKind::access)) {}
  Accessor(const Accessor &) = delete;
  ~Accessor() {
    if (count_)
      tell();
  }

  /// The `bytes` at `address` of `lane`, aligned to `alignment`, which the lane
  /// itself reads or writes: who watches accesses is told. Ends the launch with
  /// a finding where they are not there.
  ByteRange locate(Space space, std::uint64_t address, std::size_t bytes,
                   std::size_t alignment, int lane, bool isWrite);
  /// What the lanes write, as ThreadAccess has it.
  void setValues(const std::uint8_t *values) { values_ = values; }
  /// What the lane that was located last writes stands there already, or not.
  void noteValue(bool isSame) {
    if (count_)
      told_[count_ - 1].isSame = isSame;
  }
  /// Shared memory, without a word to who watches; also gives the CTA it
  /// belongs to.
  ByteRange locateShared(std::uint64_t address, std::size_t bytes,
                         std::size_t alignment, int lane,
                         Cta **owner = nullptr);
  /// Global memory, likewise.
  ByteRange locateGlobal(std::uint64_t address, std::size_t bytes,
                         std::size_t alignment, int lane, bool isWrite);
  /// Only whether they are there.
  void checkGlobal(std::uint64_t address, std::size_t bytes,
                   std::size_t alignment, int lane, bool isWrite);
  /// The thread's own memory, and the kernel's parameters.
  ByteRange locateLocal(std::uint64_t address, std::size_t bytes,
                        std::size_t alignment, int lane);
  ByteRange locateParameter(std::uint64_t address, std::size_t bytes, int lane,
                            bool isWrite);

private:
  /// A lane touches bytes, which is told; many are at once.
  void note(const ByteRange &place, std::uint64_t address, std::size_t bytes,
            int lane, bool isWrite);
  void tell();
  /// A shared address that names no CTA of the cluster may be a generic one; it
  /// ends the launch where it is not. `plain`: as sharedOwner does.
  Cta &ownerOfGeneric(std::uint64_t address, std::size_t bytes, int lane,
                      std::uint32_t &plain);
  [[noreturn]] void fault(FindingId id, int lane, const std::string &message,
                          const FindingObject &object = {});

  Warp &warp_;
  const Op &op_;
  const char *verb_;
  bool isTold_;
  bool isFirst_ = true; ///< nothing has been told yet
  Region *last_ = nullptr;
  const std::uint8_t *values_ = nullptr; ///< null: nobody asks for them
  std::size_t count_ = 0;                ///< of those that are not told yet
  std::array<LaneAccess, kLanes> told_;
};

/// The CTA and the plain shared address that a shared::cluster address means.
Cta *sharedOwner(Cta &cta, std::uint64_t address, std::uint32_t &plain);

} // namespace kiln::sim
