// fuzz_drive: the targets without libFuzzer, built by any compiler.
//
//     fuzz_drive ptx --seconds 4 tests/fuzz/found/ptx tests/fuzz/corpus/ptx
//     fuzz_drive npy crash-npy                 one input again
//     fuzz_drive --write-seeds FOLDER          FOLDER/TARGET/*,
//     FOLDER/TARGET.dict
//
// Runs every file that is named, then changes of them and of the target's seeds
// for so many seconds. What breaks something is written to crash-TARGET.
#include "fuzz/Seeds.h"
#include "fuzz/Target.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;

namespace kiln::fuzz {
namespace {

constexpr unsigned kInputSeconds = 10;

struct Options {
  std::string target, seedFolder;
  double seconds = 0;
  std::uint64_t seed = std::random_device()();
  std::vector<fs::path> paths;
};

Options readOptions(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto value = [&]() -> std::string {
      if (++i == argc)
        throw std::runtime_error(word + " takes a value");
      return argv[i];
    };
    if (word == "--seconds")
      options.seconds = std::stod(value());
    else if (word == "--seed")
      options.seed = std::stoull(value());
    else if (word == "--write-seeds")
      options.seedFolder = value();
    else if (word.starts_with("--"))
      throw std::runtime_error("'" + word + "' is not an option");
    else if (options.target.empty())
      options.target = word;
    else
      options.paths.emplace_back(word);
  }
  return options;
}

std::string readFile(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw std::runtime_error("cannot read " + path.string());
  return text.str();
}

void writeFile(const fs::path &path, const std::string &text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  if (!stream.flush())
    throw std::runtime_error("cannot write " + path.string());
}

void writeSeeds(const fs::path &folder) {
  for (const Target &target : targets()) {
    fs::create_directories(folder / target.name);
    int number = 0;
    for (const std::string &seed : seedsOf(target.name))
      writeFile(folder / target.name / fmt::format("seed-{:04}", number++),
                seed);
    writeFile(folder / (std::string(target.name) + ".dict"),
              dictionaryOf(target.name));
  }
}

/// The input at hand, for whoever ends the process.
std::string current, crashPath;

extern "C" void keepAndDie(int signal) {
  int file = ::open(crashPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  bool isKept = file >= 0 && ::write(file, current.data(), current.size()) ==
                                 static_cast<ssize_t>(current.size());
  constexpr std::string_view kText = "the input is kept: crash-...\n";
  if (isKept && ::write(STDERR_FILENO, kText.data(), kText.size()) < 0)
    ::_exit(1);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Whether nothing is wrong with it.
bool tryInput(const Target &target, std::string input,
              const std::string &name) {
  current = std::move(input);
  ::alarm(kInputSeconds);
  try {
    runTarget(target, current);
    ::alarm(0);
    return true;
  } catch (const Misbehaviour &defect) {
    ::alarm(0);
    writeFile(crashPath, current);
    fmt::print("{}: {}\n{} holds the input\n", name, defect.what, crashPath);
    return false;
  }
}

std::vector<fs::path> filesOf(const std::vector<fs::path> &paths) {
  std::vector<fs::path> files;
  for (const fs::path &path : paths)
    if (fs::is_directory(path))
      for (const auto &entry : fs::directory_iterator(path))
        files.push_back(entry.path());
    else
      files.push_back(path);
  std::sort(files.begin(), files.end());
  return files;
}

int drive(const Options &options) {
  const Target &target = findTarget(options.target);
  crashPath = fmt::format("crash-{}", target.name);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGALRM})
    ::signal(signal, keepAndDie);
  std::vector<std::string> inputs;
  bool isRight = true;
  for (const fs::path &path : filesOf(options.paths)) {
    inputs.push_back(readFile(path));
    isRight &= tryInput(target, inputs.back(), path.string());
  }
  std::size_t replayed = inputs.size(), count = 0;
  if (options.seconds > 0)
    for (std::string &seed : seedsOf(target.name))
      inputs.push_back(std::move(seed));
  auto end = std::chrono::steady_clock::now() +
             std::chrono::duration<double>(options.seconds);
  Dice dice(options.seed);
  for (; isRight && !inputs.empty() && std::chrono::steady_clock::now() < end;
       ++count) {
    const std::string &input = dice.any(inputs);
    std::string changed =
        target.mutate && !dice.oneIn(8) ? target.mutate(input, dice) : "";
    if (changed.empty())
      changed = mutateBytes(input, dice);
    isRight &=
        tryInput(target, changed,
                 fmt::format("change {} of seed {}", count, options.seed));
  }
  fmt::print("{}: {} inputs, {} changed ones, --seed {}\n", target.name,
             replayed, count, options.seed);
  return isRight && replayed + count > 0 ? 0 : 1;
}

} // namespace
} // namespace kiln::fuzz

int main(int argc, char **argv) {
  // No ptxas, whatever is installed: it is not what is tested.
  setenv("PATH", "", 1);
  unsetenv("CUDA_HOME");
  try {
    kiln::fuzz::Options options = kiln::fuzz::readOptions(argc, argv);
    if (options.seedFolder.empty())
      return kiln::fuzz::drive(options);
    kiln::fuzz::writeSeeds(options.seedFolder);
    return 0;
  } catch (const std::exception &error) {
    fmt::print(stderr, "fuzz_drive: {}\n", error.what());
    return 2;
  }
}
