// Findings: sentences on stderr, counts in the status page, a report at the end.
#include "cudart/Findings.h"
#include "cudart/Forked.h"
#include "cudart/LaunchWatch.h"
#include "support/text/BriefName.h"
#include "kiln/check/explanation.h"
#include "support/Error.h"
#include "support/Knobs.h"
#include "support/LaunchShape.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::cudart {

/// CUDA's numbers for launches that ended early: an assertion has its own.
static constexpr int kAssert = 710, kLaunchFailure = 719;

/// One write, so that lines of several threads stay whole; a program's own
/// buffers are not touched.
static void tell(const std::string &text) {
  LaunchWatch::get().wipe();
  const char *at = text.data();
  for (std::size_t left = text.size(); left > 0;) {
    ssize_t count = ::write(STDERR_FILENO, at, left);
    if (count <= 0)
      return;
    at += count;
    left -= static_cast<std::size_t>(count);
  }
}

/// The command's page; null where there is none.
static RunStatus *mapStatus() {
  std::optional<std::string> path = value(Knob::status);
  int file = path ? ::open(path->c_str(), O_RDWR | O_CLOEXEC) : -1;
  if (file < 0)
    return nullptr;
  bool isLargeEnough =
      ::lseek(file, 0, SEEK_END) >= static_cast<off_t>(sizeof(RunStatus));
  void *page = isLargeEnough
                   ? ::mmap(nullptr, sizeof(RunStatus), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file, 0)
                   : MAP_FAILED;
  ::close(file);
  return page == MAP_FAILED ? nullptr : static_cast<RunStatus *>(page);
}

Findings::Findings() {
  if (RunStatus *page = mapStatus())
    status_ = page;
  status().magic = RunStatus::kMagic;
  report_.is_brief = true;
}

std::string Findings::describe(const LaunchNote &note) const {
  return fmt::format("launch {} of {}, grid {}, block {}", note.number,
                     isVerbose_ ? note.kernel : briefName(note.kernel),
                     formatShape(note.grid), formatShape(note.block));
}

std::string Findings::textOf(Finding finding) const {
  auto shorten = [](std::vector<Finding::Frame> &stack) {
    for (Finding::Frame &frame : stack)
      frame.function = briefName(frame.function);
  };
  if (!isVerbose_) {
    shorten(finding.stack);
    if (finding.other)
      shorten(finding.other->stack);
  }
  return finding.to_string();
}

/// The finding that has ended a launch; null: none has.
static const Finding *endedBy(const Exploration &exploration) {
  for (const ExploredRun &run : exploration.runs)
    for (const LaunchResult &result : run.launches)
      if (!result.is_finished && !result.ok())
        return &result.findings.back();
  return nullptr;
}

void Findings::tellFresh(const LaunchNote &note,
                         const std::vector<std::size_t> &fresh) {
  if (fresh.empty())
    return;
  std::string text = fmt::format("kiln: {}:\n", describe(note));
  for (std::size_t index : fresh) {
    const Finding &finding = report_.findings[index];
    text += fmt::format("  {}\n", textOf(finding));
    status().errors += finding.grade == Finding::Grade::error;
    status().warnings += finding.grade == Finding::Grade::warning;
  }
  tell(text);
}

void Findings::take(const LaunchNote &note, const Exploration &exploration) {
  std::unique_lock lock(mutex_);
  ++status().launches;
  status().checked += note.isChecked;
  KernelRow &row = kernels_[note.kernel];
  ++row.launches;
  row.ctas += volume(note.grid);
  for (const ExploredRun &run : exploration.runs)
    for (const LaunchResult &result : run.launches) {
      row.instructions += result.instructions;
      row.timeUs += result.time_us;
    }
  ReportedLaunch launch{.number = note.number,
                        .kernel = note.kernel,
                        .grid = note.grid,
                        .block = note.block,
                        .cluster = note.cluster,
                        .is_checked = note.isChecked};
  if (recorded_)
    recorded_->add(launch, exploration);
  std::vector<std::size_t> fresh = report_.add(std::move(launch), exploration);
  row.findings += fresh.size();
  tellFresh(note, fresh);
  const Finding *finding = endedBy(exploration);
  if (!finding)
    return;
  ++status().ended;
  broken_ = finding->id == "assert" ? kAssert : kLaunchFailure;
  lock.unlock();
  std::string limit = finding->id;
  if (limit.ends_with("-limit")) {
    std::replace(limit.begin(), limit.end(), '-', ' ');
    sayOnce(fmt::format("launch {} was ended by its {}: later calls return "
                        "cudaErrorLaunchFailure because of it",
                        note.number, limit));
  }
}

void Findings::refuseForTime(const LaunchNote &note, double limitS) {
  ++status().refused;
  broken_ = kLaunchFailure;
  sayOnce(fmt::format("launch {} was refused: the program's {} s are over "
                      "(--total-time-limit), and later calls return "
                      "cudaErrorLaunchFailure because of it",
                      note.number, limitS));
}

void Findings::summarize() {
  if (!hasSummary_ || kernels_.empty())
    return;
  std::vector<std::pair<std::string, KernelRow>> rows(kernels_.begin(),
                                                      kernels_.end());
  std::sort(rows.begin(), rows.end(), [](const auto &one, const auto &other) {
    return one.second.timeUs > other.second.timeUs;
  });
  std::string text = fmt::format("kiln: {:>8} {:>10} {:>14} {:>9} {:>8}  {}\n",
                                 "launches", "CTAs", "instructions", "seconds",
                                 "findings", "kernel");
  for (const auto &[kernel, row] : rows)
    text += fmt::format("kiln: {:8} {:10} {:14} {:9.3f} {:8}  {}\n",
                        row.launches, row.ctas, row.instructions,
                        row.timeUs / 1e6, row.findings,
                        isVerbose_ ? kernel : briefName(kernel));
  tell(text);
}

void Findings::tellHost(Finding finding) {
  std::lock_guard lock(mutex_);
  if (explain(finding.id).ends_launch)
    broken_ = kLaunchFailure;
  std::string text = fmt::format("kiln: {}\n", finding.to_string());
  bool isError = finding.grade == Finding::Grade::error;
  if (!report_.add(std::move(finding)))
    return;
  ++(isError ? status().errors : status().warnings);
  tell(text);
}

void Findings::refuse(const LaunchNote &note, const std::string &why) {
  std::lock_guard lock(mutex_);
  ++status().refused;
  tell(fmt::format("kiln: {} was refused: {}\n", describe(note), why));
}

void Findings::fail(const std::string &sentence, ExitStatus failure) {
  {
    std::lock_guard lock(mutex_);
    ++status().failed;
    if (failed_ == ExitStatus::ok)
      failed_ = failure;
  }
  sayOnce(sentence);
}

void Findings::unsupported(const std::string &name, const std::string &why,
                           const std::string &returned) {
  if (isForkedChild())
    return;
  {
    std::lock_guard lock(mutex_);
    status().count_unsupported(name);
  }
  sayOnce(fmt::format("{} is not supported by Kiln; it returned {}{}{}", name,
                      returned, why.empty() ? "" : ": ", why));
}

bool Findings::attempt(const std::function<void()> &write) {
  try {
    write();
    return true;
  } catch (const Error &error) {
    ++status().unwritten;
    sayOnce(fmt::format("a launch was not captured: {}", error.message()));
    return false;
  }
}

ExitStatus Findings::exitStatus() {
  std::lock_guard lock(mutex_);
  if (status().errors)
    return ExitStatus::finding;
  if (failed_ != ExitStatus::ok)
    return failed_;
  return status().unwritten ? ExitStatus::machine : ExitStatus::ok;
}

void Findings::sayOnce(const std::string &sentence) {
  if (isForkedChild())
    return; // its parent may hold the lock
  std::lock_guard lock(mutex_);
  if (std::find(said_.begin(), said_.end(), sentence) != said_.end())
    return;
  said_.push_back(sentence);
  tell(fmt::format("kiln: {}\n", sentence));
}

void Findings::saveReport() {
  auto attempt = [&](const char *what, const std::function<void()> &save) {
    try {
      save();
    } catch (const Error &error) {
      status().unwritten = 1;
      tell(fmt::format("kiln: the {} was not written: {}\n", what,
                       error.message()));
    }
  };
  if (!reportPath_.empty())
    attempt("report", [&] { report_.save(reportPath_); });
  if (profilePath_ == "-") // stdout is the program's
    tell(to_table(report_.profiles));
  else if (!profilePath_.empty())
    attempt("profile", [&] { save_profile(report_.profiles, profilePath_); });
}

void Findings::record(bool isOn) {
  std::lock_guard lock(mutex_);
  if (!isOn)
    recorded_.reset();
  else if (!recorded_)
    recorded_.emplace().max_findings = report_.max_findings;
}

Report Findings::takeReport() {
  std::lock_guard lock(mutex_);
  Report taken = recorded_ ? std::move(*recorded_) : Report();
  if (recorded_)
    recorded_.emplace().max_findings = report_.max_findings;
  return taken;
}

void Findings::conclude() {
  if (isForkedChild())
    return; // the findings are its parent's
  std::lock_guard lock(mutex_);
  if (std::exchange(isConcluded_, true))
    return;
  for (const Finding &finding : report_.findings)
    if (finding.launches.size() > 1)
      tell(fmt::format("kiln: {} {} was found in {} launches\n",
                       name(finding.grade), finding.id,
                       finding.launches.size()));
  if (report_.findings_left_out)
    tell(fmt::format("kiln: {}\n",
                     findings_left_out_text(report_.findings_left_out)));
  summarize();
  saveReport();
  // The command says it itself.
  if (status_ == &own_ && (status().launches || status().unsupported))
    tell(fmt::format("kiln: {}\n", status().to_string()));
}

} // namespace kiln::cudart
