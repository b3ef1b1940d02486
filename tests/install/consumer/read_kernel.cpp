// read_kernel: load a saved kernel and say what it is.
#include <kiln/run/kernel.h>

#include <cstdio>
#include <exception>

int main(int argc, char **argv) {
  if (argc != 2)
    return 3;
  try {
    kiln::Kernel kernel = kiln::Kernel::load(argv[1]);
    std::printf("%s %s %d threads\n", kernel.name.c_str(),
                kernel.target.c_str(), kernel.contract.threads());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
