// libFuzzer: a target under LLVM's fuzzer, which sees what each input covers.
//
// The name of the program says which: fuzz_ptx is the target ptx.
#include "fuzz/Target.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

using namespace kiln::fuzz;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size,
                                        std::size_t limit);

extern "C" const char *__asan_default_options() {
  return "detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1:"
         "handle_abort=1:detect_stack_use_after_return=0";
}
extern "C" const char *__ubsan_default_options() {
  return "print_stacktrace=1";
}

static const Target *target = nullptr;

extern "C" int LLVMFuzzerInitialize(int *, char ***arguments) {
  // No ptxas, whatever is installed: it is not what is tested.
  setenv("PATH", "", 1);
  unsetenv("CUDA_HOME");
  std::string name = std::filesystem::path((*arguments)[0]).filename();
  try {
    target = &findTarget(name.substr(name.find('_') + 1));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  try {
    runTarget(*target, {reinterpret_cast<const char *>(data), size});
  } catch (const Misbehaviour &defect) {
    std::fprintf(stderr, "misbehaviour: %s\n", defect.what.c_str());
    std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data,
                                               std::size_t size,
                                               std::size_t limit,
                                               unsigned seed) {
  Dice dice(seed);
  if (target->mutate && !dice.oneIn(4)) {
    std::string changed =
        target->mutate({reinterpret_cast<const char *>(data), size}, dice);
    if (!changed.empty() && changed.size() <= limit) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, limit);
}
