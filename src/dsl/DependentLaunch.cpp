// DependentLaunch: griddepcontrol, one instruction each.
#include "dsl/State.h"
#include "kiln/dependent_launch.h"

namespace kiln {

static void control(const char *text, const std::source_location &where) {
  KernelBuilder::State::current(where).inlineAsm(text, "~{memory}", {}, nullptr,
                                                 where);
}

void wait_for_dependencies(std::source_location where) {
  control("griddepcontrol.wait;", where);
}

void launch_dependents(std::source_location where) {
  control("griddepcontrol.launch_dependents;", where);
}

} // namespace kiln
