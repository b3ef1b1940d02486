// File: regular files alone are read, and nothing is waited for.
#include "kiln/base/file.h"

#include "ErrorText.h"
#include "TestFolder.h"
#include "kiln/run/kernel.h"

#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace kiln;

TEST(File, ReadsWhatWasWritten) {
  TestFolder folder;
  std::string path = folder.path() / "file";
  write_file(path, {"one ", "two"});
  EXPECT_EQ(read_file(path), "one two");
  EXPECT_EQ(read_file(path, 7), "one two");
  EXPECT_EQ(errorText([&] { read_file(path, 6); }),
            path + " cannot be read: it is larger than 6 bytes");
}

TEST(File, RefusesWhatIsNoRegularFile) {
  TestFolder folder;
  std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(errorText([&] { read_file(pipe); }),
            pipe + " cannot be read: it is a pipe; a regular file is expected");
  EXPECT_EQ(errorText([&] { read_file("/dev/zero"); }),
            "/dev/zero cannot be read: it is a device; a regular file is "
            "expected");
  EXPECT_EQ(errorText([&] { Kernel::load(folder.path()); }),
            folder.path().string() +
                " cannot be read: it is a folder; a regular file is expected");
  EXPECT_EQ(errorText([&] { read_file(folder.path() / "none"); }),
            (folder.path() / "none").string() +
                " cannot be read: No such file or directory");
}

TEST(File, RefusesAHoleOfATerabyte) {
  TestFolder folder;
  std::string path = folder.path() / "hole";
  writeWhole(path, "x");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(errorText([&] { read_file(path); }),
            path + " cannot be read: it is larger than 268435456 bytes");
}

TEST(File, SaysBeforehandWhatCannotBeWritten) {
  TestFolder folder;
  std::string path = folder.path() / "none" / "file";
  EXPECT_EQ(errorText([&] { check_writable(path); }),
            path + " cannot be written: No such file or directory; give a "
                   "path in a folder that exists and can be written");
  EXPECT_EQ(errorText([&] { check_writable(folder.path()); }),
            folder.path().string() +
                " cannot be written: Is a directory; give a path in a folder "
                "that exists and can be written");
  EXPECT_EQ(errorText<RuntimeError>([&] { write_file(path, {"x"}); }),
            path + " cannot be written: No such file or directory");
}

TEST(File, CheckingChangesNothing) {
  TestFolder folder;
  check_writable(folder.path() / "new");
  EXPECT_TRUE(fs::is_empty(folder.path()));
  writeWhole(folder.path() / "old", "text");
  check_writable(folder.path() / "old");
  EXPECT_EQ(readWhole(folder.path() / "old"), "text");
}

// As root, a rename would replace /dev/null by a file.
TEST(File, DevicesStayDevices) {
  check_writable("/dev/null");
  write_file("/dev/null", {"x"});
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  check_writable("/dev/full");
  EXPECT_EQ(errorText<RuntimeError>([] { write_file("/dev/full", {"x"}); }),
            "/dev/full cannot be written: No space left on device");
}

TEST(File, APipeThatNobodyReadsIsNotWaitedFor) {
  TestFolder folder;
  std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(errorText<RuntimeError>([&] { write_file(pipe, {"x"}); }),
            pipe + " cannot be written: No such device or address");
}

TEST(File, LinksAreFollowed) {
  TestFolder folder;
  writeWhole(folder.path() / "file", "old");
  fs::create_symlink("file", folder.path() / "link");
  write_file(folder.path() / "link", {"new"});
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(readWhole(folder.path() / "file"), "new");
}
