// fatbin: what cuModuleLoadData is given: fat binaries, machine code, text.
//
// Nobody says how long an image is: it lies before memory that cannot be read.
#include "cudart/Fatbin.h"
#include "fuzz/Target.h"
#include "kiln/base/error.h"

#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::fuzz {

namespace {
class BeforeTheEnd {
public:
  explicit BeforeTheEnd(std::string_view bytes)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        size_((bytes.size() / page_ + 2) * page_) {
    void *memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    memory_ = static_cast<char *>(memory);
    mprotect(memory_ + size_ - page_, page_, PROT_NONE);
    // Aligned, as what a compiler puts into a program.
    image_ = memory_ + size_ - page_ - (bytes.size() + 7) / 8 * 8;
    std::memcpy(image_, bytes.data(), bytes.size());
  }
  ~BeforeTheEnd() { munmap(memory_, size_); }
  BeforeTheEnd(const BeforeTheEnd &) = delete;
  BeforeTheEnd &operator=(const BeforeTheEnd &) = delete;

  const void *image() const { return image_; }

private:
  std::size_t page_, size_;
  char *memory_ = nullptr, *image_ = nullptr;
};

/// What nvcc's code registers.
struct Wrapper {
  std::uint32_t magic = 0x466243b1, version = 1;
  const void *image;
  const void *unused = nullptr;
};
} // namespace

void runFatbin(std::string_view input) {
  BeforeTheEnd memory(input);
  const void *image = memory.image();
  cudart::imageBytes(image, input.size());
  auto each = [&](auto &&read) {
    try {
      read();
    } catch (const Error &error) {
      if (dynamic_cast<const InternalError *>(&error))
        throw;
      checkMessage(error.what());
    }
  };
  each([&] { cudart::targetsOf(image); });
  each([&] {
    if (cudart::isText(image))
      cudart::textOf(image);
  });
  each([&] { cudart::readImage(image, DeviceDescription::h200()); });
  Wrapper wrapper{.image = image};
  cudart::readFatbin(&wrapper, DeviceDescription::by_name("b200"));
}

} // namespace kiln::fuzz
