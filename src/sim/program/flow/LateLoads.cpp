// LateLoads: from a load forwards, as far as its value may still be used.
//
// The value is followed through arithmetic whose results have no other writer.
// What else reads it is a use; so is arithmetic that a predicate may throw the
// value away in, for the lanes that keep it. From the uses back to the load go
// the paths on which the value is alive; a load all of whose paths lead to a
// use is an access where it stands, as any other.
#include "sim/program/flow/LateLoads.h"
#include "sim/program/Effect.h"
#include "support/limits/Budget.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace kiln::sim {

/// Registers that a value is followed through, instructions on the paths to its
/// uses, and of those for all loads of a function: a long program is read in a
/// moment.
static constexpr std::size_t kMostRegisters = 64, kMostAlive = 4096,
                             kMostSteps = 1 << 22;

namespace {
/// Whether a value counts in all lanes, or where a predicate is so.
struct Use {
  Pred mask; ///< not valid: in all
  int maskRegister = -1;
  bool isUsedWhere = true;
};

class LateLoads {
public:
  LateLoads(const Decoder &decoder, Code &code, int first)
      : decoder_(decoder), code_(code), ops_(code.ops), first_(first),
        definitions_(decoder.function().registers.size()),
        users_(decoder.function().registers.size()), before_(ops_.size() + 1) {
    for (int i = first; i < end(); ++i) {
      noteRegisters(i);
      forEachNext(i, [&](int next) { before_[at(next)].push_back(i); });
    }
  }

  void mark() {
    for (int i = first_; i < end(); ++i)
      if (isCandidate(ops_[at(i)]))
        markLoad(i);
  }

private:
  /// What becomes of one element of a load.
  enum class Fate : std::uint8_t { used, unused, late };
  /// Where it counts, by instruction.
  using Places = std::map<int, Use>;

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  int end() const { return static_cast<int>(ops_.size()); }

  static bool isPlain(const Op &op, EffectKind kind) {
    return op.effect->kind == kind && !op.semantics.isStrong;
  }
  static bool isCandidate(const Op &op) {
    bool isOfOthers = op.effect->space == Space::global ||
                      op.effect->space == Space::shared ||
                      op.effect->space == Space::generic;
    return isPlain(op, EffectKind::load) && op.effect->tellOrder &&
           isOfOthers && !op.guard.isValid();
  }
  /// Whether nobody else notices when it is executed.
  static bool isQuiet(const Op &op) {
    return op.row->isArithmetic() || isPlain(op, EffectKind::load) ||
           isPlain(op, EffectKind::store) || op.row->traits.flow != Flow::next;
  }

  template <typename Body>
  static void forEachRegister(const ptx::Operand &operand, Body &&body) {
    for (int reg : {operand.reg, operand.pairedReg})
      if (reg >= 0)
        body(reg);
    for (const ptx::Operand &element : operand.elements)
      forEachRegister(element, body);
  }

  /// Of arithmetic and plain loads the first operand is written; of what else
  /// there is, all count as read.
  static bool writesFirst(const Op &op) {
    return op.row->isArithmetic() || isPlain(op, EffectKind::load);
  }

  void noteRegisters(int i) {
    const Op &op = ops_[at(i)];
    const auto &operands = op.origin->operands;
    auto addUser = [&](int reg) {
      std::vector<int> &users = users_[at(reg)];
      if (users.empty() || users.back() != i)
        users.push_back(i);
    };
    if (op.origin->predicate >= 0)
      addUser(op.origin->predicate);
    std::size_t sources = 0;
    if (writesFirst(op) && !operands.empty()) {
      forEachRegister(operands[0],
                      [&](int reg) { definitions_[at(reg)].push_back(i); });
      sources = 1;
    }
    for (std::size_t n = sources; n < operands.size(); ++n)
      forEachRegister(operands[n], addUser);
  }

  template <typename Body> void forEachNext(int i, Body &&body) const {
    const Op &op = ops_[at(i)];
    Flow flow = op.row->traits.flow;
    if (flow == Flow::branch && op.target >= 0)
      body(op.target);
    if ((flow == Flow::next || op.guard.isValid()) && i + 1 < end())
      body(i + 1);
  }

  bool hasOneWriter(const ptx::Operand &operand) const {
    bool isAlone = true;
    forEachRegister(operand, [&](int reg) {
      isAlone &= definitions_[at(reg)].size() == 1;
    });
    return isAlone;
  }

  /// How arithmetic may throw away the value of a register; nothing: it does
  /// not.
  std::optional<Use> maskOf(const Op &op, int reg) const {
    using Join = PoisonRule::Join;
    const auto &operands = op.origin->operands;
    Join join = op.poison.join;
    if (op.origin->predicate == reg || operands.size() < 3)
      return std::nullopt;
    const ptx::Operand *mask = &operands.back();
    bool isUsedWhere = join == Join::conjunction;
    if (join == Join::choice) {
      bool isFirst = operands[1].reg == reg, isSecond = operands[2].reg == reg;
      if (isFirst == isSecond)
        return std::nullopt;
      isUsedWhere = isFirst;
    } else if (join == Join::other || !op.pdst.isValid() ||
               op.pdst2.isValid() || operands[0].pairedReg >= 0) {
      return std::nullopt;
    } else if (operands.size() == 3) { // and.pred, or.pred
      mask = &operands[operands[1].reg == reg ? 2 : 1];
    }
    Pred pred = decoder_.predOfRegister(mask->reg);
    pred.isNegated = mask->isNegated;
    if (!pred.isValid() || mask->reg == reg)
      return std::nullopt;
    return Use{pred, mask->reg, isUsedWhere};
  }

  /// What uses the value of a register; false where it goes too far.
  bool findUses(int value, Places &uses) const {
    std::set<int> followed = {value};
    std::vector<int> next = {value};
    while (!next.empty()) {
      int reg = next.back();
      next.pop_back();
      for (int user : users_[at(reg)]) {
        const Op &op = ops_[at(user)];
        const ptx::Instruction &origin = *op.origin;
        if (origin.predicate == reg) {
          // Lanes go by it in which the instruction is not executed.
          const std::vector<int> &writers = definitions_[at(reg)];
          if (writers.size() != 1)
            return false;
          uses[writers.front()] = {};
        }
        bool isArithmetic = op.row->isArithmetic();
        std::optional<Use> mask = isArithmetic ? maskOf(op, reg) : std::nullopt;
        if (mask) {
          uses.emplace(user, *mask);
          continue;
        }
        if (!isArithmetic || !hasOneWriter(origin.operands[0])) {
          uses[user] = {};
          continue;
        }
        forEachRegister(origin.operands[0], [&](int result) {
          if (followed.insert(result).second)
            next.push_back(result);
        });
        if (followed.size() > kMostRegisters)
          return false;
      }
    }
    for (auto &[user, use] : uses)
      if (followed.contains(use.maskRegister))
        use = {}; // the value decides itself
    return true;
  }

  /// The instructions from which a use is reached, and not by way of the load.
  std::optional<std::set<int>> alive(int load, const Places &uses) {
    std::set<int> found;
    std::vector<int> next;
    auto visit = [&](int i) {
      if (i != load && found.insert(i).second)
        next.push_back(i);
    };
    for (const auto &[user, use] : uses)
      visit(user);
    while (!next.empty()) {
      int i = next.back();
      next.pop_back();
      if (i == first_ || found.size() > kMostAlive || ++steps_ > kMostSteps)
        return std::nullopt;
      for (int before : before_[at(i)])
        visit(before);
    }
    return found;
  }

  bool writesAddress(const Op &op, const Op &load) const {
    auto isIt = [&](const Reg &reg) {
      return reg.isValid() && reg.index == load.src[0].index;
    };
    return isIt(op.dst) || isIt(op.dst2) ||
           (op.isListWritten &&
            std::any_of(op.list.begin(), op.list.end(), isIt));
  }

  /// `places`: where a late value counts.
  Fate follow(int load, int value, Places &places) {
    const Op &read = ops_[at(load)];
    Places uses;
    if (value < 0 || users_[at(value)].empty())
      return Fate::unused;
    if (definitions_[at(value)].size() != 1 || !findUses(value, uses))
      return Fate::used;
    if (uses.empty())
      return Fate::unused;
    std::optional<std::set<int>> isAlive = alive(load, uses);
    if (!isAlive)
      return Fate::used;
    bool isEverUnused = false;
    std::set<int> seen;
    std::vector<int> next;
    auto go = [&](int from) {
      bool isLast = true;
      forEachNext(from, [&](int to) {
        isLast = false;
        if (!isAlive->contains(to))
          isEverUnused = true;
        else if (seen.insert(to).second)
          next.push_back(to);
      });
      isEverUnused |= isLast;
    };
    go(load);
    while (!next.empty()) {
      int i = next.back();
      next.pop_back();
      const Op &op = ops_[at(i)];
      auto use = uses.find(i);
      bool isUse = use != uses.end();
      bool isMeeting = !isQuiet(op) || writesAddress(op, read);
      if (isUse || isMeeting)
        places[i] = isMeeting || !isUse ? Use{} : use->second;
      bool isOver = places.contains(i) && !places[i].mask.isValid() &&
                    !op.guard.isValid();
      if (!isOver)
        go(i);
    }
    return isEverUnused ? Fate::late : Fate::used;
  }

  void add(int place, const LateUse &use) {
    Op &op = ops_[at(place)];
    if (op.late < 0) {
      op.late = static_cast<std::int32_t>(code_.lateUses.size());
      code_.lateUses.emplace_back();
    }
    code_.lateUses[at(op.late)].push_back(use);
  }

  void markLoad(int load) {
    checkBudget();
    const Op &op = ops_[at(load)];
    const ptx::Operand &result = op.origin->operands[0];
    std::size_t count = op.list.size();
    bool isVector = !result.elements.empty();
    if (writesAddress(op, op) ||
        count != (isVector ? result.elements.size() : 1))
      return;
    std::uint32_t used = 0, all = (1u << count) - 1, unused = 0;
    std::vector<Places> places(count);
    for (std::size_t n = 0; n < count; ++n) {
      Fate fate = follow(load, isVector ? result.elements[n].reg : result.reg,
                         places[n]);
      used |= std::uint32_t(fate == Fate::used) << n;
      unused |= std::uint32_t(fate == Fate::unused) << n;
    }
    // What nobody reads at all, no compiler has left there: it is meant.
    if (used == all || unused == all)
      return;
    ops_[at(load)].isMasked = true;
    if (used)
      add(load, {.load = load, .elements = used});
    for (std::size_t n = 0; n < count; ++n) {
      std::uint32_t element = 1u << n;
      if ((used | unused) & element)
        continue;
      int number = code_.lateCount++;
      add(load, {.load = load, .number = number, .isBegin = true});
      for (const auto &[place, use] : places[n])
        add(place, {.load = load,
                    .number = number,
                    .elements = element,
                    .mask = use.mask,
                    .isUsedWhere = use.isUsedWhere});
    }
  }

  const Decoder &decoder_;
  Code &code_;
  std::vector<Op> &ops_;
  int first_;
  std::size_t steps_ = 0;
  std::vector<std::vector<int>> definitions_; ///< by register: who writes it
  std::vector<std::vector<int>> users_;       ///< and who reads it
  std::vector<std::vector<int>> before_;      ///< by instruction
};
} // namespace

void markLate(const Decoder &decoder, Code &code, int first) {
  if (decoder.function().branchTargets.empty())
    LateLoads(decoder, code, first).mark();
}

} // namespace kiln::sim
