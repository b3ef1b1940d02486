// DependentLaunch: griddepcontrol, one instruction each.
#include "dsl/State.h"
#include "kiln/dependent_launch.h"

namespace kiln {

static void control(mlir::NVVM::GridDepActionKind kind,
                    const std::source_location &where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::GriddepcontrolOp::create(state.builder, state.at(where), kind);
}

void wait_for_dependencies(std::source_location where) {
  control(mlir::NVVM::GridDepActionKind::wait, where);
}

void launch_dependents(std::source_location where) {
  control(mlir::NVVM::GridDepActionKind::launch_dependents, where);
}

} // namespace kiln
