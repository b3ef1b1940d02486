// Ptxas: find ptxas, run it, remember its answer, and refuse slow code.
//
// What is remembered is the cubin and ptxas' own words, not our reading of
// them: a message that fails one caller and is allowed by the next is read anew
// each time, and a better reading needs no new run.
#include "kiln/run/assemble.h"
#include "ptx/tools/Diagnostics.h"
#include "ptx/Entries.h"
#include "ptx/tools/FindTool.h"
#include "ptx/tools/HoistedWaits.h"
#include "ptx/tools/Process.h"
#include "ptx/tools/TemporaryFolder.h"
#include "support/Cache.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/Knobs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

namespace fs = std::filesystem;

namespace kiln {

static constexpr std::chrono::seconds kVersionTimeLimit{30};
static constexpr std::chrono::minutes kAssembleTimeLimit{10};
/// Raised when the form of a cache entry or ptxas' arguments change.
static constexpr int kCacheSchema = 2;
/// What ptxas' messages call the PTX, whatever temporary folder it lay in.
static constexpr std::string_view kPtxName = "kernel.ptx";

/// A path that somebody wrote down must be right: to go on looking would hide
/// the mistake behind another version of ptxas.
static std::string checkExplicit(const std::string &path,
                                 std::string_view origin) {
  if (isExecutableFile(path))
    return path;
  std::error_code ignored;
  userError("{} names '{}' as ptxas, which {}; give the path of a ptxas, or "
            "nothing to have it looked for in CUDA_HOME/bin and on PATH",
            origin, path,
            fs::exists(path, ignored) ? "is not an executable file"
                                      : "does not exist");
}

std::optional<std::string> find_ptxas(const AssembleOptions &options) {
  if (!options.ptxas.empty())
    return checkExplicit(options.ptxas, "AssembleOptions::ptxas");
  if (std::optional<std::string> path = value(Knob::ptxas))
    return checkExplicit(*path, info(Knob::ptxas).variable);
  return findToolkitProgram("ptxas");
}

/// Ask ptxas for its version: the "13.0.88" of "..., release 13.0, V13.0.88".
static std::string askVersion(const std::string &ptxas) {
  ProcessResult result = runProcess({ptxas, "--version"}, kVersionTimeLimit);
  std::string_view text = result.output;
  for (std::size_t at = text.find(", V"); at != std::string_view::npos;
       at = text.find(", V", at + 1)) {
    std::string_view rest = text.substr(at + 3);
    std::string_view number =
        rest.substr(0, rest.find_first_not_of("0123456789."));
    if (result.exitCode == 0 && !number.empty())
      return std::string(number);
  }
  runtimeError("'{} --version' does not answer with a version such as "
               "'V13.0.88' (exit status {}); it said: {}",
               ptxas, result.exitCode, result.output);
}

/// The version of a ptxas, asked for once in this process for each state of
/// the file.
static std::string versionOf(const std::string &ptxas) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, fs::file_time_type>, std::string>
      versions;
  std::error_code ignored;
  std::pair key(ptxas, fs::last_write_time(ptxas, ignored));
  std::lock_guard lock(mutex);
  auto known = versions.find(key);
  if (known == versions.end())
    known = versions.emplace(key, askVersion(ptxas)).first;
  return known->second;
}

/// The entry whose resources are asked for. Throws where the PTX does not have
/// it or `asked` leaves a choice.
static std::string chooseEntry(std::string_view ptx, std::string_view asked) {
  std::vector<std::string> names = entryNames(ptx);
  if (names.empty())
    userError("the PTX has no .entry function; there is nothing to assemble "
              "in {} bytes of it",
              ptx.size());
  if (asked.empty() && names.size() == 1)
    return names.front();
  if (asked.empty())
    userError("the PTX has {} entries; say which one is meant: {}",
              names.size(), fmt::join(names, ", "));
  if (std::find(names.begin(), names.end(), asked) == names.end())
    userError("the PTX has no entry '{}'; it has {}", asked,
              fmt::join(names, ", "));
  return std::string(asked);
}

/// An allowance that can never apply is a slip of the pen, and would come to
/// light as an error the user believes to have allowed.
static void checkAllowed(const std::vector<std::string> &allow) {
  for (const std::string &id : allow) {
    bool isId = id.size() > 1 && id.front() == 'C' &&
                id.find_first_not_of("0123456789", 1) == std::string::npos;
    if (!isId)
      userError(
          "'{}' is not the id of a ptxas message; ids are written as C7508",
          id);
  }
}

namespace {

/// One run of ptxas: what the cache holds.
struct Run {
  std::string output;
  std::string cubin; ///< empty: ptxas failed
  int exitCode = 0;
};

} // namespace

/// What ptxas answers, and what is seen in its code, depends on this and
/// nothing else.
static std::string cacheKey(std::string_view ptx, const std::string &version,
                            const std::string &target, bool isLookedAt) {
  return hashHex(fmt::format("assemble {} {} {} {}{}", kCacheSchema, version,
                             target, hashHex(ptx),
                             isLookedAt ? " disassembled" : ""));
}

/// "<bytes of the output>\n", the output, the cubin.
static std::string encode(const Run &run) {
  return fmt::format("{}\n{}{}", run.output.size(), run.output, run.cubin);
}

/// The inverse of `encode`; nothing where the bytes are not of our making.
static std::optional<Run> decode(const std::string &bytes) {
  std::size_t outputBytes = 0;
  const char *end = bytes.data() + bytes.size();
  auto [at, error] = std::from_chars(bytes.data(), end, outputBytes);
  if (error != std::errc() || at == end || *at != '\n' ||
      outputBytes > static_cast<std::size_t>(end - at - 1))
    return std::nullopt;
  const char *cubin = at + 1 + outputBytes;
  return Run{std::string(at + 1, cubin), std::string(cubin, end)};
}

/// Replace each `from` in `text`.
static std::string replaceAll(std::string text, std::string_view from,
                              std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// The waits of a cubin that stand earlier than in its PTX, in the form of
/// ptxas' messages. Nothing where the disassembler does not know the code.
static std::string tellHoistedWaits(const std::string &nvdisasm,
                                    std::string_view ptx,
                                    const std::string &cubin) {
  ProcessResult shown = runProcess({nvdisasm, "--print-line-info-ptx", cubin},
                                   kAssembleTimeLimit);
  std::string text;
  if (shown.exitCode == 0)
    for (const HoistedWait &wait : findHoistedWaits(ptx, shown.output))
      text += describeAsPtxas(wait, kPtxName);
  return text;
}

/// Run ptxas on the PTX in a temporary folder, and look at its code with
/// `nvdisasm`, where there is one.
static Run runPtxas(const std::string &ptxas, std::string_view ptx,
                    const std::string &target,
                    const std::optional<std::string> &nvdisasm) {
  TemporaryFolder folder;
  std::string input = folder.write(kPtxName, ptx).string();
  std::string cubin = (folder.path() / "kernel.cubin").string();
  std::vector<std::string> command = {ptxas, "-v", "--gpu-name=" + target,
                                      input, "-o", cubin};
  if (nvdisasm)
    command.push_back("-lineinfo");
  ProcessResult result = runProcess(command, kAssembleTimeLimit);
  Run run;
  run.output = replaceAll(std::move(result.output), input, kPtxName);
  run.exitCode = result.exitCode;
  if (run.exitCode == 0)
    run.cubin = folder.read("kernel.cubin");
  if (run.exitCode == 0 && nvdisasm)
    run.output += tellHoistedWaits(*nvdisasm, ptx, cubin);
  return run;
}

/// The messages for which `matches` holds, each once, one below the other.
template <typename Predicate>
static std::string list(const std::vector<AssembleDiagnostic> &diagnostics,
                        Predicate matches) {
  std::vector<std::string> texts;
  for (const AssembleDiagnostic &diagnostic : diagnostics) {
    if (!matches(diagnostic))
      continue;
    std::string text = "\n  " + diagnostic.to_string();
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ""));
}

/// The place of the first message for which `matches` holds and that has one.
template <typename Predicate>
static SourceLine firstPlace(const std::vector<AssembleDiagnostic> &diagnostics,
                             Predicate matches) {
  for (const AssembleDiagnostic &diagnostic : diagnostics)
    if (matches(diagnostic) && diagnostic.where.is_known())
      return diagnostic.where;
  return {};
}

/// Throw for a run that ended badly: the PTX's fault where ptxas says so.
[[noreturn]] static void
reportRefusal(const Run &run, const std::vector<AssembleDiagnostic> &said,
              const std::string &ptxas, const std::string &version,
              const std::string &target) {
  if (std::none_of(said.begin(), said.end(), isRefusal))
    runtimeError("'{}' failed with exit status {} and no error message; it "
                 "said: {}",
                 ptxas, run.exitCode,
                 run.output.empty() ? "nothing" : run.output);
  userErrorAt(firstPlace(said, isRefusal),
              "ptxas {} does not assemble the PTX for {}:{}", version, target,
              list(said, isRefusal));
}

/// Throw where ptxas made slow code and nobody allowed it.
static void checkSpeed(const std::vector<AssembleDiagnostic> &said,
                       const std::vector<std::string> &allow,
                       const std::string &version, const std::string &target) {
  auto fails = [&](const AssembleDiagnostic &diagnostic) {
    return isSlowdown(diagnostic) &&
           std::find(allow.begin(), allow.end(), diagnostic.id) == allow.end();
  };
  if (std::none_of(said.begin(), said.end(), fails))
    return;
  userErrorAt(firstPlace(said, fails),
              "ptxas {} makes slower code for {} than the kernel asks "
              "for:{}\nChange the kernel, or allow an id by "
              "AssembleOptions::allow to have it all the same",
              version, target, list(said, fails));
}

Assembly assemble(std::string_view ptx, std::string_view entry,
                  const AssembleOptions &options) {
  checkAllowed(options.allow);
  std::string name = chooseEntry(ptx, entry);
  std::optional<std::string> ptxas = find_ptxas(options);
  if (!ptxas)
    runtimeError("there is no ptxas: set {} to one, CUDA_HOME to a CUDA "
                 "toolkit, or have it on PATH. A kernel runs without it: the "
                 "driver assembles PTX by itself",
                 info(Knob::ptxas).variable);
  std::string version = versionOf(*ptxas);

  std::optional<std::string> nvdisasm;
  if (hasWaitsBehindArithmetic(ptx))
    nvdisasm = findBesidePtxas("nvdisasm", *ptxas);
  std::string key =
      cacheKey(ptx, version, options.target, nvdisasm.has_value());
  std::optional<Run> run;
  if (options.use_cache)
    if (std::optional<std::string> bytes = Cache::ofProcess().get(key))
      run = decode(*bytes);
  bool isFresh = !run;
  if (isFresh)
    run = runPtxas(*ptxas, ptx, options.target, nvdisasm);

  PtxasOutput said = parsePtxasOutput(run->output, ptx);
  if (run->exitCode != 0)
    reportRefusal(*run, said.diagnostics, *ptxas, version, options.target);
  auto resources = said.resources.find(name);
  if (resources == said.resources.end())
    runtimeError("ptxas {} does not say what '{}' uses; it said: {}", version,
                 name, run->output.empty() ? "nothing" : run->output);
  if (isFresh && options.use_cache)
    Cache::ofProcess().put(key, encode(*run));
  checkSpeed(said.diagnostics, options.allow, version, options.target);

  Assembly assembly;
  assembly.cubin.resize(run->cubin.size());
  std::memcpy(assembly.cubin.data(), run->cubin.data(), run->cubin.size());
  assembly.resources = resources->second;
  assembly.diagnostics = std::move(said.diagnostics);
  assembly.ptxas_version = std::move(version);
  return assembly;
}

} // namespace kiln
