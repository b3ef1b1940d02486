// AtomicFile: all or nothing, and the reason where it is nothing.
#include "support/AtomicFile.h"

#include "TestFolder.h"

#include <cerrno>

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
