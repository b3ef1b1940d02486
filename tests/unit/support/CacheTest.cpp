// Cache: what is stored is read whole or not at all, whoever else is at it.
#include "support/Cache.h"

#include "ErrorText.h"
#include "TestFolder.h"
#include "support/AtomicFile.h"
#include "support/Hash.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;
using namespace kiln;

static constexpr std::uint64_t kLimit = 1 << 20;

static std::string keyOf(int i) { return hashHex(std::to_string(i)); }

/// What all writers of a key write, so that a reader can check it.
static std::string payloadOf(int i) {
  return std::string(1000 + 37 * i, static_cast<char>('a' + i % 26)) + "\n";
}

static fs::path fileOf(const Cache &cache, int i) {
  return cache.folder() / keyOf(i).substr(0, 2) / keyOf(i);
}

static void setAge(const fs::path &file, std::chrono::minutes age) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - age);
}

TEST(Cache, StoresAndFinds) {
  TestFolder folder;
  Cache cache(folder.path() / "new" / "cache", kLimit);
  EXPECT_TRUE(cache.isOn());
  EXPECT_EQ(cache.get(keyOf(1)), std::nullopt);
  std::string binary("\0\n\xff kiln\n", 9);
  cache.put(keyOf(1), binary);
  cache.put(keyOf(2), "");
  EXPECT_EQ(cache.get(keyOf(1)), binary);
  EXPECT_EQ(cache.get(keyOf(2)), "");
  cache.put(keyOf(1), "second");
  EXPECT_EQ(cache.get(keyOf(1)), "second");
  EXPECT_TRUE(fs::exists(fileOf(cache, 1)));
}

TEST(Cache, OffWithoutAFolder) {
  Cache cache({}, kLimit);
  EXPECT_FALSE(cache.isOn());
  cache.put(keyOf(1), "x");
  EXPECT_EQ(cache.get(keyOf(1)), std::nullopt);
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_EQ(cache.clear().entries, 0u);
}

// Below a plain file nothing can be created, not even by root.
TEST(Cache, SilentWhereNothingCanBeWritten) {
  TestFolder folder;
  writeWhole(folder.path() / "file", "x");
  Cache cache(folder.path() / "file" / "cache", kLimit);
  cache.put(keyOf(1), "x");
  EXPECT_EQ(cache.get(keyOf(1)), std::nullopt);
  EXPECT_EQ(cache.clear().entries, 0u);
}

TEST(Cache, ReadOnlyFolderStillServes) {
  if (::geteuid() == 0)
    GTEST_SKIP() << "root may write everywhere";
  TestFolder folder;
  Cache cache(folder.path(), kLimit);
  cache.put(keyOf(1), "x");
  fs::permissions(fileOf(cache, 1).parent_path(),
                  fs::perms::owner_read | fs::perms::owner_exec);
  cache.put(keyOf(1), "y");
  EXPECT_EQ(cache.get(keyOf(1)), "x");
  fs::permissions(fileOf(cache, 1).parent_path(), fs::perms::owner_all);
}

TEST(Cache, EveryDamageIsAMiss) {
  TestFolder folder;
  Cache cache(folder.path(), kLimit);
  cache.put(keyOf(3), "payload");
  std::string good = readWhole(fileOf(cache, 3));
  for (std::size_t size = 0; size < good.size(); ++size) {
    writeWhole(fileOf(cache, 3), good.substr(0, size));
    ASSERT_EQ(cache.get(keyOf(3)), std::nullopt) << "cut to " << size;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 4;
    writeWhole(fileOf(cache, 3), bad);
    ASSERT_EQ(cache.get(keyOf(3)), std::nullopt) << "flipped at " << i;
  }
  cache.put(keyOf(3), "payload");
  EXPECT_EQ(cache.get(keyOf(3)), "payload");
}

TEST(Cache, AnEntryUnderAnotherKeyIsAMiss) {
  TestFolder folder;
  Cache cache(folder.path(), kLimit);
  cache.put(keyOf(1), "one");
  cache.put(keyOf(2), "two");
  std::string one = readWhole(fileOf(cache, 1));
  writeWhole(fileOf(cache, 1), readWhole(fileOf(cache, 2)));
  writeWhole(fileOf(cache, 2), one);
  EXPECT_EQ(cache.get(keyOf(1)), std::nullopt);
  EXPECT_EQ(cache.get(keyOf(2)), std::nullopt);
  cache.put(keyOf(1), "one");
  EXPECT_EQ(cache.get(keyOf(1)), "one");
}

TEST(Cache, AnEntryThatIsNoFileIsAMiss) {
  TestFolder folder;
  Cache cache(folder.path(), kLimit);
  fs::create_directories(fileOf(cache, 1).parent_path());
  ASSERT_EQ(::mkfifo(fileOf(cache, 1).c_str(), 0600), 0);
  EXPECT_EQ(cache.get(keyOf(1)), std::nullopt);
  cache.put(keyOf(1), "one"); // nobody reads it: silent
}

TEST(Cache, KeyMustBeAHash) {
  TestFolder folder;
  Cache cache(folder.path(), kLimit);
  EXPECT_EQ(errorText<InternalError>([&] { cache.get("../x"); }),
            "\"../x\" is no key of the cache; a key is a hash in hex");
}

TEST(Cache, StatsAndClearTouchEntriesAlone) {
  TestFolder folder;
  Cache cache(folder.path(), kLimit);
  for (int i = 0; i < 5; ++i)
    cache.put(keyOf(i), payloadOf(i));
  fs::create_directories(folder.path() / "ab");
  writeWhole(folder.path() / "notes.txt", "mine");
  writeWhole(folder.path() / "ab" / "cdef01", "mine too");
  Cache::Stats before = cache.stats();
  EXPECT_EQ(before.entries, 5u);
  EXPECT_GT(before.bytes, payloadOf(0).size() * 5);
  Cache::Stats cleared = cache.clear();
  EXPECT_EQ(cleared.entries, before.entries);
  EXPECT_EQ(cleared.bytes, before.bytes);
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_EQ(cache.get(keyOf(0)), std::nullopt);
  EXPECT_TRUE(fs::exists(folder.path() / "notes.txt"));
  EXPECT_TRUE(fs::exists(folder.path() / "ab" / "cdef01"));
}

// Room for about 14 entries. Entry 0 is the oldest written but was just read;
// entries 1.. go first, and those put last remain.
TEST(Cache, DropsTheLeastRecentlyUsed) {
  TestFolder folder;
  std::string payload(1000, 'x');
  Cache cache(folder.path(), 16 * 1120);
  for (int i = 0; i < 10; ++i) {
    cache.put(keyOf(i), payload);
    setAge(fileOf(cache, i), std::chrono::minutes(50 - i));
  }
  EXPECT_EQ(cache.stats().entries, 10u);
  EXPECT_TRUE(cache.get(keyOf(0)).has_value());
  for (int i = 10; i < 20; ++i)
    cache.put(keyOf(i), payload);
  EXPECT_LE(cache.stats().bytes, cache.limitBytes());
  EXPECT_GE(cache.stats().entries, 12u);
  EXPECT_TRUE(cache.get(keyOf(0)).has_value());
  EXPECT_TRUE(cache.get(keyOf(19)).has_value());
  for (int i = 1; i < 5; ++i)
    EXPECT_EQ(cache.get(keyOf(i)), std::nullopt) << i;
}

TEST(Cache, StoresNothingLargerThanTheLimit) {
  TestFolder folder;
  Cache cache(folder.path(), 1000);
  cache.put(keyOf(1), std::string(1000, 'x'));
  EXPECT_EQ(cache.stats().entries, 0u);
  cache.put(keyOf(1), std::string(850, 'x'));
  EXPECT_EQ(cache.get(keyOf(1)), std::string(850, 'x'));
}

TEST(Cache, ScanRemovesStaleTemporaryFiles) {
  TestFolder folder;
  Cache cache(folder.path(), kLimit);
  cache.put(keyOf(1), "x");
  fs::path stale = fileOf(cache, 1).string() + ".1.0.0.tmp";
  fs::path fresh = fileOf(cache, 1).string() + ".2.0.0.tmp";
  writeWhole(stale, "half");
  writeWhole(fresh, "half");
  setAge(stale, std::chrono::minutes(61));
  for (int i = 0; i < 64; ++i)
    cache.put(keyOf(1), "x");
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(fresh));
}

/// Writes and reads the same few keys over and over; counts wrong answers.
static int hammer(const fs::path &folder, int rounds, bool clears) {
  Cache cache(folder, 64 * 1024);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    int i = round % 8;
    cache.put(keyOf(i), payloadOf(i));
    std::optional<std::string> found = cache.get(keyOf((i + 3) % 8));
    wrong += found && *found != payloadOf((i + 3) % 8);
    if (clears && round % 16 == 0)
      cache.clear();
  }
  return wrong;
}

TEST(Cache, ManyProcessesAndThreadsShareIt) {
  TestFolder folder;
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      ::_exit(hammer(folder.path(), 200, process == 0) == 0 ? 0 : 1);
    children.push_back(child);
  }
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int &count : wrong)
    threads.emplace_back([&] { count = hammer(folder.path(), 200, false); });
  for (std::thread &thread : threads)
    thread.join();
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (int count : wrong)
    EXPECT_EQ(count, 0);
  EXPECT_EQ(hammer(folder.path(), 8, false), 0);
  EXPECT_EQ(Cache(folder.path(), 64 * 1024).stats().entries, 8u);
  for (const auto &file : fs::recursive_directory_iterator(folder.path()))
    EXPECT_NE(file.path().extension(), ".tmp") << file.path();
}

// One object used by many threads: the counters of the scan are shared.
TEST(Cache, ThreadsShareOneObject) {
  TestFolder folder;
  Cache cache(folder.path(), 16 * 1024);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 100; ++i)
        cache.put(keyOf(100 * t + i), payloadOf(1));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_LE(cache.stats().bytes, cache.limitBytes() + 4 * 1200);
  EXPECT_GE(cache.stats().entries, 8u);
}

/// The folder and limit of Cache::ofProcess in a fresh process whose variables
/// are `variables` alone; "folder limit".
static std::string
cacheOfProcess(std::vector<std::pair<const char *, const char *>> variables) {
  TestFolder folder;
  fs::path answer = folder.path() / "answer";
  pid_t child = ::fork();
  if (child == 0) {
    for (const char *name : {"KILN_CACHE", "KILN_CACHE_DIR", "HOME",
                             "KILN_CACHE_LIMIT_MB", "XDG_CACHE_HOME"})
      ::unsetenv(name);
    for (auto [name, text] : variables)
      ::setenv(name, text, 1);
    const Cache &cache = Cache::ofProcess();
    writeWhole(answer, cache.folder().string() + " " +
                           std::to_string(cache.limitBytes() >> 20));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return readWhole(answer);
}

TEST(Cache, OfProcessFollowsTheKnobs) {
  EXPECT_EQ(cacheOfProcess({}), " 1024");
  EXPECT_EQ(cacheOfProcess({{"HOME", "/h"}}), "/h/.cache/kiln 1024");
  EXPECT_EQ(cacheOfProcess({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}),
            "/x/kiln 1024");
  EXPECT_EQ(cacheOfProcess({{"HOME", "/h"}, {"XDG_CACHE_HOME", "x"}}),
            "/h/.cache/kiln 1024");
  EXPECT_EQ(cacheOfProcess({{"KILN_CACHE_DIR", "/c"},
                            {"XDG_CACHE_HOME", "/x"},
                            {"KILN_CACHE_LIMIT_MB", "5"}}),
            "/c 5");
  EXPECT_EQ(cacheOfProcess({{"KILN_CACHE_DIR", "/c"}, {"KILN_CACHE", "off"}}),
            " 1024");
}
