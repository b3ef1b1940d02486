// TuningDatabase: the tables, and what SQLite's complaints mean to a user.
#include "kiln/kernels/tuning.h"
#include "support/Date.h"
#include "support/Error.h"

#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <thread>

namespace fs = std::filesystem;

namespace kiln {

/// Says that a SQLite file is ours: "KILN".
static constexpr int kApplicationId = 0x4b494c4e;
static constexpr int kSchema = 1;

static constexpr const char *kCreate = R"(
CREATE TABLE IF NOT EXISTS tuned (
  device TEXT NOT NULL,
  kernels TEXT NOT NULL,
  problem TEXT NOT NULL,
  schedule TEXT NOT NULL,
  us REAL NOT NULL CHECK (us > 0),
  candidates INTEGER NOT NULL,
  date TEXT NOT NULL,
  PRIMARY KEY (device, kernels, problem)) WITHOUT ROWID)";
static constexpr const char *kColumns =
    "device, kernels, problem, schedule, us, candidates, date";

/// The path as a URI of SQLite's.
static std::string uriOf(const std::string &path) {
  std::string uri = "file:";
  for (char c : path)
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    else
      uri += c;
  return uri;
}

using Access = TuningDatabase::Access;

struct TuningDatabase::Connection {
  /// Closes what SQLite opened.
  struct Close {
    void operator()(sqlite3 *database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt *statement) const {
      sqlite3_finalize(statement);
    }
  };
  Connection(const std::string &path, Access access,
             std::chrono::milliseconds patience)
      : path(path), patience(patience) {
    open(access == Access::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                 : SQLITE_OPEN_READONLY,
         uriOf(path));
  }

  void open(int flags, const std::string &uri) {
    sqlite3 *opened = nullptr;
    int result =
        sqlite3_open_v2(uri.c_str(), &opened, flags | SQLITE_OPEN_URI, nullptr);
    // Where it failed there is a handle all the same, which knows why.
    handle.reset(opened);
    if (result != SQLITE_OK)
      fail(result);
    sqlite3_busy_timeout(opened, static_cast<int>(patience.count()));
    sqlite3_extended_result_codes(opened, 1);
    distrust();
  }

  /// The file may be anybody's: what it says is data, and no program.
  void distrust() {
    sqlite3 *database = handle.get();
    for (int without : {SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_ENABLE_TRIGGER,
                        SQLITE_DBCONFIG_TRUSTED_SCHEMA})
      sqlite3_db_config(database, without, 0, nullptr);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    constexpr int kLongestText = 1 << 20, kSteps = 100'000;
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestText);
    sqlite3_progress_handler(
        database, kSteps,
        [](void *self) -> int {
          return std::chrono::steady_clock::now() >=
                 static_cast<Connection *>(self)->end_;
        },
        this);
  }

  [[noreturn]] void fail(int result) const {
    // Without a handle there was no memory for one.
    std::string why = handle ? sqlite3_errmsg(handle.get()) : "out of memory";
    switch (result & 0xff) {
    case SQLITE_NOTADB:
      userError("{} is not a tuning database: {}", path, why);
    case SQLITE_CORRUPT:
      userError("{} is damaged ({}); remove it or name another", path, why);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      userError("{} cannot be written: {}", path, why);
    case SQLITE_CANTOPEN:
      userError("{} cannot be opened: {}", path, why);
    case SQLITE_INTERRUPT:
      userError("{} is not a tuning database: a question has taken longer than "
                "{} s",
                path, kLongestStep.count());
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      runtimeError("{} is held by another process for more than {} ms ({})",
                   path, patience.count(), why);
    default:
      runtimeError("{} failed: {}", path, why);
    }
  }

  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  Statement prepare(const std::string &sql) const {
    sqlite3_stmt *statement = nullptr;
    int result =
        sqlite3_prepare_v2(handle.get(), sql.c_str(), -1, &statement, nullptr);
    if (result != SQLITE_OK)
      fail(result);
    return Statement(statement);
  }
  /// Whether there is a row.
  bool step(const Statement &statement) {
    end_ = std::chrono::steady_clock::now() + kLongestStep;
    int result = sqlite3_step(statement.get());
    if (result != SQLITE_ROW && result != SQLITE_DONE)
      fail(result);
    return result == SQLITE_ROW;
  }
  void run(const std::string &sql) { step(prepare(sql)); }
  int number(const std::string &sql) {
    Statement statement = prepare(sql);
    return step(statement) ? sqlite3_column_int(statement.get(), 0) : 0;
  }

  /// Make the tables where the file is new. One process at a time: whoever
  /// comes second finds them.
  void makeTables() {
    run("BEGIN IMMEDIATE");
    if (number("PRAGMA application_id") == 0 &&
        number("SELECT count(*) FROM sqlite_master") == 0) {
      run(kCreate);
      run(fmt::format("PRAGMA application_id = {}", kApplicationId));
      run(fmt::format("PRAGMA user_version = {}", kSchema));
    }
    run("COMMIT");
  }

  /// Readers then wait for nobody. SQLite does not wait by itself for those
  /// who have the file open in another mode.
  void switchToWal() {
    auto end = std::chrono::steady_clock::now() + patience;
    for (;;)
      try {
        return run("PRAGMA journal_mode = WAL");
      } catch (const RuntimeError &) {
        if (std::chrono::steady_clock::now() >= end)
          throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
  }

  /// `tuned` is a table, and not something that is made up when it is read.
  void checkTables() {
    if (number("SELECT count(*) FROM sqlite_master WHERE name = 'tuned' AND "
               "type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'") != 1)
      userError("{} is not a tuning database: it has no table 'tuned'", path);
  }

  std::string path;
  std::chrono::milliseconds patience;
  std::unique_ptr<sqlite3, Close> handle;

private:
  /// Longer than any question takes that a database of measurements answers.
  static constexpr auto kLongestStep = std::chrono::seconds(5);
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::time_point::max();
};

/// The bytes stay the caller's until the statement was run.
static void bind(sqlite3_stmt *statement, int index, std::string_view text) {
  sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

static void bind(sqlite3_stmt *statement, const TunedSchedule &entry,
                 const std::string &date) {
  int index = 0;
  for (const std::string *text :
       {&entry.device, &entry.kernels, &entry.problem, &entry.schedule})
    bind(statement, ++index, *text);
  sqlite3_bind_double(statement, ++index, entry.us);
  sqlite3_bind_int(statement, ++index, entry.candidates);
  bind(statement, ++index, date);
}

static std::string textOf(sqlite3_stmt *statement, int column) {
  const unsigned char *text = sqlite3_column_text(statement, column);
  int bytes = sqlite3_column_bytes(statement, column);
  return text ? std::string(reinterpret_cast<const char *>(text), bytes) : "";
}

static TunedSchedule entryOf(sqlite3_stmt *row) {
  return {.device = textOf(row, 0),
          .kernels = textOf(row, 1),
          .problem = textOf(row, 2),
          .schedule = textOf(row, 3),
          .us = sqlite3_column_double(row, 4),
          .candidates = sqlite3_column_int(row, 5),
          .date = textOf(row, 6)};
}

static void checkSchema(const std::string &path, int application, int schema) {
  if (application != kApplicationId)
    userError("{} is a SQLite database of something else: its application_id "
              "is {}, and that of a tuning database {}",
              path, application, kApplicationId);
  if (schema != kSchema)
    userError("{} has tables of version {}; this Kiln reads version {}", path,
              schema, kSchema);
}

/// SQLite waits for whoever is at the other end of a pipe, and writes where a
/// link leads to.
static void checkKind(const std::string &path, bool isWriting) {
  std::error_code ignored;
  fs::file_status status = fs::symlink_status(path, ignored);
  if (isWriting && fs::is_symlink(status))
    userError("{} is a symbolic link, which is not written through; name the "
              "file itself",
              path);
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    userError("{} is not a tuning database: it is not a regular file", path);
}

TuningDatabase::TuningDatabase(std::string path, Access access,
                               std::chrono::milliseconds patience)
    : path_(std::move(path)) {
  std::error_code ignored;
  bool isWriting = access == Access::write;
  if (isWriting && fs::path(path_).has_parent_path())
    fs::create_directories(fs::path(path_).parent_path(), ignored);
  if (!isWriting && !fs::exists(path_, ignored))
    userError("there is no tuning database {}; `kiln tune` makes one", path_);
  checkKind(path_, isWriting);
  connection_ = std::make_unique<Connection>(path_, access, patience);
  Connection &sql = *connection_;
  try {
    isWriting ? sql.makeTables() : sql.run("SELECT * FROM sqlite_master");
  } catch (const UserError &) {
    // In a folder that cannot be written WAL has no room for its index; where
    // nobody has left a log the file is all there is.
    if (isWriting || (fs::exists(path_ + "-wal", ignored) &&
                      fs::file_size(path_ + "-wal", ignored) != 0))
      throw;
    sql.open(SQLITE_OPEN_READONLY, uriOf(path_) + "?immutable=1");
  }
  checkSchema(path_, sql.number("PRAGMA application_id"),
              sql.number("PRAGMA user_version"));
  sql.checkTables();
  if (isWriting) {
    sql.switchToWal();
    sql.run("PRAGMA synchronous = NORMAL"); // a crash loses the last, no more
  }
}

TuningDatabase::TuningDatabase(TuningDatabase &&) noexcept = default;
TuningDatabase::~TuningDatabase() = default;

std::optional<TunedSchedule>
TuningDatabase::find(std::string_view device, std::string_view kernels,
                     std::string_view problem) const {
  auto statement = connection_->prepare(fmt::format(
      "SELECT {} FROM tuned WHERE device = ? AND kernels = ? AND problem = ?",
      kColumns));
  int index = 0;
  for (std::string_view text : {device, kernels, problem})
    bind(statement.get(), ++index, text);
  if (!connection_->step(statement))
    return std::nullopt;
  return entryOf(statement.get());
}

std::vector<TunedSchedule> TuningDatabase::entries() const {
  std::vector<TunedSchedule> list;
  auto statement = connection_->prepare(fmt::format(
      "SELECT {} FROM tuned ORDER BY device, kernels, problem", kColumns));
  while (connection_->step(statement))
    list.push_back(entryOf(statement.get()));
  return list;
}

void TuningDatabase::put(const TunedSchedule &entry) {
  if (!(entry.us > 0))
    userError("{} with {} takes {} us; a time is positive", entry.problem,
              entry.schedule, entry.us);
  auto statement = connection_->prepare(
      fmt::format("INSERT OR REPLACE INTO tuned ({}) VALUES "
                  "(?, ?, ?, ?, ?, ?, ?)",
                  kColumns));
  std::string date = entry.date.empty() ? dateNow() : entry.date;
  bind(statement.get(), entry, date);
  connection_->step(statement);
}

std::vector<TuningDatabase::Conflict>
TuningDatabase::merge(std::span<const TunedSchedule> entries) {
  std::vector<Conflict> conflicts;
  connection_->run("BEGIN IMMEDIATE");
  try {
    for (const TunedSchedule &entry : entries) {
      auto there = find(entry.device, entry.kernels, entry.problem);
      bool isFaster = !there || entry.us < there->us;
      if (there && there->schedule != entry.schedule)
        conflicts.push_back(isFaster ? Conflict{entry, *there}
                                     : Conflict{*there, entry});
      if (isFaster)
        put(entry);
    }
    connection_->run("COMMIT");
  } catch (const Error &) {
    sqlite3_exec(connection_->handle.get(), "ROLLBACK", nullptr, nullptr,
                 nullptr);
    throw;
  }
  return conflicts;
}

} // namespace kiln
