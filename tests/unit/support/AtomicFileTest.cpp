// AtomicFile: all or nothing, and the reason where it is nothing.
#include "support/AtomicFile.h"
#include "support/InputFile.h"

#include "TestFolder.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace kiln;

TEST(AtomicFile, WritesThePartsInOrder) {
  TestFolder folder;
  fs::path path = folder.path() / "file";
  EXPECT_EQ(writeFileAtomically(path, {"one ", "", "two"}), 0);
  EXPECT_EQ(readWhole(path), "one two");
  EXPECT_EQ(writeFileAtomically(path, {"three"}), 0);
  std::string bytes = "old";
  EXPECT_EQ(readFile(path, bytes), 0);
  EXPECT_EQ(bytes, "three");
}

TEST(AtomicFile, FailureLeavesNothingBehind) {
  TestFolder folder;
  fs::create_directories(folder.path() / "taken" / "inside");
  EXPECT_EQ(writeFileAtomically(folder.path() / "taken", {"x"}), EISDIR);
  EXPECT_EQ(writeFileAtomically(folder.path() / "no" / "file", {"x"}), ENOENT);
  int count = 0;
  for (const auto &file : fs::directory_iterator(folder.path()))
    count += file.path().filename() != "taken";
  EXPECT_EQ(count, 0);
}

TEST(AtomicFile, ReadingSaysWhyNot) {
  TestFolder folder;
  std::string bytes;
  EXPECT_EQ(readFile(folder.path() / "none", bytes), ENOENT);
  EXPECT_EQ(readFile(folder.path(), bytes), kNotRegular);
}

TEST(AtomicFile, TouchingMakesItYoung) {
  TestFolder folder;
  fs::path path = folder.path() / "file";
  writeWhole(path, "x");
  auto old = fs::file_time_type::clock::now() - std::chrono::hours(5);
  fs::last_write_time(path, old);
  std::string bytes;
  readFile(path, bytes);
  EXPECT_EQ(fs::last_write_time(path), old);
  readFile(path, bytes, UINT64_MAX, /*touch=*/true);
  EXPECT_GT(fs::last_write_time(path), old + std::chrono::hours(4));
}

static unsigned modeOf(const fs::path &path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(AtomicFile, WhatExistsKeepsItsMode) {
  TestFolder folder;
  fs::path path = folder.path() / "secret";
  writeWhole(path, "old");
  for (unsigned mode : {0600u, 0640u, 0444u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(writeFileAtomically(path, {"new"}), 0);
    EXPECT_EQ(modeOf(path), mode);
  }
  EXPECT_EQ(readWhole(path), "new");
}

TEST(AtomicFile, ALinkIsReplacedWhereNobodyNamedIt) {
  TestFolder folder;
  fs::path path = folder.path() / "entry", other = folder.path() / "other";
  writeWhole(other, "precious");
  for (const char *to : {"other", "/dev/full", "nothing"}) {
    fs::remove(path);
    fs::create_symlink(to, path);
    EXPECT_EQ(writeFileAtomically(path, {"entry"}, Links::replace), 0);
    EXPECT_FALSE(fs::is_symlink(path));
    EXPECT_EQ(readWhole(path), "entry");
  }
  EXPECT_EQ(readWhole(other), "precious");
  EXPECT_FALSE(fs::exists(folder.path() / "nothing"));
}

TEST(AtomicFile, AFolderBehindALinkIsRefused) {
  TestFolder folder;
  fs::create_directory(folder.path() / "elsewhere");
  fs::create_directory_symlink("elsewhere", folder.path() / "3f");
  EXPECT_NE(makeFolderInside(folder.path(), "3f"), 0);
  EXPECT_EQ(makeFolderInside(folder.path() / "new", "4a"), 0);
  EXPECT_EQ(makeFolderInside(folder.path() / "new", "4a"), 0);
  EXPECT_TRUE(fs::is_directory(folder.path() / "new" / "4a"));
  writeWhole(folder.path() / "file", "x");
  EXPECT_EQ(makeFolderInside(folder.path(), "file"), ENOTDIR);
}

TEST(AtomicFile, WhatDeadProcessesLeftGoesAfterADay) {
  TestFolder folder;
  auto age = [&](const std::string &name, int hours) {
    fs::path path = folder.path() / name;
    writeWhole(path, "x");
    fs::last_write_time(path, fs::file_time_type::clock::now() -
                                  std::chrono::hours(hours));
    return path;
  };
  fs::path stale = age("report.json.123.0123abcd.7.tmp", 25);
  fs::path young = age("report.json.124.0123abcd.7.tmp", 23);
  std::vector<fs::path> others = {
      age("notes.tmp", 99), age("a.1.2.3.tmp", 99), age(".1.0123abcd.2.tmp", 99),
      age("report.json.123.0123ABCD.7.tmp", 99)};
  EXPECT_EQ(writeFileAtomically(folder.path() / "report.json", {"new"}), 0);
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(young));
  for (const fs::path &other : others)
    EXPECT_TRUE(fs::exists(other)) << other;
}

// By default the signal ends the process.
TEST(AtomicFile, BeyondTheLimitOfSizesIsAnError) {
  TestFolder folder;
  fs::path path = folder.path() / "large";
  writeWhole(path, "old");
  pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_DFL);
    rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    bool isRefused =
        writeFileAtomically(path, {std::string(8192, 'x')}) == EFBIG;
    OutputFile holes(path);
    isRefused &= holes.resize(8192) == EFBIG;
    isRefused &= holes.commit() == EFBIG;
    ::_exit(isRefused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(readWhole(path), "old");
}

TEST(OutputFile, PiecesAndHoles) {
  TestFolder folder;
  fs::path path = folder.path() / "array";
  {
    OutputFile file(path);
    EXPECT_EQ(file.writeAt(8, "tail"), 0);
    EXPECT_EQ(file.writeAt(0, "head"), 0);
    EXPECT_EQ(file.resize(14), 0);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(file.commit(), 0);
  }
  EXPECT_EQ(readWhole(path), std::string("head\0\0\0\0tail\0\0", 14));
  { OutputFile given(path); } // up again: nothing is left of it
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()),
                          fs::directory_iterator()),
            1);
}

TEST(InputFile, ReadsPiecesOfRegularFiles) {
  TestFolder folder;
  fs::path path = folder.path() / "file";
  writeWhole(path, "0123456789");
  InputFile file(path);
  EXPECT_EQ(file.failure(), 0);
  EXPECT_EQ(file.bytes(), 10u);
  char piece[4] = {};
  EXPECT_TRUE(file.readAt(6, piece, 4));
  EXPECT_EQ(std::string(piece, 4), "6789");
  EXPECT_FALSE(file.readAt(7, piece, 4));
  EXPECT_FALSE(file.readAt(1ull << 63, piece, 4));
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  InputFile pipe(folder.path() / "pipe");
  EXPECT_EQ(pipe.failure(), kNotRegular);
  EXPECT_FALSE(pipe.readAt(0, piece, 1));
  EXPECT_EQ(InputFile("/proc/self/status").bytes(), 0u);
  std::string text;
  EXPECT_EQ(readFile("/proc/self/status", text, 16), EFBIG);
  EXPECT_EQ(readFile("/proc/self/status", text), 0);
  EXPECT_NE(text.find("VmRSS"), std::string::npos);
}
