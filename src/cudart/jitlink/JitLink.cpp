// JitLink: nvJitLink's functions, for those who link PTX before they load it
// (numba-cuda, cuda.core): what comes out is PTX, which Kiln's driver loads.
//
// Several modules become one text, which says where each begins.
#include "cudart/Fatbin.h"
#include "kiln/base/error.h"
#include "kiln/base/file.h"
#include "kiln/run/device_description.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#define KILN_JITLINK extern "C" __attribute__((visibility("default")))

using namespace kiln;

namespace {
/// nvJitLinkResult, as far as it is returned.
enum Result : int { success = 0, invalidInput = 3, outOfOrder = 6 };

/// nvJitLinkInputType.
enum InputType : int { ptx = 2, fatbin = 4, any = 10 };

struct Linker {
  std::string target = "sm_90a"; ///< of -arch
  std::vector<std::string> modules;
  std::string linked, log;
};
} // namespace

/// Do the work of a function; what goes wrong is in the log.
template <typename Work> static int attempt(Linker *linker, const Work &work) {
  if (!linker)
    return invalidInput;
  try {
    return work();
  } catch (const std::exception &error) {
    linker->log += std::string("error: ") + error.what() + "\n";
    return invalidInput;
  }
}

static int give(Linker *linker, const std::string &text, char *to) {
  if (!linker || !to)
    return invalidInput;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return success;
}

static int giveSize(Linker *linker, const std::string &text,
                    std::size_t *bytes) {
  if (!linker || !bytes)
    return invalidInput;
  *bytes = text.size() + 1;
  return success;
}

KILN_JITLINK int nvJitLinkCreate(Linker **handle, std::uint32_t count,
                                 const char **options) {
  if (!handle || (count > 0 && !options))
    return invalidInput;
  *handle = new Linker;
  // Others say how machine code is to be made.
  for (std::uint32_t i = 0; i < count; ++i)
    if (std::string_view option = options[i]; option.starts_with("-arch="))
      (*handle)->target = option.substr(std::strlen("-arch="));
  return success;
}
KILN_JITLINK int nvJitLinkDestroy(Linker **handle) {
  if (!handle)
    return invalidInput;
  delete *handle;
  *handle = nullptr;
  return success;
}

/// The PTX of an input. Throws UserError where it has none.
static std::vector<std::string> textsOf(const Linker &linker, int type,
                                        const char *data, std::size_t bytes,
                                        const char *name) {
  if (type != ptx && type != fatbin && type != any)
    throw UserError(fmt::format(
        "{} is no PTX, and Kiln links PTX alone; compile it to PTX (LTO-IR and "
        "machine code cannot be simulated)",
        name ? name : "an input"));
  // A text that ends with its last byte.
  std::string image(data, bytes);
  cudart::FatbinText read = cudart::readImage(
      image.c_str(), DeviceDescription::to_simulate(linker.target));
  if (read.ptx.empty())
    throw UserError(read.missing);
  return read.ptx;
}

KILN_JITLINK int nvJitLinkAddData(Linker *linker, int type, const void *data,
                                  std::size_t bytes, const char *name) {
  return attempt(linker, [&]() -> int {
    if (!data || bytes == 0)
      return invalidInput;
    for (std::string &text :
         textsOf(*linker, type, static_cast<const char *>(data), bytes, name))
      linker->modules.push_back(std::move(text));
    return success;
  });
}
KILN_JITLINK int nvJitLinkAddFile(Linker *linker, int type, const char *path) {
  return attempt(linker, [&]() -> int {
    if (!path)
      return invalidInput;
    std::string bytes = read_file(path);
    return nvJitLinkAddData(linker, type, bytes.data(), bytes.size(), path);
  });
}
KILN_JITLINK int nvJitLinkComplete(Linker *linker) {
  return attempt(linker, [&]() -> int {
    if (linker->modules.empty())
      return outOfOrder;
    linker->linked = cudart::joinModules(linker->modules);
    return success;
  });
}

KILN_JITLINK int nvJitLinkGetLinkedCubinSize(Linker *linker,
                                             std::size_t *bytes) {
  return giveSize(linker, linker ? linker->linked : "", bytes);
}
KILN_JITLINK int nvJitLinkGetLinkedCubin(Linker *linker, void *to) {
  return give(linker, linker ? linker->linked : "", static_cast<char *>(to));
}
KILN_JITLINK int nvJitLinkGetLinkedPtxSize(Linker *linker, std::size_t *bytes) {
  return nvJitLinkGetLinkedCubinSize(linker, bytes);
}
KILN_JITLINK int nvJitLinkGetLinkedPtx(Linker *linker, char *to) {
  return nvJitLinkGetLinkedCubin(linker, to);
}
KILN_JITLINK int nvJitLinkGetErrorLogSize(Linker *linker, std::size_t *bytes) {
  return giveSize(linker, linker ? linker->log : "", bytes);
}
KILN_JITLINK int nvJitLinkGetErrorLog(Linker *linker, char *to) {
  return give(linker, linker ? linker->log : "", to);
}
KILN_JITLINK int nvJitLinkGetInfoLogSize(Linker *linker, std::size_t *bytes) {
  return giveSize(linker, "", bytes);
}
KILN_JITLINK int nvJitLinkGetInfoLog(Linker *linker, char *to) {
  return give(linker, "", to);
}
KILN_JITLINK int nvJitLinkVersion(unsigned *major, unsigned *minor) {
  if (!major || !minor)
    return invalidInput;
  *major = KILN_CUDART_MAJOR;
  *minor = KILN_CUDART_MAJOR == 12 ? 8 : 0;
  return success;
}
