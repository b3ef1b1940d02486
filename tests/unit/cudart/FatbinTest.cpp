// Fatbin: the PTX that is found in what nvcc made, or why none is.
#include "cudart/Fatbin.h"
#include "cudart/Unpack.h"
#include "kiln/base/error.h"
#include "kiln/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::cudart {

static std::string fatbin(const std::string &name) {
  return read_file(KILN_SOURCE_DIR "/tests/unit/cudart/fatbins/" + name +
                   ".fatbin");
}

static FatbinText read(const std::string &name) {
  return readImage(fatbin(name).c_str(), DeviceDescription::h200());
}

TEST(Fatbin, EveryCompressionHoldsTheSameText) {
  std::string plain = read("plain").ptx.at(0);
  EXPECT_THAT(plain, testing::HasSubstr(".visible .entry scale("));
  EXPECT_EQ(plain.find('\0'), std::string::npos);
  for (const char *name : {"zstd", "lz4"})
    EXPECT_EQ(read(name).ptx.at(0), plain) << name;
}

TEST(Fatbin, TheArchitecturesOwnComesFirst) {
  EXPECT_THAT(read("both").ptx.at(0), testing::HasSubstr(".target sm_90a"));
  EXPECT_THAT(read("plain").ptx.at(0), testing::HasSubstr(".target sm_90\n"));
}

TEST(Fatbin, WrappersHaveOneOrSeveral) {
  std::string one = fatbin("plain"), two = fatbin("lz4");
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void *data;
    const void *more = nullptr;
  } wrapper;
  wrapper.data = one.data();
  EXPECT_EQ(readFatbin(&wrapper, DeviceDescription::h200()).ptx.size(), 1u);
  EXPECT_THAT(targetsOf(&wrapper), testing::ElementsAre("sm_90"));
  const void *list[] = {one.data(), two.data(), nullptr};
  wrapper.version = 2;
  wrapper.more = list;
  EXPECT_EQ(readFatbin(&wrapper, DeviceDescription::h200()).ptx.size(), 2u);
}

TEST(Fatbin, WithoutPtxSaysWhatThereIs) {
  EXPECT_EQ(read("cubin").missing,
            "the program has no kernels that can be simulated: it has machine "
            "code for sm_90a and no PTX");
  EXPECT_THAT(read("blackwell").missing,
              testing::HasSubstr("its PTX is for sm_100a, which NVIDIA H200 "
                                 "does not run"));
  EXPECT_EQ(readImage("\177ELF.........", DeviceDescription::h200()).missing,
            "the module is machine code (a cubin), which cannot be simulated");
}

TEST(Fatbin, TextNamesItsTarget) {
  EXPECT_THAT(targetsOf("// .target sm_10\n.version 8.6\n.target sm_100a, "
                        "debug\n"),
              testing::ElementsAre("sm_100a"));
  EXPECT_THAT(targetsOf(".version 8.0\n"), testing::IsEmpty());
  EXPECT_THAT(targetsOf("\177ELF........."), testing::IsEmpty());
}

TEST(Fatbin, SaysHowManyBytesItHas) {
  std::string image = fatbin("cubin");
  EXPECT_LE(imageBytes(image.data(), image.size()), image.size());
  EXPECT_GT(imageBytes(image.data(), 100), 100u);
  EXPECT_EQ(imageBytes(".v", 2), 2u);
}

TEST(Fatbin, TextIsTakenAsItIs) {
  EXPECT_EQ(readImage(".version 8.0", DeviceDescription::h200()).ptx.at(0),
            ".version 8.0");
}

static std::string refusal(const std::function<void()> &body) {
  try {
    body();
  } catch (const UserError &error) {
    return error.message();
  }
  return "";
}

TEST(Unpack, DamagedDataAreRefused) {
  const char *lz4 = "the LZ4 data of a fat binary are damaged";
  // "abcabcabcX": three letters, nine copied from three back, one more.
  std::string_view packed("\x35"
                          "abc\x03\x00\x10X",
                          8);
  EXPECT_EQ(unpackLz4(packed, 13), "abcabcabcabcX");
  EXPECT_EQ(refusal([&] { unpackLz4(packed, 12); }), lz4);
  EXPECT_EQ(refusal([&] { unpackLz4(packed, 14); }), lz4);
  for (std::size_t bytes = 1; bytes < packed.size(); ++bytes)
    EXPECT_EQ(refusal([&] { unpackLz4(packed.substr(0, bytes), 13); }), lz4);
  EXPECT_EQ(refusal([&] {
              unpackLz4("\x10"
                        "a\x05\x00\x10X",
                        13);
            }),
            lz4);
  EXPECT_EQ(refusal([] { unpackZstd("nonsense", 10); }),
            "the zstd data of a fat binary are damaged");
}

} // namespace kiln::cudart
