// The tuning database: what is kept is found by whoever shares the file, what
// is no such database is refused, and `auto` heeds it.
#include "kiln/run/environment.h"
#include "kiln/kernels/gemm.h"
#include "kiln/kernels/tuning.h"
#include "unit/support/TestFolder.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using testing::HasSubstr;
using Access = TuningDatabase::Access;

static constexpr std::chrono::milliseconds kImpatient(20);

namespace {
class TuningDatabaseTest : public testing::Test {
protected:
  std::string path() const {
    return (folder.path() / "a" / "tune.db").string();
  }

  void TearDown() override { setenv("KILN_TUNE_DB", "off", 1); }

  /// What SQLite makes of these words in a file.
  void sql(const std::string &file, const std::string &words) {
    sqlite3 *handle = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, words.c_str(), nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }

  TestFolder folder;
};
} // namespace

static TunedSchedule entry(const std::string &problem,
                           const std::string &schedule, double us) {
  return {"NVIDIA H200",
          std::string(gemm_family()),
          problem,
          schedule,
          us,
          8,
          "2026-11-16T10:00:00Z"};
}

/// What opening or using the file says.
template <typename Action> static std::string refusal(Action action) {
  try {
    action();
  } catch (const Error &error) {
    return error.message();
  }
  return "nothing was refused";
}

TEST_F(TuningDatabaseTest, KeepsAndFinds) {
  TunedSchedule one = entry("8x8x8", "64x64x64", 2.5);
  {
    TuningDatabase database(path(), Access::write);
    EXPECT_EQ(database.find(one.device, one.kernels, one.problem),
              std::nullopt);
    database.put(one);
    one.us = 2;
    database.put(one);
  }
  TuningDatabase database(path(), Access::read);
  EXPECT_EQ(database.find(one.device, one.kernels, one.problem), one);
  EXPECT_EQ(database.find("NVIDIA H100", one.kernels, one.problem),
            std::nullopt);
  EXPECT_EQ(database.find(one.device, "gemm 0", one.problem), std::nullopt);
  EXPECT_THAT(database.entries(), testing::ElementsAre(one));
}

TEST_F(TuningDatabaseTest, ManyWriteAtOnce) {
  constexpr int kWriters = 4, kEach = 20;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kEach; ++i)
        TuningDatabase(path(), Access::write)
            .put(entry(std::to_string(writer * kEach + i), "s", 1));
    });
  for (std::thread &writer : writers)
    writer.join();
  EXPECT_EQ(TuningDatabase(path(), Access::read).entries().size(),
            std::size_t{kWriters * kEach});
}

TEST_F(TuningDatabaseTest, TheFasterOfTwoStays) {
  TuningDatabase database(path(), Access::write);
  database.put(entry("a", "slow", 3));
  database.put(entry("b", "fast", 1));
  database.put(entry("c", "same", 2));
  std::vector<TunedSchedule> others = {
      entry("a", "quick", 2), entry("b", "lame", 4), entry("c", "same", 1.5),
      entry("d", "new", 9)};
  auto conflicts = database.merge(others);
  ASSERT_EQ(conflicts.size(), 2u);
  EXPECT_EQ(conflicts[0].kept.schedule, "quick");
  EXPECT_EQ(conflicts[0].dropped.schedule, "slow");
  EXPECT_EQ(conflicts[1].kept.schedule, "fast");
  EXPECT_THAT(database.entries(),
              testing::ElementsAre(others[0], entry("b", "fast", 1), others[2],
                                   others[3]));
}

TEST_F(TuningDatabaseTest, AMergeIsAllOrNothing) {
  TuningDatabase database(path(), Access::write);
  std::vector<TunedSchedule> others = {entry("a", "s", 1), entry("b", "s", 0)};
  EXPECT_EQ(refusal([&] { database.merge(others); }),
            "b with s takes 0 us; a time is positive");
  EXPECT_TRUE(database.entries().empty());
}

TEST_F(TuningDatabaseTest, RefusesWhatIsNotOne) {
  auto reading = [&](const std::string &file) {
    return refusal([&] { TuningDatabase(file, Access::read).entries(); });
  };
  EXPECT_EQ(reading("/no/such.db"), "there is no tuning database /no/such.db; "
                                    "`kiln tune` makes one");
  std::string file = (folder.path() / "x?#%.db").string();
  writeWhole(file, std::string(5000, 'x'));
  EXPECT_EQ(reading(file),
            file + " is not a tuning database: file is not a database");
  EXPECT_EQ(refusal([&] { TuningDatabase(file, Access::write); }),
            file + " is not a tuning database: file is not a database");
  std::string other = (folder.path() / "other.db").string();
  sql(other, "CREATE TABLE t (x)");
  for (Access access : {Access::read, Access::write})
    EXPECT_EQ(refusal([&] { TuningDatabase(other, access); }),
              other + " is a SQLite database of something else: its "
                      "application_id is 0, and that of a tuning database "
                      "1263094862");
  TuningDatabase(path(), Access::write);
  sql(path(), "PRAGMA user_version = 7");
  EXPECT_EQ(reading(path()),
            path() + " has tables of version 7; this Kiln reads version 1");
}

TEST_F(TuningDatabaseTest, RefusesADamagedOne) {
  {
    std::vector<TunedSchedule> many;
    for (int i = 0; i < 300; ++i)
      many.push_back(entry(std::to_string(i), std::string(100, 's'), 1));
    TuningDatabase(path(), Access::write).merge(many);
  }
  std::string bytes = readWhole(path());
  bytes.replace(4096, bytes.size() - 4096, bytes.size() - 4096, '\x5a');
  writeWhole(path(), bytes);
  EXPECT_EQ(refusal([&] { TuningDatabase(path(), Access::read).entries(); }),
            path() +
                " is damaged (database disk image is malformed); remove it or "
                "name another");
}

TEST_F(TuningDatabaseTest, WaitsForOthersAndSaysSo) {
  TuningDatabase first(path(), Access::write);
  sqlite3 *handle = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(refusal([&] { TuningDatabase(path(), Access::write, kImpatient); }),
            path() +
                " is held by another process for more than 20 ms (database is "
                "locked)");
  // Who reads waits for nobody.
  EXPECT_TRUE(
      TuningDatabase(path(), Access::read, kImpatient).entries().empty());
  sqlite3_close(handle);
}

TEST_F(TuningDatabaseTest, ReadersDoNotWrite) {
  TuningDatabase(path(), Access::write);
  TuningDatabase database(path(), Access::read);
  EXPECT_EQ(refusal([&] { database.put(entry("a", "s", 1)); }),
            path() +
                " cannot be written: attempt to write a readonly database");
  // Below a plain file nothing can be created, not even by root.
  EXPECT_EQ(refusal([&] { TuningDatabase(path() + "/x.db", Access::write); }),
            path() + "/x.db cannot be opened: unable to open database file");
}

TEST_F(TuningDatabaseTest, IsReadFromAFolderThatCannotBeWritten) {
  if (geteuid() == 0)
    GTEST_SKIP() << "root writes everywhere";
  TuningDatabase(path(), Access::write).put(entry("a", "s", 1));
  chmod(folder.path().c_str(), 0500);
  chmod((folder.path() / "a").c_str(), 0500);
  EXPECT_EQ(TuningDatabase(path(), Access::read).entries().size(), 1u);
  chmod((folder.path() / "a").c_str(), 0700);
  chmod(folder.path().c_str(), 0700);
}

TEST_F(TuningDatabaseTest, AutoTakesWhatItHas) {
  const auto &device = DeviceDescription::h200();
  GemmProblem problem{.m = 640, .n = 640, .k = 640};
  setenv("KILN_TUNE_DB", "off", 1);
  GemmSchedule usual = pick_schedule(problem);
  setenv("KILN_TUNE_DB", path().c_str(), 1);
  EXPECT_EQ(pick_schedule(problem), usual) << "the file is not there";
  std::string words = "multistage 64x32x64 stages=3";
  {
    TuningDatabase database(path(), Access::write);
    database.put(entry(problem.to_string(), words, 1));
    database.put(entry("320x640x640 f16 -> f32 tn", "64x31x64", 1));
  }
  EXPECT_EQ(pick_schedule(problem), fit(problem, GemmSchedule::parse(words)));
  EXPECT_EQ(pick_schedule(problem, DeviceDescription::h100()).kind, usual.kind);

  GemmProblem other{.m = 320, .n = 640, .k = 640};
  testing::internal::CaptureStderr();
  GemmSchedule picked = pick_schedule(other, device);
  EXPECT_EQ(picked, pick_schedule(other, device));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "kiln: warning: the schedule '64x31x64' of 320x640x640 f16 -> f32 "
            "tn in " +
                path() +
                " is not used: tile 64x31x64: N must be a multiple of 8 up to "
                "256\n")
      << "said once";
}

TEST_F(TuningDatabaseTest, AutoDoesWithoutADamagedOne) {
  GemmProblem problem{.m = 640, .n = 640, .k = 640};
  setenv("KILN_TUNE_DB", "off", 1);
  GemmSchedule usual = pick_schedule(problem);
  std::string file = (folder.path() / "bad.db").string();
  writeWhole(file, std::string(5000, 'x'));
  setenv("KILN_TUNE_DB", file.c_str(), 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(pick_schedule(problem), usual);
  EXPECT_EQ(pick_schedule(problem), usual);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "kiln: warning: no schedule comes from the tuning database: " +
                file + " is not a tuning database: file is not a database\n");
}

TEST_F(TuningDatabaseTest, LiesInTheFolderOfTheCache) {
  unsetenv("KILN_TUNE_DB");
  CacheInfo cache = cache_info();
  EXPECT_EQ(tuning_database_path(),
            cache.is_on ? cache.folder + "/tune.db" : "");
  setenv("KILN_TUNE_DB", "/x/y.db", 1);
  EXPECT_EQ(tuning_database_path(), "/x/y.db");
  setenv("KILN_TUNE_DB", "off", 1);
  EXPECT_EQ(tuning_database_path(), "");
}

TEST_F(TuningDatabaseTest, APipeIsNotWaitedFor) {
  std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (Access access : {Access::read, Access::write})
    EXPECT_EQ(refusal([&] { TuningDatabase(pipe, access, kImpatient); }),
              pipe + " is not a tuning database: it is not a regular file");
}

TEST_F(TuningDatabaseTest, ALinkIsNotWrittenThrough) {
  std::string file = (folder.path() / "real.db").string();
  std::string link = (folder.path() / "link.db").string();
  TuningDatabase(file, Access::write, kImpatient).put(entry("a", "s", 1));
  std::filesystem::create_symlink("real.db", link);
  EXPECT_EQ(refusal([&] { TuningDatabase(link, Access::write, kImpatient); }),
            link + " is a symbolic link, which is not written through; name "
                   "the file itself");
  EXPECT_EQ(TuningDatabase(link, Access::read, kImpatient).entries().size(),
            1u);
}

// It has a row for every question, and never the last one.
TEST_F(TuningDatabaseTest, AViewIsNoTable) {
  std::string file = (folder.path() / "view.db").string();
  sql(file, "CREATE VIEW tuned AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
            "SELECT x + 1 FROM n) SELECT x AS device, x AS kernels, x AS "
            "problem, x AS schedule, x AS us, x AS candidates, x AS date FROM "
            "n; PRAGMA application_id = 1263094862; PRAGMA user_version = 1");
  EXPECT_EQ(refusal([&] {
              TuningDatabase(file, Access::read, kImpatient)
                  .find("device", "kernels", "problem");
            }),
            file + " is not a tuning database: it has no table 'tuned'");
}
