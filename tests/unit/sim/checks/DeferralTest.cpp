// Deferral: what the race detector lets wait, and what it looks at together, it
// must not lose. Drawn kernels are run in all interleavings with the detector
// as it is and with one that goes cell by cell; both must find the same.
#include "sim/checks/RaceDetector.h"
#include "unit/sim/RunKernel.h"

#include <algorithm>
#include <random>
#include <set>

namespace kiln::sim {

namespace {
/// Goes cell by cell while it lives.
struct ByCell {
  ByCell() { RaceDetector::isByCell = true; }
  ~ByCell() { RaceDetector::isByCell = false; }
};

/// A kernel of scattered and other accesses to a few pages.
class Drawn {
public:
  explicit Drawn(std::uint64_t seed) : random_(seed) {
    isOfManyCtas_ = chance(2);
    isWide_ = chance(3);
    hasBarriers_ = !chance(3);
    hasAtomics_ = chance(2);
    int count = 4 + pick(8);
    for (int i = 0; i < count; ++i)
      add();
  }
  std::string text;
  std::uint32_t ctas() const { return isOfManyCtas_ ? 3 : 1; }
  std::uint32_t threads() const { return isWide_ ? 128 : 64; }

private:
  int pick(int count) {
    return static_cast<int>(random_() % static_cast<unsigned>(count));
  }
  bool chance(int of) { return pick(of) == 0; }

  /// Put an offset into %r1: of a word of 4 KiB.
  void address() {
    switch (pick(6)) {
    case 0: // one for all
      text += "mov.u32 %r1, " + std::to_string(pick(64) * 4) + ";\n";
      return;
    case 1: // one behind the other
      text += "shl.b32 %r1, %t, 2;\n";
      break;
    case 2: // the other warp's
      text += "xor.b32 %r1, %t, 32;\nshl.b32 %r1, %r1, 2;\n";
      break;
    case 3: // the neighbour's
      text += "xor.b32 %r1, %t, 1;\nshl.b32 %r1, %r1, 2;\n";
      break;
    case 4: // scattered, each its own
      text += "mul.lo.u32 %r1, %t, 37;\nand.b32 %r1, %r1, 127;\n"
              "shl.b32 %r1, %r1, " +
              std::to_string(2 + pick(3)) + ";\n";
      break;
    default: // scattered, some the same
      text += "mul.lo.u32 %r1, %t, 2654435761;\nshr.u32 %r1, %r1, " +
              std::to_string(22 + pick(6)) +
              ";\nshl.b32 %r1, %r1, 2;\n"
              "and.b32 %r1, %r1, 4092;\n";
    }
    if (chance(4))
      text += "add.u32 %r1, %r1, " + std::to_string(pick(32) * 4) +
              ";\n"
              "and.b32 %r1, %r1, 4092;\n";
    // Each CTA its own part.
    if (isOfManyCtas_ && chance(2))
      text += "and.b32 %r1, %r1, 1020;\nmov.u32 %r2, %ctaid.x;\n"
              "shl.b32 %r2, %r2, 10;\nadd.u32 %r1, %r1, %r2;\n";
  }

  void add() {
    if (hasBarriers_ && chance(4)) {
      text += "bar.sync 0;\n";
      return;
    }
    address();
    bool isShared = chance(2);
    std::string at = isShared ? "[%r1]" : "[%x1]";
    if (isShared)
      text += "add.u32 %r1, %r1, %s;\n";
    else
      text += std::string("cvt.u64.u32 %x1, %r1;\nadd.u64 %x1, %x1, ") +
              (chance(2) ? "%in" : "%out") + ";\n";
    std::string space = isShared ? ".shared" : ".global";
    std::string guard;
    if (chance(3)) {
      text += "and.b32 %r3, %t, " + std::to_string(1 + pick(63)) +
              ";\n"
              "setp.ne.u32 %p1, %r3, 0;\n";
      guard = chance(2) ? "@%p1 " : "@!%p1 ";
    }
    static const char *const kTypes[] = {".u32", ".u32", ".u32", ".u16", ".u8"};
    std::string type = kTypes[pick(5)];
    int what = pick(hasAtomics_ ? 4 : 3);
    if (what == 0)
      text += guard + "st" + space + type + " " + at + ", %t;\n";
    else if (what < 3)
      text += guard + "ld" + space + type + " %r4, " + at + ";\n";
    else if (chance(2))
      text += guard + "red" + space + ".add.u32 " + at + ", 1;\n";
    else
      text += guard + "atom" + space + ".add.u32 %r5, " + at + ", 1;\n";
  }

  std::mt19937_64 random_;
  bool isOfManyCtas_, isWide_, hasBarriers_, hasAtomics_;
};

using Places = std::set<std::string>;

/// What is found, and where.
Places placesOf(const Drawn &drawn, Interleaving order, std::uint64_t seed) {
  RunKernel run(drawn.text);
  run.input(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4));
  run.output(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4));
  run.config.grid = {drawn.ctas(), 1, 1};
  run.config.block = {drawn.threads(), 1, 1};
  run.config.interleaving = order;
  run.config.seed = seed;
  run.config.max_findings = 1000;
  Places places;
  for (const Finding &one : run.run().findings)
    places.insert(fmt::format("{} at {}, {}", one.id, one.ptx_line,
                              one.other ? one.other->ptx_line : 0));
  return places;
}
} // namespace

TEST(Deferral, FindsWhatIsFoundCellByCell) {
  constexpr std::uint64_t kKernels = 300;
  std::size_t found = 0, clean = 0;
  for (std::uint64_t number = 0; number < kKernels; ++number) {
    Drawn drawn(number);
    for (Interleaving order : kOrders)
      for (std::uint64_t seed = 0;
           seed < (order == Interleaving::random ? 2 : 1); ++seed) {
        Places places = placesOf(drawn, order, seed), byCell;
        {
          ByCell byCellWhile;
          byCell = placesOf(drawn, order, seed);
        }
        ASSERT_EQ(places, byCell) << "kernel " << number << ", order "
                                  << int(order) << ", seed " << seed << ":\n"
                                  << drawn.text;
        found += places.size();
        clean += places.empty();
      }
  }
  // Both kinds are drawn.
  EXPECT_GT(found, kKernels);
  EXPECT_GT(clean, kKernels / 10);
}

} // namespace kiln::sim
