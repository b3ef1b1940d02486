// DependentLaunch: griddepcontrol, one instruction each.
#include "dsl/kernel/State.h"
#include "kiln/language/threads/dependent_launch.h"

namespace kiln {

static void control(const char *text, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (state.has("griddepcontrol"))
    state.inlineAsm(text, "~{memory}", {}, nullptr, where);
}

void wait_for_dependencies(Where where) {
  control("griddepcontrol.wait;", where);
}

void launch_dependents(Where where) {
  control("griddepcontrol.launch_dependents;", where);
}

} // namespace kiln
