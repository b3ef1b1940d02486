// write_kernel: save a kernel that was written by hand, with no compiler.
#include <kiln/run/kernel.h>

#include <cstdio>
#include <exception>

int main(int argc, char **argv) {
  if (argc != 2)
    return 3;
  try {
    kiln::Kernel kernel;
    kernel.name = "written_by_hand";
    kernel.target = "sm_90a";
    kernel.ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                 ".visible .entry written_by_hand() { ret; }\n";
    kernel.contract.block = {32, 1, 1};
    kernel.save(argv[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
