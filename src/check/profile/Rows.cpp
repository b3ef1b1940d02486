// Rows: one for each place, instructions of one line together.
#include "check/profile/Rows.h"
#include "support/Error.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <map>

namespace kiln {

std::string placeOf(const ProfiledInstruction &one) {
  if (!one.where.is_known() || one.where.file == "PTX")
    return fmt::format("PTX:{}", one.ptx_line);
  return fmt::format("{}:{}", one.where.file, one.where.line);
}

std::string sizeText(const std::array<std::uint32_t, 3> &size) {
  return fmt::format("{}", fmt::join(size, "x"));
}

std::vector<ProfileRow> rowsOf(std::span<const Profile> profiles,
                               ProfileBy by) {
  std::vector<ProfileRow> rows;
  for (const Profile &profile : profiles) {
    if (by == ProfileBy::kernel) {
      rows.push_back({.place = profile.kernel, .counts = profile.total()});
      continue;
    }
    std::map<std::string, std::size_t> known; // of this kernel
    for (const ProfiledInstruction &one : profile.instructions) {
      std::string place = placeOf(one);
      auto [at, isNew] = known.try_emplace(place, rows.size());
      if (isNew || by == ProfileBy::instruction) {
        at->second = rows.size();
        rows.push_back({place, one.text, one.where, {}});
      } else {
        rows[at->second].text.clear();
      }
      rows[at->second].counts.add(one.counts);
    }
  }
  return rows;
}

const ProfileCounter &counterNamed(const std::string &name) {
  std::vector<std::string> names;
  for (const ProfileCounter &row : profile_counters()) {
    if (name == row.name)
      return row;
    names.push_back(row.name);
  }
  userError("there is no counter '{}'; there are {}", name,
            fmt::join(names, ", "));
}

} // namespace kiln
