// Access: from an address of any space to the bytes behind it.
#pragma once

#include "sim/checks/RaceDetector.h"
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
        order_(op.isMasked && !isBehind ? nullptr : warp.races()) {}
  Accessor(const Accessor &) = delete;
  ~Accessor() { flush(); }

  /// The `bytes` at `address` of `lane`, aligned to `alignment`, which the lane
  /// itself reads or writes: the order of accesses is told. Ends the launch
  /// with a finding where they are not there.
  ByteRange locate(Space space, std::uint64_t address, std::size_t bytes,
                   std::size_t alignment, int lane, bool isWrite);
  /// What the next lane writes, read where it is located, and a cell more. For
  /// a launch whose clusters cannot talk to each other (LaunchRaces).
  void setValue(const std::uint8_t *value) { value_ = value; }
  /// What the lane that was located last writes stands there already, or not.
  void noteValue(bool isSame) {
    run_.isSame = isSame && (run_.isSame || countLanes(run_.lanes) == 1);
  }
  /// Shared memory, without a word to the order; also gives the CTA it belongs
  /// to.
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
  /// A lane touches bytes. Lanes that share a cell in a row are told at once.
  void note(const ByteRange &place, std::uint64_t address, std::size_t bytes,
            int lane, bool isWrite);
  void flush();
  /// The value of the run's bytes from `first` on; what lies behind them comes
  /// later.
  void keep(std::uint32_t first, const std::uint8_t *value) {
    std::memcpy(&runValue_[first], value, Shadow::kCellBytes);
  }
  /// Those lanes of a strong access hand over, and take what others have.
  void synchronise();
  /// A shared address that names no CTA of the cluster may be a generic one; it
  /// ends the launch where it is not. `plain`: as sharedOwner does.
  Cta &ownerOfGeneric(std::uint64_t address, std::size_t bytes, int lane,
                      std::uint32_t &plain);
  [[noreturn]] void fault(FindingId id, int lane, const std::string &message,
                          const FindingObject &object = {});

  Warp &warp_;
  const Op &op_;
  const char *verb_;
  RaceDetector *order_; ///< null: nobody asks for it
  Region *last_ = nullptr;

  /// Lanes that touch one cell, not told yet.
  struct Run {
    ShadowedMemory *memory = nullptr; ///< null: none
    std::uint64_t cell = 0;
    std::uint32_t first = 0, end = 0; ///< bytes of it
    std::uint32_t bytes = 0;          ///< of each lane
    int lane = 0;                     ///< the last one
    LaneMask lanes = 0;
    bool isSplit = false; ///< the lanes took the bytes in turn
    bool isWrite = false;
    bool isSame = false; ///< all of them write what stands there
  };
  Run run_;
  /// Of the run, where it is kept; copies of a whole cell may begin anywhere.
  std::array<std::uint8_t, 2 * Shadow::kCellBytes> runValue_;
  const std::uint8_t *value_ = nullptr; ///< of the next lane; null: not kept
  Access reads_, writes_;               ///< made when first needed
};

/// The CTA and the plain shared address that a shared::cluster address means.
Cta *sharedOwner(Cta &cta, std::uint64_t address, std::uint32_t &plain);

} // namespace kiln::sim
