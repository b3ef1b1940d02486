// Nvrtc: what programs that compile kernels while they run ask NVRTC for. A
// program for a GPU asks for machine code (--gpu-architecture=sm_90), which
// nobody can simulate; NVRTC has the PTX that it came of.
//
// `kiln run` preloads this library for programs that are linked with NVRTC; what
// they call goes on to theirs.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

#define KILN_NVRTC extern "C" __attribute__((visibility("default")))

using Program = void *;

/// The function of the program's NVRTC. There is one, or nobody calls this.
template <typename Function> static Function *next(const char *name) {
  if (void *found = dlsym(RTLD_NEXT, name))
    return reinterpret_cast<Function *>(found);
  std::abort();
}

KILN_NVRTC int nvrtcGetCUBINSize(Program program, std::size_t *bytes) {
  static auto *ask = next<int(Program, std::size_t *)>("nvrtcGetPTXSize");
  return ask(program, bytes);
}
KILN_NVRTC int nvrtcGetCUBIN(Program program, char *to) {
  static auto *ask = next<int(Program, char *)>("nvrtcGetPTX");
  return ask(program, to);
}

/// With lines of the source, for findings.
KILN_NVRTC int nvrtcCompileProgram(Program program, int count,
                                   const char *const *options) {
  static auto *compile = next<int(Program, int, const char *const *)>(
      "nvrtcCompileProgram");
  std::vector<const char *> all(options, options + (count > 0 ? count : 0));
  bool hasLines = false;
  for (const char *option : all)
    for (const char *word : {"-lineinfo", "--generate-line-info", "-G",
                             "--device-debug"})
      hasLines |= std::strcmp(option, word) == 0;
  if (!hasLines)
    all.push_back("-lineinfo");
  return compile(program, static_cast<int>(all.size()), all.data());
}
