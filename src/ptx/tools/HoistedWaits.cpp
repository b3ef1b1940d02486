// HoistedWaits: the order of instructions in PTX beside that in SASS.
#include "ptx/tools/HoistedWaits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace kiln {

/// So many that it was not one expression that moved.
static constexpr int kMany = 16;

/// Call `body` with each line and its number.
template <typename Body>
static void forEachLine(std::string_view text, Body &&body) {
  for (int number = 1; !text.empty(); ++number) {
    std::size_t end = std::min(text.find('\n'), text.size());
    body(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The first word of a line behind its predicate.
static std::string_view opcodeOf(std::string_view line) {
  auto word = [&] {
    std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    line.remove_prefix(begin);
    std::string_view first = line.substr(0, line.find_first_of(" \t;"));
    line.remove_prefix(first.size());
    return first;
  };
  std::string_view first = word();
  return first.starts_with('@') ? word() : first;
}

/// Lines that matter of the PTX.
namespace {
struct PtxLines {
  std::vector<int> commits, waits, arithmetic;

  explicit PtxLines(std::string_view ptx) {
    static constexpr std::array<std::string_view, 8> kArithmetic = {
        "add.", "sub.", "mul.", "fma.", "ex2.", "max.", "min.", "cvt."};
    forEachLine(ptx, [&](std::string_view line, int number) {
      std::string_view opcode = opcodeOf(line);
      if (opcode.starts_with("wgmma.commit_group"))
        commits.push_back(number);
      else if (opcode.starts_with("wgmma.wait_group"))
        waits.push_back(number);
      else if (opcode.find(".f32") != std::string_view::npos &&
               std::ranges::any_of(kArithmetic, [&](std::string_view one) {
                 return opcode.starts_with(one);
               }))
        arithmetic.push_back(number);
    });
  }

  /// The last commit before a line; 0: none.
  int commitBefore(int line) const {
    auto at = std::ranges::lower_bound(commits, line);
    return at == commits.begin() ? 0 : *std::prev(at);
  }
};

struct SassInstruction {
  std::string_view opcode;
  int ptxLine;

  bool isWait() const { return opcode.starts_with("WARPGROUP.DEPBAR"); }
  bool isProduct() const { return opcode.find("GMMA") < 2; }
  bool isArithmetic() const {
    static constexpr std::array<std::string_view, 10> kArithmetic = {
        "FADD", "FMUL", "FFMA",  "FMNMX", "MUFU",
        "FSEL", "F2FP", "HADD2", "HMUL2", "HFMA2"};
    return std::ranges::any_of(kArithmetic, [&](std::string_view one) {
      return opcode.starts_with(one);
    });
  }
};
} // namespace

/// 660 of `//## File ".nv_debug_ptx_txt", line 660`.
static std::optional<int> lineOf(std::string_view text) {
  constexpr std::string_view kMark = "//## File", kLine = ", line ";
  std::size_t mark = text.find(kMark);
  if (mark == std::string_view::npos)
    return std::nullopt;
  std::size_t at = text.find(kLine, mark);
  if (at == std::string_view::npos)
    return std::nullopt;
  text.remove_prefix(at + kLine.size());
  int line = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), line);
  return error == std::errc() ? std::optional(line) : std::nullopt;
}

static std::vector<SassInstruction> readSass(std::string_view sass) {
  std::vector<SassInstruction> code;
  int line = 0;
  forEachLine(sass, [&](std::string_view text, int) {
    if (std::optional<int> known = lineOf(text)) {
      line = *known;
      return;
    }
    // /*18e0*/   @P0 FADD.FTZ R232, R8, R89 ;
    std::size_t begin = text.find("/*"), end = text.find("*/");
    bool isInstruction = begin != std::string_view::npos &&
                         end != std::string_view::npos && begin < end &&
                         text.find_first_not_of(" \t") == begin;
    if (isInstruction)
      code.push_back({opcodeOf(text.substr(end + 2)), line});
  });
  return code;
}

bool hasWaitsBehindArithmetic(std::string_view ptx) {
  PtxLines lines(ptx);
  return std::ranges::any_of(lines.waits, [&](int wait) {
    int commit = lines.commitBefore(wait);
    auto count = std::ranges::count_if(lines.arithmetic, [&](int line) {
      return line > commit && line < wait;
    });
    return commit > 0 && count >= kMany;
  });
}

std::vector<HoistedWait> findHoistedWaits(std::string_view ptx,
                                          std::string_view sass) {
  PtxLines lines(ptx);
  std::vector<SassInstruction> code = readSass(sass);
  std::vector<HoistedWait> found;
  for (auto at = code.begin(); at != code.end(); ++at) {
    if (!at->isWait())
      continue;
    HoistedWait wait{at->ptxLine, 0};
    int commit = lines.commitBefore(wait.ptxLine);
    for (auto next = at + 1; next != code.end(); ++next) {
      if (next->isWait() || next->isProduct())
        break;
      wait.instructions += next->isArithmetic() && next->ptxLine > commit &&
                           next->ptxLine < wait.ptxLine;
    }
    if (commit > 0 && wait.instructions >= kMany)
      found.push_back(wait);
  }
  return found;
}

std::string describeAsPtxas(const HoistedWait &wait, std::string_view file) {
  return fmt::format(
      "ptxas {}, line {}; warning : wgmma.wait_group was moved up, before {} "
      "instructions of arithmetic that stand before it in the PTX and no "
      "longer run beside the products; `wait` with `after` keeps it where it "
      "is\n",
      file, wait.ptxLine, wait.instructions);
}

} // namespace kiln
