// Environment: the settings and the cache as programs see them.
#include "kiln/run/environment.h"

#include "ErrorText.h"
#include "TestFolder.h"
#include "support/Cache.h"
#include "support/Hash.h"
#include "support/Knobs.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;

/// What `code` returns in a child whose cache is in `folder`: the cache of a
/// process is made once, and this process may have its own already.
template <typename Code>
static std::string inFreshProcess(const char *cacheDir, Code code) {
  TestFolder folder;
  std::filesystem::path answer = folder.path() / "answer";
  pid_t child = ::fork();
  if (child == 0) {
    for (const char *name : {"KILN_CACHE", "HOME", "XDG_CACHE_HOME"})
      ::unsetenv(name);
    ::setenv("KILN_CACHE_DIR", cacheDir, 1);
    ::setenv("KILN_CACHE_LIMIT_MB", "3", 1);
    writeWhole(answer, code());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return readWhole(answer);
}

static std::string toText(const CacheInfo &info) {
  return (info.is_on ? "on " : "off ") + info.folder + " " +
         std::to_string(info.entries) + " " + std::to_string(info.bytes > 0) +
         " " + std::to_string(info.limit_bytes);
}

TEST(Environment, ListsEveryKnobOnceWithItsMeaning) {
  std::vector<Setting> all = settings();
  ASSERT_EQ(all.size(), allKnobs().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].variable, allKnobs()[i].variable);
    EXPECT_EQ(all[i].meaning, allKnobs()[i].meaning);
  }
}

TEST(Environment, SaysWhereAValueComesFrom) {
  auto find = [] {
    for (const Setting &setting : settings())
      if (setting.variable == "KILN_CACHE_LIMIT_MB")
        return setting.value + " " + setting.origin();
    return std::string("not listed");
  };
  EXPECT_EQ(inFreshProcess("x", find), "3 environment");
  EXPECT_EQ(inFreshProcess("x",
                           [&] {
                             ::unsetenv("KILN_CACHE_LIMIT_MB");
                             return find();
                           }),
            "1024 default");
}

TEST(Environment, ShowsAndClearsTheCache) {
  TestFolder folder;
  std::string path = folder.path().string();
  std::string text = inFreshProcess(path.c_str(), [] {
    Cache::ofProcess().put(hashHex("key"), "value");
    std::string before = toText(cache_info());
    std::string cleared = toText(clear_cache());
    return before + "\n" + cleared + "\n" + toText(cache_info());
  });
  std::string limit = " 3145728";
  EXPECT_EQ(text, "on " + path + " 1 1" + limit + "\n" +     //
                      "on " + path + " 1 1" + limit + "\n" + //
                      "on " + path + " 0 0" + limit);
}

TEST(Environment, CacheThatIsOff) {
  std::string text = inFreshProcess("x", [] {
    ::setenv("KILN_CACHE", "off", 1);
    return toText(cache_info());
  });
  EXPECT_EQ(text, "off  0 0 3145728");
}
