// Checks: what is wrong with a kernel as a whole, said before it is lowered.
//
// These are the mistakes the hardware does not report: it hangs, or refuses the
// launch with a number.
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln {

static int roundUp(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// "warpgroup 0: 232, warpgroup 1: 40"
static std::string describe(const std::vector<Role> &roles) {
  std::string text;
  for (const Role &role : roles)
    if (role.registers)
      for (int i = role.first; i < role.first + role.count; ++i)
        text += fmt::format("{}warpgroup {}: {}", text.empty() ? "" : ", ", i,
                            *role.registers);
  return text;
}

/// Give the kernel the registers at entry that its roles need together, and
/// turn each role's budget into an increase or a decrease from there.
///
/// setmaxnreg moves registers between the warpgroups of a CTA; the CTA never
/// owns more than it was launched with. A warpgroup that asks for more than the
/// others gave back waits forever.
void checkRegisterPlan(KernelBuilder::State &state) {
  int planned = 0, wanted = 0;
  for (const Role &role : state.roles) {
    if (!role.registers)
      continue;
    planned += role.count;
    wanted += role.count * *role.registers;
  }
  if (planned == 0)
    return;
  int threads = state.contract.threads();
  int atEntry = roundUp((wanted + planned - 1) / planned, 8);
  int owned = state.device.registers_per_sm / state.contract.ctas_per_sm;
  // ptxas refuses a wgmma whose registers exceed those at entry (C7602), also
  // where its warpgroup has asked for more by then.
  if (state.largestInstruction)
    atEntry =
        std::max(atEntry, std::min(roundUp(state.largestInstruction + 32, 8),
                                   owned / threads / 8 * 8));
  if (atEntry * threads > owned) {
    int groups = threads / 128;
    int perThread = owned / threads / 8 * 8;
    userErrorAt(
        state.roles.front().where,
        "the warpgroups of kernel {} ask for {} registers ({} per thread), "
        "and a CTA of {} threads can own {} ({} CTA per SM); setmaxnreg would "
        "wait forever: lower the budgets by {} in sum",
        state.name, atEntry * threads, describe(state.roles), threads,
        perThread * threads, state.contract.ctas_per_sm,
        roundUp(wanted - perThread * groups, 8));
  }
  atEntry = std::min(atEntry, state.device.max_registers_per_thread);
  state.contract.registers_at_entry = atEntry;
  for (Role &role : state.roles) {
    if (!role.registers)
      continue;
    auto op = mlir::cast<mlir::NVVM::SetMaxRegisterOp>(role.setRegisters);
    if (*role.registers == atEntry)
      op.erase();
    else
      op.setAction(*role.registers > atEntry
                       ? mlir::NVVM::SetMaxRegisterAction::increase
                       : mlir::NVVM::SetMaxRegisterAction::decrease);
  }
}

void checkSharedMemory(const KernelBuilder::State &state) {
  int limit = state.device.max_smem_per_cta_bytes;
  int perSm = state.device.smem_per_sm_bytes / state.contract.ctas_per_sm -
              state.device.reserved_smem_per_cta_bytes;
  limit = std::min(limit, perSm);
  if (state.smemBytes <= limit)
    return;
  std::string list;
  for (const SmemAllocation &piece : state.smem)
    list += fmt::format("\n  {} bytes at {}: {} ({}:{})", piece.bytes(),
                        piece.offset, piece.what, piece.where.file,
                        piece.where.line);
  userErrorAt(state.where,
              "kernel {} needs {} bytes of shared memory, {} more than the {} "
              "a CTA can have on {} at {} per SM:{}",
              state.name, state.smemBytes, state.smemBytes - limit, limit,
              state.options.target, state.contract.ctas_per_sm, list);
}

void checkBarriers(const KernelBuilder::State &state) {
  for (const BarrierUse &use : state.barriers) {
    if (use.firstWait.is_known() && !use.hasArrive)
      userErrorAt(use.firstWait,
                  "nobody arrives at the mbarrier declared at {}:{}; this "
                  "wait would never end",
                  use.where.file, use.where.line);
    if (use.hasArrive && !use.hasInit)
      userErrorAt(use.where, "the mbarrier declared here is used and never "
                             "initialised; call init first");
  }
}

/// Every argument a Dim of the contract names must be one of the kernel's.
static void checkDim(const KernelBuilder::State &state, const Dim &dim,
                     const std::string &what) {
  if (dim.op() == Dim::Op::constant)
    return;
  if (dim.op() != Dim::Op::argument) {
    checkDim(state, dim.lhs(), what);
    checkDim(state, dim.rhs(), what);
    return;
  }
  const std::string &name = dim.argument_name();
  if (name != "sms" && !state.dimArguments.contains(name))
    userErrorAt(state.where,
                "{} of kernel {} depends on '{}', which is no "
                "dimension of it; declare it with "
                "KernelBuilder::dim",
                what, state.name, name);
}

void checkDims(const KernelBuilder::State &state) {
  for (const Dim &dim : state.contract.grid)
    checkDim(state, dim, "the grid");
  for (const ArgumentSpec &argument : state.contract.arguments)
    for (const Dim &dim : argument.shape)
      checkDim(state, dim, fmt::format("the shape of '{}'", argument.name));
}

void checkGrid(const KernelBuilder::State &state) {
  static constexpr const char *kAxes[] = {"x", "y", "z"};
  for (int axis = 0; axis < 3; ++axis) {
    const Dim &grid = state.contract.grid[axis];
    int most = state.device.max_grid[axis];
    if (grid.is_constant() && (grid.constant() < 1 || grid.constant() > most))
      userErrorAt(state.where,
                  "the grid of kernel {} has {} CTAs along {}; 1 to {} are "
                  "possible",
                  state.name, grid.constant(), kAxes[axis], most);
  }
}

} // namespace kiln
