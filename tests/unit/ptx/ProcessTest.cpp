// Process: output, exit status, limits and the ways to fail.
#include "ptx/tools/Process.h"

#include "kiln/base/error.h"
#include "unit/ptx/FakeTools.h"

#include <gmock/gmock.h>

#include <thread>

namespace kiln {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Process, keepsBothStreamsAndTheExitStatus) {
  ProcessResult result =
      runProcess({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, 10s);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_EQ(result.exitCode, 3);
}

TEST(Process, passesArgumentsAsTheyAre) {
  ProcessResult result = runProcess(
      {"/bin/sh", "-c", "printf '%s|' \"$@\"", "sh", "a b", "$HOME", "'"}, 10s);
  EXPECT_EQ(result.output, "a b|$HOME|'|");
}

TEST(Process, readsMoreThanAPipeHolds) {
  ProcessResult result =
      runProcess({"/bin/sh", "-c",
                  "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); "
                  "echo 0123456789012345678901234567890123456789; done"},
                 60s);
  EXPECT_EQ(result.output.size(), 3000u * 41);
}

TEST(Process, hasNoInput) {
  EXPECT_EQ(runProcess({"/bin/sh", "-c", "read x || echo none"}, 10s).output,
            "none\n");
}

TEST(Process, saysThatAProgramIsMissing) {
  EXPECT_EQ(messageOf<RuntimeError>(
                [] { runProcess({"/nowhere/ptxas", "-v"}, 10s); }),
            "cannot run '/nowhere/ptxas': No such file or directory");
}

TEST(Process, saysWhichSignalEndedAProgram) {
  EXPECT_THAT(
      messageOf<RuntimeError>([] {
        runProcess({"/bin/sh", "-c", "echo so far; kill -SEGV $$"}, 10s);
      }),
      HasSubstr("'/bin/sh' was ended by signal 11 (Segmentation fault); it had "
                "said: so far"));
}

TEST(Process, stopsAtTheTimeLimit) {
  EXPECT_EQ(messageOf<RuntimeError>([] {
              runProcess({"/bin/sh", "-c", "while :; do :; done"}, 100ms);
            }),
            "'/bin/sh' was still running after 100 ms and was stopped");
}

TEST(Process, stopsAProgramThatClosedItsOutput) {
  EXPECT_THAT(messageOf<RuntimeError>([] {
                runProcess({"/bin/sh", "-c",
                            "exec >/dev/null 2>&1; while :; do :; done"},
                           100ms);
              }),
              HasSubstr("was still running after 100 ms"));
}

TEST(Process, stopsChildrenToo) {
  // The child of the shell holds the pipe open; it must go with the shell.
  TemporaryFolder folder;
  std::string pidFile = (folder.path() / "pid").string();
  auto call = [&] {
    runProcess({"/bin/sh", "-c",
                "(while :; do :; done) & echo $! > " + pidFile + "; wait"},
               200ms);
  };
  EXPECT_THAT(messageOf<RuntimeError>(call), HasSubstr("was stopped"));
  std::string pid = folder.read("pid");
  pid.pop_back();
  // A killed orphan may stay a zombie for a moment; it must not be running.
  std::string state = "Z";
  for (int tries = 0; tries < 100; ++tries) {
    std::ifstream stat("/proc/" + pid + "/stat");
    std::string number, name;
    state = "gone";
    stat >> number >> name >> state;
    if (state == "gone" || state == "Z" || state == "X")
      break;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_THAT(state, ::testing::AnyOf("gone", "Z", "X"));
}

TEST(TemporaryFolder, isGoneWithItsOwner) {
  std::filesystem::path path;
  {
    TemporaryFolder folder;
    path = folder.path();
    folder.write("a", "text");
    EXPECT_EQ(folder.read("a"), "text");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, saysWhatCannotBeReadOrWritten) {
  TemporaryFolder folder;
  EXPECT_THAT(messageOf<RuntimeError>([&] { folder.read("b"); }),
              HasSubstr("cannot read '" + folder.path().string() + "/b'"));
  EXPECT_THAT(messageOf<RuntimeError>([&] { folder.write("no/b", "xyz"); }),
              HasSubstr("cannot write 3 bytes to '"));
}

TEST(TemporaryFolder, saysWhereItCannotBeMade) {
  WithVariable tmp("TMPDIR", "/nowhere/tmp");
  EXPECT_THAT(messageOf<RuntimeError>([] { TemporaryFolder folder; }),
              HasSubstr("set TMPDIR to"));
}

} // namespace kiln
