// Linking: cuLinkCreate and what follows. What comes of it is no machine code but
// the texts of all parts, which are linked where they are loaded.
#include "cudart/CudaError.h"
#include "cudart/Fatbin.h"
#include "cudart/Handles.h"
#include "cudart/LinkedText.h"
#include "cudart/driver/Driver.h"
#include "kiln/base/file.h"

#include <algorithm>
#include <cstring>

using namespace kiln::cudart;

namespace {
struct LinkState {
  std::vector<std::string> ptx;
  std::string image;
  char *log = nullptr; ///< of errors
  std::size_t logBytes = 0;
};

enum InputType : int { // CUjitInputType
  cubin = 0,
  ptxText = 1,
  fatbinary = 2,
};

using JitOptions = const int *;
} // namespace

static LinkState &checked(LinkState *state) {
  Handles::get().check(state, Handles::Kind::link);
  return *state;
}

/// Where the program wants to read what went wrong.
static void takeOptions(LinkState &state, unsigned count, JitOptions options,
                        void **values) {
  constexpr int kErrorLog = 5, kErrorLogBytes = 6;
  for (unsigned i = 0; options && values && i < count; ++i)
    if (options[i] == kErrorLog)
      state.log = static_cast<char *>(values[i]);
    else if (options[i] == kErrorLogBytes)
      state.logBytes = reinterpret_cast<std::uintptr_t>(values[i]);
}

static void writeLog(const LinkState &state, const std::string &text) {
  if (!state.log || !state.logBytes)
    return;
  std::size_t count = std::min(text.size(), state.logBytes - 1);
  std::memcpy(state.log, text.data(), count);
  state.log[count] = 0;
}

/// Take in PTX, or the PTX of a fat binary. Throws NoKernels for anything else.
static void add(LinkState &state, int type, const void *data) {
  if (type != ptxText && type != fatbinary)
    throw NoKernels("cuLink takes PTX and fat binaries with PTX; machine code, "
                    "objects and libraries cannot be simulated");
  FatbinText text = readImage(data, Session::get().device().description());
  if (text.ptx.empty())
    throw NoKernels(text.missing);
  state.ptx.insert(state.ptx.end(), text.ptx.begin(), text.ptx.end());
}

KILN_CUDA CUresult cuLinkCreate_v2(unsigned count, JitOptions options,
                                   void **values, LinkState **state) {
  return driverCall("cuLinkCreate", [&]() -> CUresult {
    if (!state)
      return CUDA_ERROR_INVALID_VALUE;
    *state = new LinkState;
    takeOptions(**state, count, options, values);
    Handles::get().add(*state, Handles::Kind::link);
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuLinkAddData_v2(LinkState *state, int type, void *data,
                                    std::size_t bytes, const char *, unsigned,
                                    JitOptions, void **) {
  return driverCall("cuLinkAddData", [&]() -> CUresult {
    if (!data || !bytes)
      return CUDA_ERROR_INVALID_VALUE;
    // Text need not end with a zero.
    if (type == ptxText)
      add(checked(state), type,
          std::string(static_cast<const char *>(data), bytes).c_str());
    else
      add(checked(state), type, data);
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuLinkAddFile_v2(LinkState *state, int type,
                                    const char *path, unsigned, JitOptions,
                                    void **) {
  return driverCall("cuLinkAddFile", [&]() -> CUresult {
    if (!path)
      return CUDA_ERROR_INVALID_VALUE;
    add(checked(state), type, kiln::read_file(path).c_str());
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuLinkComplete(LinkState *state, void **image,
                                  std::size_t *bytes) {
  return driverCall("cuLinkComplete", [&]() -> CUresult {
    LinkState &all = checked(state);
    if (!image || all.ptx.empty())
      return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::string_view> parts(all.ptx.begin(), all.ptx.end());
    try {
      Session::get().device().load(parts); // says what is missing or twice there
    } catch (const kiln::UserError &error) {
      writeLog(all, error.what());
      throw InvalidPtx(error.what());
    }
    all.image = joinTexts(all.ptx);
    *image = all.image.data();
    if (bytes)
      *bytes = all.image.size() + 1; // with its zero
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuLinkDestroy(LinkState *state) {
  return driverCall("cuLinkDestroy", [&] {
    checked(state);
    Handles::get().remove(state, Handles::Kind::link);
    delete state;
    return cudaSuccess;
  });
}
