// IssuedOnce: refuse a copy that every thread of a role would issue alike.
//
// The hardware does not fail: the bytes come once for each thread, and an
// mbarrier that counts them once is over too early, or never. Only what is sure
// is refused: all operands are the same in every thread, and no condition
// around the copy depends on the thread. A value that this cannot tell, a Var
// for one, counts as different.
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln {

/// Whether an operation gives every thread of a CTA the same where its operands
/// are the same.
static bool keepsUniform(mlir::Operation &op) {
  if (op.getNumRegions() > 0)
    return false;
  if (op.getName().getDialectNamespace() ==
      mlir::arith::ArithDialect::getDialectNamespace())
    return true;
  return mlir::isa<mlir::LLVM::GEPOp, mlir::LLVM::AddressOfOp,
                   mlir::LLVM::PtrToIntOp, mlir::LLVM::IntToPtrOp,
                   mlir::LLVM::AddrSpaceCastOp, mlir::NVVM::BlockIdXOp,
                   mlir::NVVM::BlockIdYOp, mlir::NVVM::BlockIdZOp,
                   mlir::NVVM::GridDimXOp, mlir::NVVM::GridDimYOp,
                   mlir::NVVM::GridDimZOp, mlir::NVVM::ClusterId>(op);
}

/// Whether a value is surely the same in all threads of a CTA; `depth`: how
/// many operations are looked through.
static bool isUniform(mlir::Value value, int depth = 32) {
  if (depth == 0)
    return false;
  auto areUniform = [&](mlir::ValueRange values) {
    return llvm::all_of(values, [&](mlir::Value operand) {
      return isUniform(operand, depth - 1);
    });
  };
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
    mlir::Operation *owner = argument.getOwner()->getParentOp();
    if (mlir::isa<mlir::LLVM::LLVMFuncOp>(owner))
      return true;
    auto loop = mlir::dyn_cast<mlir::scf::ForOp>(owner);
    return loop && argument == loop.getInductionVar() &&
           areUniform(
               {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
  }
  mlir::Operation &op = *value.getDefiningOp();
  return keepsUniform(op) && areUniform(op.getOperands());
}

/// Whether something around this place may choose among the threads of a role.
static bool isChosen(KernelBuilder::State &state) {
  if (state.isOneThread || state.contract.threads() == 1)
    return true;
  if (state.predicate && !isUniform(state.predicate))
    return true;
  for (mlir::Operation *op = state.builder.getInsertionBlock()->getParentOp();
       op != state.function; op = op->getParentOp()) {
    // A role chooses whole warpgroups.
    if (state.currentRole && op->getBlock() == state.entry)
      continue;
    auto branch = mlir::dyn_cast<mlir::scf::IfOp>(op);
    auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op);
    if (!loop && !(branch && isUniform(branch.getCondition())))
      return true;
    if (loop && !isUniform(loop.getInductionVar()))
      return true;
  }
  return false;
}

void requireOneThread(KernelBuilder::State &state, const char *what,
                      mlir::ValueRange operands, const Where &where) {
  if (isChosen(state) ||
      !llvm::all_of(operands, [](mlir::Value v) { return isUniform(v); }))
    return;
  int threads = state.currentRole ? state.roles[*state.currentRole].count * 128
                                  : state.contract.threads();
  userErrorAt(where,
              "{} stands where each of {} threads issues the same copy; one "
              "thread copies for all: put it inside one_thread",
              what, threads);
}

} // namespace kiln
