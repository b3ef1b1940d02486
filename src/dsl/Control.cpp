// Control: loops and branches, and the roles and elections built on them.
#include "kiln/control.h"
#include "dsl/State.h"
#include "kiln/threads.h"
#include "support/Error.h"

#include "llvm/Support/SaveAndRestore.h"

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
static void requireBody(bool hasBody, const char *what,
                        const std::source_location &where) {
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

void for_range(At lower, At upper, const std::function<void(Value)> &body) {
  for_range(lower, upper, At(1, upper.where()), body);
}

void for_range(At lower, At upper, At step,
               const std::function<void(Value)> &body) {
  auto &state = KernelBuilder::State::current(upper.where());
  Type type = loopType(lower, upper);
  if (is_float(type) || type == Type::i1)
    userErrorAt(upper.where(), "for_range counts in integers, not in {}",
                name(type));
  if (auto *literal = std::get_if<std::int64_t>(&step.operand());
      literal && *literal < 1)
    userErrorAt(step.where(),
                "for_range has a step of {}; it must be at "
                "least 1",
                *literal);
  requireBody(bool(body), "for_range", upper.where());
  auto loop = mlir::scf::ForOp::create(
      state.builder, state.at(upper.where()), state.use(lower, type),
      state.use(upper, type), state.use(step, type), mlir::ValueRange(),
      nullptr, /*unsignedCmp=*/is_unsigned_integer(type));
  runInside(state, loop.getBody(),
            [&] { body(state.wrap(loop.getInductionVar(), type)); });
}

void if_(At condition, const std::function<void()> &then,
         const std::function<void()> &otherwise) {
  auto &state = KernelBuilder::State::current(condition.where());
  requireBody(bool(then), "if_", condition.where());
  mlir::Value test = state.use(condition, Type::i1);
  auto branch = mlir::scf::IfOp::create(
      state.builder, state.at(condition.where()), test, bool(otherwise));
  runInside(state, branch.thenBlock(), then);
  if (otherwise)
    runInside(state, branch.elseBlock(), otherwise);
}

void while_(const std::function<Value()> &condition,
            const std::function<void()> &body, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  requireBody(condition && body, "while_", where);
  mlir::Location loc = state.at(where);
  auto loop = mlir::scf::WhileOp::create(state.builder, loc, mlir::TypeRange(),
                                         mlir::ValueRange());
  runInside(state, state.builder.createBlock(&loop.getBefore()), [&] {
    mlir::Value test = state.use(At(condition(), where), Type::i1);
    mlir::scf::ConditionOp::create(state.builder, loc, test,
                                   mlir::ValueRange());
  });
  runInside(state, state.builder.createBlock(&loop.getAfter()), [&] {
    body();
    mlir::scf::YieldOp::create(state.builder, loc);
  });
  state.builder.setInsertionPointAfter(loop);
}

void warpgroup(int index, const std::function<void()> &body,
               std::source_location where) {
  warpgroup(index, RoleOptions{}, body, where);
}

/// Refuse a role that cannot be.
static void checkRole(const KernelBuilder::State &state, int index,
                      const RoleOptions &options,
                      const std::source_location &where) {
  int groups = state.contract.threads() / 128;
  if (index < 0 || index >= groups)
    userErrorAt(where, "kernel {} has {} warpgroups; there is no warpgroup {}",
                state.name, groups, index);
  if (state.builder.getInsertionBlock() != state.entry)
    userErrorAt(where,
                "the role of warpgroup {} begins inside another body; "
                "roles stand at the top level of a kernel",
                index);
  for (const Role &role : state.roles)
    if (role.index == index)
      userErrorAt(where, "warpgroup {} has a role already, at {}:{}", index,
                  role.where.file, role.where.line);
  if (!options.registers)
    return;
  int registers = *options.registers;
  if (registers < 24 || registers > 256 || registers % 8 != 0)
    userErrorAt(where,
                "warpgroup {} asks for {} registers; setmaxnreg takes "
                "multiples of 8 from 24 to 256",
                index, registers);
}

void warpgroup(int index, const RoleOptions &options,
               const std::function<void()> &body, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  requireBody(bool(body), "warpgroup", where);
  checkRole(state, index, options, where);
  state.roles.push_back({index, options.registers, where, nullptr});
  std::size_t role = state.roles.size() - 1;
  Value isMine = warpgroup_id(where) == At(index, where);
  if_(At(isMine, where), [&] {
    if (options.registers)
      // Which way it goes is known when all roles are (checkRegisterPlan).
      state.roles[role].op = mlir::NVVM::SetMaxRegisterOp::create(
          state.builder, state.at(where), *options.registers,
          mlir::NVVM::SetMaxRegisterAction::decrease);
    llvm::SaveAndRestore inRole(state.currentRole, std::optional(index));
    body();
  });
}

void one_thread(const std::function<void()> &body, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  requireBody(bool(body), "one_thread", where);
  if (state.isOneThread)
    return body();
  Value warp = warp_id(where);
  int first = state.currentRole.value_or(0) * 4;
  Value isFirst = warp == At(first, where);
  if_(At(isFirst, where), [&] {
    if_(At(elect(where), where), [&] {
      llvm::SaveAndRestore alone(state.isOneThread, true);
      body();
    });
  });
}

} // namespace kiln
