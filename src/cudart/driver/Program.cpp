// Program: what those who load this library by hand ask of Kiln itself: the
// Python package, which runs other people's scripts.
#include "cudart/driver/Driver.h"

#include <string>

using namespace kiln::cudart;

/// The report that was taken last.
static kiln::Report &takenReport() {
  static auto *report = new kiln::Report; // NOLINT: never destroyed
  return *report;
}

/// Keep reports of launches from now on, or no longer.
KILN_CUDA void kilnCudaRecord(int isOn) {
  Session::get().findings().record(isOn != 0);
}
/// Take what was kept since the last call: how many launches it has. One thread
/// at a time does so.
KILN_CUDA std::uint64_t kilnCudaTakeReport() {
  takenReport() = Session::get().findings().takeReport();
  return takenReport().launch_count;
}
/// What was taken, as "json", "sarif" or else text; good until the next call.
KILN_CUDA const char *kilnCudaReportText(const char *format) {
  static auto *text = new std::string; // NOLINT: likewise
  std::string_view name = format;
  *text = name == "json"    ? takenReport().to_json()
          : name == "sarif" ? takenReport().to_sarif()
                            : takenReport().to_text();
  return text->c_str();
}
/// A finding of it, as a line; null: there are not so many.
KILN_CUDA const char *kilnCudaFindingText(std::uint64_t index) {
  static auto *text = new std::string; // NOLINT: likewise
  if (index >= takenReport().findings.size())
    return nullptr;
  *text = takenReport().findings[index].to_string();
  return text->c_str();
}

/// What the program shall exit with where it says 0 itself: kiln::ExitStatus.
KILN_CUDA int kilnCudaExitStatus() {
  return static_cast<int>(Session::get().findings().exitStatus());
}
