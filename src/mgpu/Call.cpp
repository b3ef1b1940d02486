// Call: errors told, and the exit status that says so.
#include "mgpu/Call.h"

#include <cstdlib>
#include <new>

namespace kiln::mgpu {

static bool hasEnded = false;

/// At the end of the process: where it says 0 and something was wrong, leave
/// with another status. glibc goes on with the handlers that are left.
static void leave(int status, void *) {
  hasEnded = true;
  cudart::Findings &findings = Session::get().findings();
  findings.conclude();
  if (status == 0 && findings.exitStatus() != ExitStatus::ok)
    std::exit(static_cast<int>(findings.exitStatus()));
}

Session &session() {
  static Session &only = []() -> Session & {
    Session &made = Session::get();
    made.serveMlir();
    on_exit(leave, nullptr);
    return made;
  }();
  return only;
}

void failed(const char *name, std::exception_ptr thrown) {
  auto tell = [&](const char *message, ExitStatus status) {
    session().findings().fail(fmt::format("{}: {}", name, message), status);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const Error &error) {
    tell(error.what(), error.exit_status());
  } catch (const std::bad_alloc &) {
    tell("there is not enough memory", ExitStatus::machine);
  } catch (const std::exception &error) {
    tell(error.what(), ExitStatus::internal);
  }
}

bool isEnding() { return hasEnded; }

bool isBroken() {
  cudart::Findings &findings = session().findings();
  if (!findings.broken())
    return false;
  findings.sayOnce("an error has ended a launch: launches and copies that "
                   "follow are left out, as on a GPU");
  return true;
}

void end() {
  std::fflush(nullptr);
  cudart::Findings &findings = session().findings();
  findings.conclude();
  std::_Exit(static_cast<int>(findings.exitStatus()));
}

/// Every function that Kiln does not have does this.
KILN_MGPU void *kilnMgpuNotSupported(const char *name) {
  session().findings().fail(
      fmt::format("{} is not supported by Kiln: products of sparse matrices "
                  "need NVIDIA's cuSPARSE; lower them to loops (mlir-opt "
                  "--sparsifier without its option enable-gpu-libgen)",
                  name),
      ExitStatus::refused);
  return nullptr;
}

} // namespace kiln::mgpu
