// npy: an array as NumPy writes it.
#include "support/text/Npy.h"
#include "fuzz/ScratchFile.h"
#include "fuzz/Target.h"
#include "kiln/base/error.h"

namespace kiln::fuzz {

void runNpy(std::string_view input) {
  ScratchFile file(input);
  auto read = [&](Type type, const std::vector<std::uint64_t> &shape) {
    try {
      if (readNpy(file.path(), type, shape, "input").empty())
        throw Misbehaviour{"an array without elements"};
    } catch (const UserError &error) {
      checkMessage(error.what());
    }
  };
  read(Type::f32, {4});
  read(Type::u8, {2, 3});
  read(Type::bf16, {1});
}

} // namespace kiln::fuzz
