// build_kernel: build the smallest kernel, save it, print its PTX entry.
#include <kiln/kiln.h>

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char **argv) {
  if (argc != 2)
    return 3;
  try {
    kiln::KernelBuilder kb("k", {.threads = 32});
    kiln::Kernel kernel = kb.build();
    kernel.save(argv[1]);
    std::size_t entry = kernel.ptx.find(".visible .entry");
    if (entry == std::string::npos)
      return 1;
    std::size_t end = kernel.ptx.find('(', entry);
    std::printf("%s\n", kernel.ptx.substr(entry, end - entry + 1).c_str());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
