// Confine: what a confined process can no longer do, and what it still can.
#include "support/limits/Confine.h"
#include "unit/support/TestFolder.h"

#include <fcntl.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;

namespace {
class ConfineTest : public testing::Test {
protected:
  void SetUp() override {
    if (!availableConfinement().isComplete())
      GTEST_SKIP() << "this kernel has " << availableConfinement().to_string();
    for (const char *name : {"given", "secret"})
      std::ofstream(folder.path() / name) << name;
    std::filesystem::create_directory(folder.path() / "out");
  }

  /// Whether `act` is true in a confined process.
  bool inside(const std::function<bool()> &act) {
    pid_t child = ::fork();
    if (child == 0) {
      confine({.read = {folder.path() / "given"},
               .written = {folder.path() / "out" / "report"}});
      ::_exit(act() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return status == 0;
  }
  bool opens(const std::filesystem::path &path, int flags) {
    return inside([&] { return ::open(path.c_str(), flags, 0666) >= 0; });
  }

  TestFolder folder;
};
} // namespace

TEST_F(ConfineTest, ReadsWhatItIsGiven) {
  EXPECT_TRUE(opens(folder.path() / "given", O_RDONLY));
  EXPECT_FALSE(opens(folder.path() / "secret", O_RDONLY));
  EXPECT_FALSE(opens("/etc/passwd", O_RDONLY));
  EXPECT_FALSE(opens(folder.path() / "given", O_WRONLY));
}

TEST_F(ConfineTest, WritesBesideItsOutputs) {
  EXPECT_TRUE(opens(folder.path() / "out" / "report", O_WRONLY | O_CREAT));
  EXPECT_FALSE(opens(folder.path() / "more", O_WRONLY | O_CREAT));
  EXPECT_FALSE(opens(folder.path() / "secret", O_WRONLY | O_TRUNC));
  EXPECT_TRUE(inside([&] {
    std::filesystem::path made = folder.path() / "out" / "r.tmp";
    return ::open(made.c_str(), O_WRONLY | O_CREAT, 0666) >= 0 &&
           ::rename(made.c_str(), (folder.path() / "out" / "report").c_str()) ==
               0;
  }));
  EXPECT_FALSE(inside(
      [&] { return ::unlink((folder.path() / "secret").c_str()) == 0; }));
}

TEST_F(ConfineTest, StartsThreadsAndNoPrograms) {
  EXPECT_TRUE(inside([] {
    bool hasRun = false;
    std::thread([&] { hasRun = true; }).join();
    return hasRun;
  }));
  EXPECT_FALSE(inside([] { return ::fork() >= 0; }));
  EXPECT_FALSE(inside([] {
    ::execl("/bin/true", "true", nullptr);
    return errno != EPERM && errno != EACCES;
  }));
}

TEST_F(ConfineTest, HasNoConnectionsAndNoNewCode) {
  EXPECT_FALSE(inside([] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }));
  EXPECT_FALSE(inside([] { return ::kill(::getppid(), 0) == 0; }));
  auto map = [](int use) {
    return ::mmap(nullptr, 4096, use, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
  };
  EXPECT_TRUE(inside([&] { return map(PROT_READ | PROT_WRITE); }));
  EXPECT_FALSE(inside([&] { return map(PROT_READ | PROT_EXEC); }));
}

// Threads that are started later have no more either.
TEST_F(ConfineTest, HoldsForThreads) {
  EXPECT_FALSE(inside([&] {
    int file = -1;
    std::thread([&] {
      file = ::open((folder.path() / "secret").c_str(), O_RDONLY);
    }).join();
    return file >= 0;
  }));
}
