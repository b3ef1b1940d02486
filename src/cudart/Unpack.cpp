// Unpack: LZ4 by hand, zstd by the library that every Debian has.
#include "cudart/Unpack.h"
#include "kiln/base/error.h"
#include "kiln/base/file.h"
#include "support/limits/Reserve.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace kiln::cudart {

[[noreturn]] static void failDamaged(const char *kind) {
  throw UserError(fmt::format("the {} data of a fat binary are damaged", kind));
}

namespace {
/// A block of LZ4: literals and copies of what is before.
class Lz4Block {
public:
  Lz4Block(std::string_view packed, std::size_t bytes)
      : packed_(packed), bytes_(bytes) {
    reserveBounded(text_, bytes);
  }

  std::string unpack() {
    while (at_ < packed_.size()) {
      unsigned token = next();
      copyLiterals(length(token >> 4));
      if (at_ == packed_.size())
        break; // the last sequence has literals alone
      std::size_t distance = next();
      distance |= std::size_t(next()) << 8;
      copyMatch(distance, length(token & 15) + 4);
    }
    if (text_.size() != bytes_)
      failDamaged("LZ4");
    return std::move(text_);
  }

private:
  unsigned next() {
    if (at_ == packed_.size())
      failDamaged("LZ4");
    return static_cast<unsigned char>(packed_[at_++]);
  }
  /// 15 is followed by bytes to add, up to one that is not 255.
  std::size_t length(std::size_t nibble) {
    if (nibble < 15)
      return nibble;
    for (unsigned more = 255; more == 255;) {
      more = next();
      nibble += more;
    }
    return nibble;
  }
  void copyLiterals(std::size_t count) {
    if (count > packed_.size() - at_ || count > bytes_ - text_.size())
      failDamaged("LZ4");
    text_.append(packed_.substr(at_, count));
    at_ += count;
  }
  void copyMatch(std::size_t distance, std::size_t count) {
    if (distance == 0 || distance > text_.size() ||
        count > bytes_ - text_.size())
      failDamaged("LZ4");
    for (; count > 0; --count) // it may overlap what it makes
      text_ += text_[text_.size() - distance];
  }

  std::string_view packed_;
  std::size_t bytes_, at_ = 0;
  std::string text_;
};
} // namespace

std::string unpackLz4(std::string_view packed, std::size_t bytes) {
  if (bytes > kTextLimitBytes)
    failDamaged("LZ4");
  return Lz4Block(packed, bytes).unpack();
}

std::string unpackZstd(std::string_view packed, std::size_t bytes) {
  using Decompress =
      std::size_t(void *, std::size_t, const void *, std::size_t);
  static auto *decompress = [] {
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? reinterpret_cast<Decompress *>(
                         dlsym(library, "ZSTD_decompress"))
                   : nullptr;
  }();
  if (!decompress)
    throw RuntimeError("the PTX of the program is packed with zstd, and "
                       "libzstd.so.1 was not found; install libzstd1, or "
                       "compile with nvcc -compress-mode=speed");
  if (bytes > kTextLimitBytes)
    failDamaged("zstd");
  std::string text(bytes, '\0');
  if (decompress(text.data(), bytes, packed.data(), packed.size()) != bytes)
    failDamaged("zstd");
  return text;
}

} // namespace kiln::cudart
