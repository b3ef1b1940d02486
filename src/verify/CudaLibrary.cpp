// CudaLibrary: try the likely places.
#include "verify/CudaLibrary.h"
#include "support/Knobs.h"

#include <dlfcn.h>
#include <vector>

namespace kiln {

std::string findCudaLibrary(std::initializer_list<const char *> names) {
  std::vector<std::string> folders = {""};
  if (std::optional<std::string> home = value(Knob::cudaHome))
    for (const char *part : {"/lib64/", "/lib/"})
      folders.push_back(*home + part);
  folders.push_back("/usr/local/cuda/lib64/");
  for (const std::string &folder : folders)
    for (const char *name : names)
      if (void *library =
              dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
        dlclose(library);
        return folder + name;
      }
  return {};
}

} // namespace kiln
