// launch_files: launch files, run one after the other: a folder of them, or a
// shard of it.
#pragma once

#include <kiln/base/error.h>
#include <kiln/check/options.h>
#include <kiln/check/report.h>

#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// Which part of a list: the i-th of n, i from 1.
struct Shard {
  std::size_t index = 1, count = 1;

  /// "2/8". Throws UserError.
  static Shard parse(std::string_view text);
};

/// A launch file of a folder, and the number of its first launch in all of it:
/// the same whatever the shard.
struct NumberedFile {
  std::string path, name; ///< `name`: as reports call it
  std::uint64_t first = 1;
};

/// Those of the folder that name their PTX, by name. Throws UserError where
/// there are none.
std::vector<NumberedFile> launch_files_of(const std::string &folder);

/// Run one in every interleaving; nothing is printed. What is refused is in the
/// report.
Report check_file(const NumberedFile &file, const CheckSettings &settings);

/// Run the shard's files, and tell of each.
Report check_folder(const std::string &folder, const Shard &shard,
                    const CheckSettings &settings);

} // namespace kiln::cli
