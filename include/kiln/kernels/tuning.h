// tuning.h: schedules that were measured, kept in a file that `auto` reads.
//
//     TuningDatabase database("tune.db", TuningDatabase::Access::write);
//     database.put({device.name, std::string(gemm_family()),
//     problem.to_string(),
//                   schedule.to_string(), 171.0});
//
// The file is SQLite's, in WAL mode: any number of processes of one host read
// it while others write. `kiln tune` fills it; pick_schedule looks up a problem
// there first, then in the table that Kiln ships, then asks the cost model.
#pragma once

#include <kiln/base/export.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// The fastest schedule that was found for a problem on a device.
struct TunedSchedule {
  std::string device;    ///< "NVIDIA H200"
  std::string kernels;   ///< the family and its version, gemm_family()
  std::string problem;   ///< in words
  std::string schedule;  ///< in words
  double us = 0;         ///< of a launch, rested
  int candidates = 1;    ///< that it is the fastest of
  std::string date = {}; ///< "2026-11-16T10:00:00Z"; empty: now

  bool operator==(const TunedSchedule &) const = default;
};

/// The database. Each problem of a device and a family is in it once. Whatever
/// fails throws an Error with the file and what is the matter.
class TuningDatabase {
public:
  enum class Access { read, write };

  /// Open, with write access after creating it and its folder. `patience` is
  /// how long to wait where another process holds the file.
  TuningDatabase(std::string path, Access access,
                 std::chrono::milliseconds patience = std::chrono::seconds(10));
  TuningDatabase(TuningDatabase &&) noexcept;
  ~TuningDatabase();

  std::optional<TunedSchedule> find(std::string_view device,
                                    std::string_view kernels,
                                    std::string_view problem) const;
  /// All of them, by device, family and problem.
  std::vector<TunedSchedule> entries() const;
  /// Keep this one, whatever was there.
  void put(const TunedSchedule &entry);

  /// Two databases disagree: the faster stays.
  struct Conflict {
    TunedSchedule kept, dropped;
  };
  /// Keep the faster of each of these and what is there, all or none.
  std::vector<Conflict> merge(std::span<const TunedSchedule> entries);

  const std::string &path() const { return path_; }

private:
  struct Connection;
  std::string path_;
  std::unique_ptr<Connection> connection_;
};

/// The database of this process: KILN_TUNE_DB, else tune.db in the folder of
/// the cache; empty: there is none.
std::string tuning_database_path();

/// What it has of the problem. A database that cannot be read counts as empty,
/// which is said once on stderr.
std::optional<TunedSchedule> find_tuned(std::string_view device,
                                        std::string_view kernels,
                                        std::string_view problem);
/// Say once on stderr that an entry of it is not used, and why.
void warn_of_tuned(const TunedSchedule &entry, std::string_view reason);

/// The kernels of kiln/gemm.h as they are now. Schedules that were measured
/// with other ones do not count.
std::string_view gemm_family();

} // namespace kiln
