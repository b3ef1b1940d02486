// LoopWatch: finds a loop of a warp that repeats itself.
//
// What decides about a loop's next round are registers, and what it reads. A
// loop in which both are those of an earlier round, twice over, does the same
// for ever, unless somebody else changes what it reads: then it is a wait.
//
// Decided by comparing values, not hashes. After some ten thousand jumps back
// the watch looks for a while, then leaves the loop alone for a longer while,
// so that a loop that gets somewhere pays next to nothing. While it looks it
// knows every instruction that is executed, takes the registers that those
// decide by (a backward slice, so that a counter of rounds may change), keeps
// their values after 2, 4, 8, ... rounds (Brent), and records every value that
// is read from then on. The loop repeats itself when the rounds since are two
// halves: the registers are the same at the beginning, between them and at the
// end, and so is everything that was read. What the loop itself writes needs no
// look: equal halves write equal values, so that the second one finds memory as
// a third would.
//
// A loop from which no end of the kernel can be reached needs no such proof:
// the watch looks earlier, and where it has found nothing else, that is the
// finding.
//
// A loop that repeats itself, reads what others write and writes what others
// read goes round with them: whether they all do so for ever, Circle knows.
#pragma once

#include "sim/machine/Groups.h"
#include "sim/program/Program.h"

#include <array>
#include <optional>
#include <unordered_map>

namespace kiln::sim {

class Machine;

class LoopWatch {
public:
  /// A group has jumped back. True where its turn is over: its loop repeats
  /// itself until somebody changes what it reads. Ends the launch where nobody
  /// can.
  bool jumpedBack(Warp &warp, const Group &group) {
    return ++jumps_ >= next_ && look(warp, group);
  }
  bool isLooking() const { return isLooking_; }
  /// Those lanes of a group have executed an instruction, none where it was
  /// passed by.
  void note(Warp &warp, int pc, LaneMask group, LaneMask lanes);
  /// Instructions until a loop that repeats itself has done so; 0: this group
  /// is in none.
  std::uint64_t periodOf(const Group &group) const;
  /// Where a warp is in a loop that repeats itself and that others see
  /// something of; nothing: it is in none, or not all of its lanes are.
  std::optional<std::uint64_t> placeInCircle(const Warp &warp) const;

  // For the report.
  /// In rounds; 0: it need not repeat itself, there is no way out of it.
  std::size_t period() const { return period_; }
  int head() const { return head_; }
  /// The instructions of the loop.
  std::vector<const Op *> loop(const Code &code) const;
  /// Those that read what others could change.
  std::vector<const Op *> polls(const Code &code) const;
  bool readsGlobal() const { return readsGlobal_; }
  /// "%r1 = 0x5, %p0 = 1" for a lane: what the loop writes and decides by.
  std::vector<std::string> registers(const Warp &warp, int lane) const;

private:
  enum class Kind : std::uint8_t {
    unknown, ///< not seen yet
    pure,    ///< results from sources, lane by lane or among the lanes
    rooted,  ///< its sources matter: control, stores, barriers
    counted, ///< likewise, and a barrier counts it: equal halves are not all
    input,   ///< brings a value from outside the registers
    open,    ///< nobody can tell what it brings
  };
  /// Of one instruction while the watch looks.
  struct Seen {
    bool isKnown = false;  ///< the slice is of it
    bool isRecent = false; ///< since the registers were kept
    bool isPoll = false;   ///< since then it read what others could change
  };
  /// Numbers of registers and, behind them, predicates.
  using Numbers = std::vector<std::uint32_t>;
  struct Uses {
    Numbers results, sources;
  };

  bool look(Warp &warp, const Group &group);
  void begin(Warp &warp, const Group &group);
  /// Lanes whose loop has ended go on with others, and may come back to it as
  /// they were: then the loop is that of them all.
  bool hasMore(const Group &group) const;
  void end();
  /// The look has come to its end: end the launch where the loop has no way
  /// out.
  void giveUp(Warp &warp, const Group &group);
  bool isAtHead(const Group &group) const;
  void keep(const Warp &warp);
  bool isAsKept(const Warp &warp);
  /// Two equal halves: end the launch, or true where the loop is a wait.
  bool isFound(Warp &warp);
  /// A round of a loop that repeats itself: is the period over?
  bool repeat(const Warp &warp);
  void record(Warp &warp, int pc, LaneMask lanes);
  void add(std::uint64_t value);
  bool isPrivate(Warp &warp, const Op &op, LaneMask lanes) const;
  Kind kindOf(const Code &code, int pc);
  static Uses usesOf(const Code &code, int pc);
  /// Whether the end of a function, or of the kernel, can be reached from
  /// there, as far as the program's text tells.
  static bool hasWayOut(const Code &code, int pc);
  Numbers slice(const Code &code) const;

  std::uint64_t jumps_ = 0, next_ = std::uint64_t(1) << 12;
  std::uint64_t burst_ = std::uint64_t(1) << 12, last_ = 0;
  bool isLooking_ = false;

  // What is watched.
  int head_ = 0;
  LaneMask lanes_ = 0;
  std::shared_ptr<Frame> frame_;
  ReconvergenceRef reconvergence_;

  std::vector<Kind> kinds_; ///< by instruction
  std::vector<Seen> seen_;  ///< likewise
  std::unordered_map<int, Uses> inputs_;
  std::vector<Reg> registers_; ///< by Reg::index

  // Since the registers were kept.
  struct Kept {
    std::uint32_t number;
    std::array<std::uint64_t, kLanes> lanes;
  };
  std::vector<Kept> kept_;
  std::vector<std::uint64_t> record_;
  std::vector<std::size_t> marks_; ///< by round: of the record, where as kept
  std::size_t rounds_ = 0;         ///< until they are kept anew
  std::uint64_t effects_ = 0, instructions_ = 0;
  bool isSpoilt_ = false; ///< something was executed that nobody understands
  bool readsOutside_ = false, readsGlobal_ = false;
  bool isCounted_ = false; ///< barriers have counted something
  bool isSplit_ = false; ///< lanes went ways of their own, in an order of turns

  // Of a loop that repeats itself.
  std::size_t period_ = 0; ///< rounds; 0: it does not, as far as is known
  std::size_t round_ = 0, cursor_ = 0;
  bool isCircle_ = false;         ///< others see something of it
  std::uint64_t circles_ = 0;     ///< such loops that were found
  std::uint64_t circleStart_ = 0; ///< Warp::instructions where it began anew
};

} // namespace kiln::sim
