// Demangle: names of strangers, which may stand for more text than there is
// memory, and for patterns that are looked for in them.
#include "support/text/Demangle.h"
#include "support/text/NamePattern.h"

#include "ErrorText.h"

#include <chrono>
#include <functional>

using namespace kiln;

/// "S_", "S0_", ..., "S10_"
static std::string reference(int number) {
  if (number == 0)
    return "S_";
  std::string digits;
  for (int rest = number - 1, first = 1; rest || first; rest /= 36, first = 0)
    digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 36]);
  return "S" + digits + "_";
}

/// f<A<int, int>, A<that, that>, A<that, that>...>: doubled so often.
static std::string doubled(int times, const std::string &end = "EvT_") {
  std::string name = "_Z1fI1AIiiE";
  for (int i = 0; i < times; ++i)
    name += "S0_I" + reference(i + 2) + reference(i + 2) + "E";
  return name + end;
}

static double secondsOf(const std::function<void()> &work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

TEST(Demangle, WritesNamesAsPeopleDo) {
  EXPECT_EQ(demangle("_Z4gemmPfi"), "gemm(float*, int)");
  EXPECT_EQ(demangle("_Z5scaleILi4EfEvPKT0_PS0_i"),
            "void scale<4, float>(float const*, float*, int)");
  EXPECT_EQ(demangle("_ZN2ns3AddIdEclEv"), "ns::Add<double>::operator()()");
  EXPECT_EQ(demangle("_ZZN1A3runEvENKUlvE_clEv"),
            "A::run()::{lambda()#1}::operator()() const");
  EXPECT_EQ(demangle(doubled(1)), "void f<A<int, int>, A<A<int, int>, A<int, "
                                  "int> > >(A<int, int>)");
}

// As the largest kernels have it: many references, none of which doubles.
TEST(Demangle, ManyReferencesAreNoBomb) {
  std::string name = "_Z1fI4TileIiiE", shown = "void f<Tile<int, int>";
  for (int i = 0; i < 250; ++i) {
    name += "S1_";
    shown += ", Tile<int, int>";
  }
  EXPECT_EQ(demangle(name + "EvT_"), shown + " >(Tile<int, int>)");
}

TEST(Demangle, ABombStaysAsItIs) {
  for (int times : {18, 24, 40, 400}) {
    std::string name = doubled(times);
    EXPECT_LT(secondsOf([&] { EXPECT_EQ(demangle(name), name); }), 0.1)
        << times;
  }
  // Here no character would be written.
  for (int times : {18, 40}) {
    std::string name = doubled(times, "EvDp" + reference(times + 1));
    EXPECT_LT(secondsOf([&] { EXPECT_EQ(demangle(name), name); }), 0.1);
  }
}

TEST(Demangle, LengthAndDepthAreBounded) {
  std::string lengthy = "_Z1f" + std::string(kMangledLimitBytes, 'i');
  EXPECT_EQ(demangle(lengthy), lengthy);
  std::string deep = "_Z1f" + std::string(10000, 'P') + "i";
  EXPECT_EQ(demangle(deep), deep);
  for (const char *damaged :
       {"_Z", "_Z1", "_Z9x", "_ZN", "_Z1fS_", "_Z1fSZZZZZZZZZZZZZ_", "_Z1fT",
        "_Z99999999999999999999f", "_ZZ", "_Z1fA", "_Z1fDF", "_Z1fIL"})
    EXPECT_EQ(demangle(damaged), damaged);
}

TEST(NamePattern, FindsPartsOfNames) {
  NamePattern pattern("--kernel", "^gemm<.*(half|float)");
  EXPECT_TRUE(pattern.finds("gemm<float, 4>(int)"));
  EXPECT_FALSE(pattern.finds("my_gemm<float>"));
  EXPECT_TRUE(NamePattern("--kernel", "").finds("anything"));
}

// A try of every way through it would take one call for each character.
TEST(NamePattern, LongNamesTakeNoStack) {
  std::string name(30000, 'x');
  EXPECT_TRUE(NamePattern("--kernel", "x.*x").finds(name));
  EXPECT_FALSE(NamePattern("--kernel", "(x|xx)*y$").finds(name));
}

TEST(NamePattern, RefusesWhatIsNoPattern) {
  EXPECT_EQ(errorText([] { NamePattern("KILN_KERNEL", "("); }),
            "KILN_KERNEL is '('; it takes a regular expression");
  EXPECT_EQ(errorText([] { NamePattern("--kernel", "(a)\\1"); }),
            "--kernel is '(a)\\1'; it takes a regular expression without "
            "references back to a part of the match");
  EXPECT_EQ(errorText([] { NamePattern("--kernel", std::string(1025, 'a')); }),
            "--kernel has 1025 characters; it takes a regular expression of at "
            "most 1024");
}
