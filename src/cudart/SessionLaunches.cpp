// SessionLaunches: launches of the program: which are checked, in which orders,
// and which are written to files.
#include "cudart/Session.h"
#include "support/text/Demangle.h"
#include "support/Error.h"

#include <algorithm>
#include <set>

namespace kiln::cudart {

LaunchDescription Session::describe(const Launch &launch) {
  Function &function = *launch.function;
  const EntryInfo &entry = function.entry();
  LaunchDescription description;
  description.name = function.name;
  description.module = function.module->share();
  description.grid = launch.grid;
  description.block = launch.block;
  description.cluster = launch.cluster;
  description.dynamic_smem_bytes = launch.dynamicSmemBytes;
  description.cooperative = launch.isCooperative;
  for (std::size_t i = 0; i < entry.parameter_bytes.size(); ++i) {
    const auto *from =
        launch.packed ? static_cast<const std::byte *>(launch.packed) +
                            entry.parameter_offsets[i]
                      : static_cast<const std::byte *>(launch.parameters[i]);
    if (launch.packed && entry.parameter_offsets[i] + entry.parameter_bytes[i] >
                             launch.packedBytes)
      userError("{} takes {} bytes of parameters and was given {}",
                function.name, entry.parameter_offsets.back(),
                launch.packedBytes);
    description.parameters.push_back(
        {std::vector<std::byte>(from, from + entry.parameter_bytes[i])});
  }
  return description;
}

bool Session::isChosen(const std::string &kernel, std::uint64_t number) const {
  if (!launches_.empty() &&
      std::find(launches_.begin(), launches_.end(), number) == launches_.end())
    return false;
  return !kernels_ || std::regex_search(kernel, *kernels_);
}

SimOptions Session::optionsFor(bool isChecked) const {
  SimOptions options = options_;
  options.checks = isChecked;
  return options;
}

namespace {
/// What the orders of one launch have found, each finding once.
struct Orders {
  std::mutex mutex;
  LaunchResult all;
  std::set<std::pair<std::string, int>> told;
  bool hasEnded = false; ///< the order at hand
  bool isLeft = false;   ///< it waits for others, and is the last one

  void take(LaunchResult result) {
    for (Finding &finding : result.findings)
      if (told.emplace(finding.id, finding.ptx_line).second)
        all.findings.push_back(std::move(finding));
    all.is_finished &= result.is_finished;
  }
};
} // namespace

bool Session::runInAllOrders(const LaunchDescription &description,
                             const Stream &stream, const Finished &finished) {
  std::unique_ptr<SimSnapshot> before = snapshot_sim(device());
  auto lock = before->hold();
  if (!before->is_idle())
    return false;
  auto orders = std::make_shared<Orders>();
  isCheckedNow_ = true;
  for (Interleaving order : {Interleaving::lazy, Interleaving::random, Interleaving::eager}) {
    SimOptions options = optionsFor(true);
    options.interleaving = order;
    if (order != Interleaving::eager)
      options.print = [](const std::string &) {}; // the last one prints
    set_sim_options(device(), options);
    orders->hasEnded = false;
    device().enqueue(description, stream,
                     [orders, finished](LaunchResult result) {
                       std::lock_guard lock(orders->mutex);
                       orders->take(std::move(result));
                       orders->hasEnded = true;
                       if (orders->isLeft)
                         finished(orders->all);
                     });
    std::lock_guard guard(orders->mutex);
    if (!orders->hasEnded) {
      // It waits for the host or another launch, who come after this.
      orders->isLeft = true;
      set_sim_options(device(), optionsFor(true));
      return true;
    }
    if (order != Interleaving::eager)
      before->restore();
  }
  finished(orders->all);
  return true;
}

void Session::run(const LaunchDescription &description, const LaunchNote &note,
                  const Stream &stream, Finished finished) {
  std::lock_guard lock(optionsMutex_);
  if (isAllOrders_ && note.isChecked &&
      runInAllOrders(description, stream, finished))
    return;
  if (device().kind() == DeviceKind::sim && isCheckedNow_ != note.isChecked) {
    set_sim_options(device(), optionsFor(note.isChecked));
    isCheckedNow_ = note.isChecked;
  }
  device().enqueue(description, stream, std::move(finished));
}

Session::Finished Session::capturing(const LaunchDescription &description,
                                     const LaunchNote &note,
                                     const Launch &launch, Finished finished) {
  if (!device().is_done(launch.stream)) {
    findings_.sayOnce(fmt::format(
        "launch {} of {} was not captured: what is before it in its stream "
        "waits for others",
        note.number, note.kernel));
    return finished;
  }
  std::vector<std::string> ptx;
  const ProgramModule &module = *launch.function->module;
  if (!findings_.attempt([&] { ptx = capture_->addModule(module.texts()); }))
    return finished;
  std::shared_ptr<SimSnapshot> before = snapshot_sim(device());
  return [this, description, note, ptx, before,
          finished = std::move(finished)](LaunchResult result) {
    if (findings_.attempt(
            [&] { capture_->write(note, description, ptx, *before); }))
      findings_.countCaptured();
    finished(std::move(result));
  };
}

void Session::launch(const Launch &launch) {
  Function &function = *launch.function;
  {
    std::lock_guard lock(mutex_);
    if (function.shown.empty())
      function.shown = demangle(function.name);
  }
  LaunchNote note{++launchCount_, function.shown, launch.grid, launch.block,
                  true};
  bool isSim = device().kind() == DeviceKind::sim;
  bool isWanted = isSim && isChosen(note.kernel, note.number);
  note.isChecked = isWanted && options_.checks;
  try {
    LaunchDescription description = describe(launch);
    note.isTimed = !isSim && findings_.hasReport();
    if (note.isTimed)
      return findings_.take(note, device().launch(description, launch.stream));
    Finished finished = [this, note](const LaunchResult &result) {
      findings_.take(note, result);
    };
    if (isWanted && capture_)
      finished = capturing(description, note, launch, std::move(finished));
    run(description, note, launch.stream, std::move(finished));
  } catch (const Error &error) {
    findings_.refuse(note, error.message());
    throw;
  }
}

} // namespace kiln::cudart
