// ptx_program_fuzz: whatever program the simulator is given, it runs or
// refuses.
//
// Changes kernels of the tests by PTX's grammar (Mutator.h) and runs what comes
// of it with a small launch, under the address and undefined-behaviour
// sanitizers, with a limit of instructions, time and memory. An input breaks
// something where it ends the process, takes too long, throws anything but
// Kiln's errors, or is answered without a line; it is written to a file, and
// belongs into found/ once what it broke is repaired.
//
//     ptx_program_fuzz --inputs 100000 --jobs 2
//     ptx_program_fuzz --seconds 60 --seed 7
//     ptx_program_fuzz --seed 7 --only 123      one input, in this process
//     ptx_program_fuzz --replay found/*.ptx
#include "fuzz/Workers.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

extern "C" const char *__asan_default_options() {
  return "detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1:"
         "handle_abort=1:detect_stack_use_after_return=0";
}
extern "C" const char *__ubsan_default_options() {
  return "print_stacktrace=1";
}

namespace kiln::fuzz {
namespace {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t inputs = ~std::uint64_t(0);
  double seconds = 0;
  double inputSeconds = 10;
  int jobs = static_cast<int>(std::thread::hardware_concurrency());
  std::optional<std::uint64_t> only;
  bool isShown = false;
  std::string keep = ".";
  bool isReplay = false;
  std::vector<std::string> files; ///< to be replayed
};

Options readOptions(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto value = [&]() -> const char * {
      if (++i == argc)
        throw std::runtime_error(word + " wants a value");
      return argv[i];
    };
    auto number = [&] { return std::strtoull(value(), nullptr, 10); };
    if (word == "--seed")
      options.seed = number();
    else if (word == "--inputs")
      options.inputs = number();
    else if (word == "--seconds")
      options.seconds = std::atof(value());
    else if (word == "--input-seconds")
      options.inputSeconds = std::atof(value());
    else if (word == "--jobs")
      options.jobs = static_cast<int>(number());
    else if (word == "--only")
      options.only = number();
    else if (word == "--show")
      options.isShown = true;
    else if (word == "--keep")
      options.keep = value();
    else if (word == "--replay")
      options.isReplay = true;
    else if (options.isReplay)
      options.files.push_back(word);
    else
      throw std::runtime_error("'" + word + "' is not an option");
  }
  return options;
}

std::string readText(const std::string &path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw std::runtime_error("cannot read " + path);
  return text.str();
}

int replay(const Options &options) {
  WorkPlan plan;
  plan.inputs = options.files.size();
  plan.jobs = options.jobs;
  plan.inputSeconds = options.inputSeconds;
  plan.inputAt = [&](std::uint64_t number) {
    std::string text = readText(options.files[number]);
    return Input{text, Launch::ofText(text)};
  };
  plan.nameOf = [&](std::uint64_t number) { return options.files[number]; };
  WorkResult result = runWorkers(plan);
  fmt::print("{} inputs, {} of them break something\n", result.inputs(),
             result.defects);
  return result.defects > 0 || result.inputs() != options.files.size();
}

/// One input in this process, for a debugger.
int runOnly(const Input &input, bool isShown) {
  if (isShown)
    fmt::print("{}", input.text);
  std::fflush(stdout);
  static constexpr const char *kOutcomes[] = {"not parsed", "refused",
                                              "an error was found", "ran"};
  try {
    std::string said;
    Outcome outcome = runInput(input.text, input.launch, &said);
    fmt::print("{}: {}\n", kOutcomes[static_cast<int>(outcome)], said);
    return 0;
  } catch (const Misbehaviour &defect) {
    fmt::print("{}\n", defect.what);
    return 1;
  }
}

int fuzz(const Options &options) {
  Seeds seeds = readSeeds();
  Pieces pieces(seeds);
  auto inputAt = [&](std::uint64_t number) {
    return makeInput(seeds, pieces, options.seed, number);
  };
  if (options.only)
    return runOnly(inputAt(*options.only), options.isShown);
  WorkPlan plan;
  plan.inputs = options.inputs;
  plan.seconds = options.seconds;
  plan.jobs = options.jobs;
  plan.inputSeconds = options.inputSeconds;
  plan.keepFolder = options.keep;
  plan.inputAt = inputAt;
  plan.nameOf = [&](std::uint64_t number) {
    return fmt::format("seed-{}-only-{}", options.seed, number);
  };
  auto begin = std::chrono::steady_clock::now();
  WorkResult result = runWorkers(plan);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  fmt::print("{} inputs of {} kernels in {:.0f} s: {} not parsed, {} refused, "
             "{} ran with an error found, {} without; {} break something\n",
             result.inputs(), seeds.kernels.size() + seeds.probes.size(),
             time.count(), result.outcomes[0], result.outcomes[1],
             result.outcomes[2], result.outcomes[3], result.defects);
  // Inputs that are all refused would test the first error only.
  bool hasRun = result.outcomes[2] > 0 && result.outcomes[3] > 0;
  return result.defects > 0 || !hasRun;
}

} // namespace
} // namespace kiln::fuzz

int main(int argc, char **argv) {
  // No ptxas, whatever is installed: it is not what is tested.
  setenv("PATH", "", 1);
  unsetenv("CUDA_HOME");
  try {
    kiln::fuzz::Options options = kiln::fuzz::readOptions(argc, argv);
    return options.isReplay ? kiln::fuzz::replay(options)
                            : kiln::fuzz::fuzz(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "ptx_program_fuzz: %s\n", error.what());
    return 2;
  }
}
