// Control: loops and branches, and the roles and elections built on them.
#include "kiln/language/value/control.h"
#include "dsl/kernel/State.h"
#include "kiln/language/threads/threads.h"
#include "support/Error.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/SaveAndRestore.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln {

/// Run a user's lambda with the builder inside `block`, before its terminator.
template <typename Body>
static void runInside(KernelBuilder::State &state, mlir::Block *block,
                      Body &&body) {
  mlir::OpBuilder::InsertionGuard guard(state.builder);
  if (block->mightHaveTerminator())
    state.builder.setInsertionPoint(block->getTerminator());
  else
    state.builder.setInsertionPointToEnd(block);
  body();
}

/// An empty std::function would throw an exception of another kind.
static void requireBody(bool hasBody, const char *what, const Where &where) {
  if (!hasBody)
    userErrorAt(where, "{} was given no body", what);
}

/// The type of a loop: of the first bound that is a Value, else i32.
static Type loopType(const At &lower, const At &upper) {
  for (const At *bound : {&lower, &upper})
    if (auto *value = std::get_if<Value>(&bound->operand()))
      return value->type();
  return Type::i32;
}

/// What the language says about copies of a loop's body, as LLVM takes it.
static void annotate(KernelBuilder::State &state, mlir::scf::ForOp loop,
                     const ForOptions &options) {
  if (options.unroll == 0)
    return;
  std::string text =
      options.unroll == 1
          ? "#llvm.loop_annotation<unroll = <disable = true>>"
          : fmt::format("#llvm.loop_annotation<unroll = <count = {} : i32>>",
                        options.unroll);
  loop->setAttr("llvm.loop_annotation",
                mlir::parseAttribute(text, state.context.get()));
}

/// Refuse a loop whose body gives other values than it gets.
static void checkCarried(const Values &initial, const Values &next,
                         const Where &where) {
  if (next.size() != initial.size())
    userErrorAt(where,
                "for_range carries {} values and its body gives {}; it gives "
                "one for each",
                initial.size(), next.size());
  for (std::size_t i = 0; i < next.size(); ++i)
    if (next[i].type() != initial[i].type())
      userErrorAt(where,
                  "value {} that for_range carries is {} and its body gives "
                  "{}; `cast` it",
                  i, name(initial[i].type()), name(next[i].type()));
}

/// How often a loop that counts down by `step` turns.
static Value turnsDown(const Value &lower, const Value &upper,
                       std::int64_t step, const Where &where) {
  Value distance = select(At(lower > At(upper, where), where),
                          At(lower - At(upper, where), where), At(0, where));
  return (distance + At(step - 1, where)) / At(step, where);
}

/// Whether a loop between such bounds turns, whatever the arguments are.
static bool surelyTurns(const At &lower, const At &upper, bool isDown) {
  auto number = [](const At &bound) -> std::optional<std::int64_t> {
    if (auto *literal = std::get_if<std::int64_t>(&bound.operand()))
      return *literal;
    auto *dim = std::get_if<Dim>(&bound.operand());
    return dim && dim->is_constant() ? std::optional(dim->constant())
                                     : std::nullopt;
  };
  auto first = number(lower), end = number(upper);
  return first && end && (isDown ? *first > *end : *first < *end);
}

Values for_range(At lower, At upper, At step, const Values &initial,
                 const std::function<Values(Value, Values)> &body,
                 const ForOptions &options) {
  const Where &where = upper.where();
  auto &state = KernelBuilder::State::current(where);
  Type type = loopType(lower, upper);
  if (is_float(type) || type == Type::i1)
    userErrorAt(where, "for_range counts in integers, not in {}", name(type));
  auto *literal = std::get_if<std::int64_t>(&step.operand());
  if (literal && *literal == 0)
    userErrorAt(step.where(), "for_range has a step of 0 and would never end");
  if (options.unroll < 0)
    userErrorAt(where,
                "for_range is to have {} copies of its body; 0 or more can be",
                options.unroll);
  requireBody(bool(body), "for_range", where);
  bool isDown = literal && *literal < 0;
  Value first = state.resolve(lower, type);
  mlir::Value begin = state.use(At(first, where), type);
  mlir::Value end = state.use(upper, type);
  mlir::Value by =
      isDown ? state.constant(type, 1, where) : state.use(step, type);
  if (isDown) {
    // scf.for counts up: the turns are counted, the variable is derived.
    Value turns = turnsDown(first, state.wrap(end, type), -*literal, where);
    begin = state.constant(type, 0, where);
    end = state.use(turns, where);
  }
  llvm::SmallVector<mlir::Value> carried;
  for (const Value &value : initial)
    carried.push_back(state.use(value, where));
  auto loop = mlir::scf::ForOp::create(
      state.builder, state.at(where), begin, end, by, carried, nullptr,
      /*unsignedCmp=*/is_unsigned_integer(type));
  annotate(state, loop, options);
  auto wrapAll = [&](mlir::ValueRange values) {
    Values wrapped;
    for (std::size_t i = 0; i < values.size(); ++i)
      wrapped.push_back(state.wrap(values[i], initial[i].type()));
    return wrapped;
  };
  // A loop that may not turn at all leaves what was before it.
  std::optional<WgmmaGroups::Branch> maybe;
  if (!surelyTurns(lower, upper, isDown))
    maybe.emplace(state.wgmma);
  WgmmaGroups::Loop turns(state.wgmma);
  runInside(state, loop.getBody(), [&] {
    Value turn = state.wrap(loop.getInductionVar(), type);
    if (isDown)
      turn = first - At(turn * At(-*literal, where), where);
    Values next = body(turn, wrapAll(loop.getRegionIterArgs()));
    checkCarried(initial, next, where);
    if (initial.empty())
      return; // it has its terminator
    llvm::SmallVector<mlir::Value> yielded;
    for (const Value &value : next)
      yielded.push_back(state.use(value, where));
    mlir::scf::YieldOp::create(state.builder, state.at(where), yielded);
  });
  checkTurns(state, turns);
  return wrapAll(loop.getResults());
}

void for_range(At lower, At upper, At step,
               const std::function<void(Value)> &body,
               const ForOptions &options) {
  requireBody(bool(body), "for_range", upper.where());
  for_range(
      lower, upper, step, {},
      [&](Value i, const Values &) {
        body(i);
        return Values();
      },
      options);
}

void for_range(At lower, At upper, const std::function<void(Value)> &body,
               const ForOptions &options) {
  for_range(lower, upper, At(1, upper.where()), body, options);
}

void unrolled(int lower, int upper, int step,
              const std::function<void(int)> &body, Where where) {
  requireBody(bool(body), "unrolled", where);
  if (step == 0)
    userErrorAt(where, "unrolled has a step of 0 and would never end");
  for (int i = lower; step > 0 ? i < upper : i > upper; i += step)
    body(i);
}

void if_(At condition, const std::function<void()> &then,
         const std::function<void()> &otherwise) {
  auto &state = KernelBuilder::State::current(condition.where());
  requireBody(bool(then), "if_", condition.where());
  mlir::Value test = state.use(condition, Type::i1);
  auto branch = mlir::scf::IfOp::create(
      state.builder, state.at(condition.where()), test, bool(otherwise));
  WgmmaGroups::Branch ways(state.wgmma);
  runInside(state, branch.thenBlock(), then);
  if (!otherwise)
    return;
  ways.otherwise();
  runInside(state, branch.elseBlock(), otherwise);
}

void while_(const std::function<Value()> &condition,
            const std::function<void()> &body, Where where) {
  auto &state = KernelBuilder::State::current(where);
  requireBody(condition && body, "while_", where);
  mlir::Location loc = state.at(where);
  auto loop = mlir::scf::WhileOp::create(state.builder, loc, mlir::TypeRange(),
                                         mlir::ValueRange());
  WgmmaGroups::Loop turns(state.wgmma);
  runInside(state, state.builder.createBlock(&loop.getBefore()), [&] {
    mlir::Value test = state.use(At(condition(), where), Type::i1);
    mlir::scf::ConditionOp::create(state.builder, loc, test,
                                   mlir::ValueRange());
  });
  WgmmaGroups::Branch maybe(state.wgmma);
  runInside(state, state.builder.createBlock(&loop.getAfter()), [&] {
    body();
    mlir::scf::YieldOp::create(state.builder, loc);
  });
  checkTurns(state, turns);
  state.builder.setInsertionPointAfter(loop);
}

void warpgroup(int index, const std::function<void()> &body, Where where) {
  warpgroup(index, RoleOptions{}, body, where);
}

/// "warpgroup 1", "warpgroups 0 to 1"
static std::string describe(int first, int count) {
  return count == 1
             ? fmt::format("warpgroup {}", first)
             : fmt::format("warpgroups {} to {}", first, first + count - 1);
}

/// Refuse a role that cannot be.
static void checkRole(const KernelBuilder::State &state, int first, int count,
                      const RoleOptions &options, const Where &where) {
  int groups = state.contract.threads() / 128;
  if (count < 1)
    userErrorAt(where, "a role of {} warpgroups; at least 1 is needed", count);
  if (first < 0 || first >= groups)
    userErrorAt(where, "kernel {} has {} warpgroups; there is no warpgroup {}",
                state.name, groups, first);
  if (first + count > groups)
    userErrorAt(where, "kernel {} has {} warpgroups; there is no warpgroup {}",
                state.name, groups, first + count - 1);
  if (state.builder.getInsertionBlock() != state.entry)
    userErrorAt(where,
                "the role of {} begins inside another body; "
                "roles stand at the top level of a kernel",
                describe(first, count));
  for (const Role &role : state.roles)
    if (role.first < first + count && first < role.first + role.count)
      userErrorAt(where, "warpgroup {} has a role already, at {}:{}",
                  std::max(first, role.first), role.where.file,
                  role.where.line);
  if (!options.registers)
    return;
  int registers = *options.registers;
  constexpr int kLeast = DeviceDescription::min_role_registers;
  constexpr int kMost = DeviceDescription::max_role_registers;
  if (registers < kLeast || registers > kMost || registers % 8 != 0)
    userErrorAt(where,
                "{} ask{} for {} registers; setmaxnreg takes "
                "multiples of 8 from {} to {}",
                describe(first, count), count == 1 ? "s" : "", registers,
                kLeast, kMost);
}

void warpgroup(int index, const RoleOptions &options,
               const std::function<void()> &body, Where where) {
  requireBody(bool(body), "warpgroup", where);
  warpgroups(index, 1, options, [&](Value) { body(); }, where);
}

void warpgroups(int first, int count, const RoleOptions &options,
                const std::function<void(Value)> &body, Where where) {
  auto &state = KernelBuilder::State::current(where);
  requireBody(bool(body), "warpgroups", where);
  checkRole(state, first, count, options, where);
  state.roles.push_back({first, count, options.registers, where, nullptr});
  std::size_t role = state.roles.size() - 1;
  Value group = warpgroup_id(where);
  Value isMine = count == 1 ? group == At(first, where)
                            : group >= At(first, where) &&
                                  At(group < At(first + count, where), where);
  if_(At(isMine, where), [&] {
    if (options.registers)
      // Which way it goes is known when all roles are (checkRegisterPlan).
      state.roles[role].setRegisters = mlir::NVVM::SetMaxRegisterOp::create(
          state.builder, state.at(where), *options.registers,
          mlir::NVVM::SetMaxRegisterAction::decrease);
    llvm::SaveAndRestore inRole(state.currentRole, std::optional(role));
    WgmmaGroups::RoleScope products(state.wgmma, role);
    body(count == 1 ? constant(i32, At(0, where)) : group - At(first, where));
  });
}

void one_thread(const std::function<void()> &body, Where where) {
  one_thread_of(0, body, where);
}

void one_thread_of(int warp, const std::function<void()> &body, Where where) {
  auto &state = KernelBuilder::State::current(where);
  requireBody(bool(body), "one_thread", where);
  if (state.isOneThread && warp == 0)
    return body();
  if (state.isOneThread || warp < 0 || warp > 3 ||
      warp * 32 >= state.contract.threads())
    userErrorAt(where,
                "there is no warp {} to take a thread of here; a warpgroup has "
                "4, and inside one_thread there is one thread",
                warp);
  Value mine = warp_id(where);
  const Role *role =
      state.currentRole ? &state.roles[*state.currentRole] : nullptr;
  Value isMine = role && role->count > 1
                     ? (mine & At(3, where)) == At(warp, where)
                     : mine == At((role ? role->first * 4 : 0) + warp, where);
  if_(At(isMine, where), [&] {
    Value isAlone =
        state.has("elect.sync") ? elect(where) : lane_id(where) == At(0, where);
    if_(At(isAlone, where), [&] {
      llvm::SaveAndRestore alone(state.isOneThread, true);
      body();
    });
  });
}

} // namespace kiln
