// Predicate: a condition in front of instructions instead of a branch around.
//
// Accumulators in flight must meet no branch, and a branch costs more than a
// guard: PTX can put @p in front of one instruction. Every atom that is PTX
// text gets it here, once; what cannot have it is found afterwards and refused.
#include "dsl/kernel/State.h"
#include "kiln/language/value/control.h"
#include "support/Error.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/SaveAndRestore.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <algorithm>

namespace kiln {

/// Add `@p` to an instruction's text, p to its operands, and to each result
/// that shares no register with an operand a zero to start from.
GuardedAsm guardAsm(KernelBuilder::State &state, const std::string &text,
                    const std::string &constraints, mlir::ValueRange operands,
                    mlir::Type result, const Where &where) {
  if (std::count(text.begin(), text.end(), ';') != 1 || text.back() != ';')
    userErrorAt(where, "what stands here is more than one instruction, and a "
                       "predicate guards one; use if_ around it");
  GuardedAsm guarded{"", "", {operands.begin(), operands.end()}};
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(constraints).split(parts, ',', -1, /*KeepEmpty=*/false);
  llvm::SmallVector<std::string> kept, clobbers;
  llvm::SmallVector<bool> isTied;
  for (llvm::StringRef part : parts) {
    unsigned output = 0;
    if (part.starts_with("="))
      isTied.push_back(false);
    else if (!part.getAsInteger(10, output))
      isTied[output] = true;
    (part.starts_with("~") ? clobbers : kept).push_back(part.str());
  }
  auto structure =
      mlir::dyn_cast_if_present<mlir::LLVM::LLVMStructType>(result);
  for (std::size_t i = 0; i < isTied.size(); ++i) {
    if (isTied[i])
      continue;
    mlir::Type type = structure ? structure.getBody()[i] : result;
    guarded.operands.push_back(mlir::arith::ConstantOp::create(
        state.builder, state.at(where), state.builder.getZeroAttr(type)));
    kept.push_back(std::to_string(i));
  }
  // LLVM numbers results and operands in the order of their constraints.
  guarded.text = fmt::format("@${} {}", kept.size(), text);
  guarded.operands.push_back(state.predicate);
  kept.push_back("b");
  kept.append(clobbers.begin(), clobbers.end());
  guarded.constraints = llvm::join(kept, ",");
  return guarded;
}

/// Whether `op` may stand among guarded instructions: it only computes, or has
/// its guard.
static bool isGuarded(mlir::Operation &op, mlir::Value predicate) {
  if (op.getNumRegions() > 0)
    return false;
  // MLIR does not say of these nvvm operations that they only compute.
  return mlir::isa<mlir::LLVM::InlineAsmOp, mlir::LLVM::CallIntrinsicOp,
                   mlir::LLVM::LoadOp, mlir::LLVM::AllocaOp, mlir::NVVM::MapaOp,
                   mlir::NVVM::ShflOp, mlir::NVVM::VoteSyncOp,
                   mlir::NVVM::ReduxOp, mlir::NVVM::ElectSyncOp>(op) ||
         llvm::is_contained(op.getOperands(), predicate) ||
         mlir::isMemoryEffectFree(&op);
}

/// Refuse what was built inside `predicated` and would be done in any case.
static void checkGuarded(mlir::Operation &op, mlir::Value predicate,
                         const Where &where) {
  if (isGuarded(op, predicate))
    return;
  if (mlir::isa<mlir::LLVM::StoreOp>(op))
    userErrorAt(where, "a Var is assigned inside predicated, which guards "
                       "instructions; assign it a select instead");
  userErrorAt(where,
              "{} stands inside predicated and takes no predicate; use if_ "
              "around it",
              op.getName().getStringRef().str());
}

void predicated(At condition, const std::function<void()> &body) {
  const Where &where = condition.where();
  auto &state = KernelBuilder::State::current(where);
  if (!body)
    userErrorAt(where, "predicated was given no body");
  mlir::Value test = state.use(condition, Type::i1);
  if (state.predicate)
    test = mlir::arith::AndIOp::create(state.builder, state.at(where),
                                       state.predicate, test);
  mlir::Block *block = state.builder.getInsertionBlock();
  auto end = state.builder.getInsertionPoint();
  mlir::Operation *before = end == block->begin() ? nullptr : &*std::prev(end);
  {
    llvm::SaveAndRestore guard(state.predicate, test);
    body();
  }
  auto first = before ? std::next(before->getIterator()) : block->begin();
  for (auto op = first; op != state.builder.getInsertionPoint(); ++op)
    checkGuarded(*op, test, where);
}

} // namespace kiln
