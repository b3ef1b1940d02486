// Table: profiles as people read them in a terminal.
#include "check/profile/Rows.h"
#include "kiln/base/text.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>

namespace kiln {

namespace {
/// A column: its head, and what a row has there; empty: nothing to say.
struct ProfileColumn {
  const char *head;
  std::function<std::string(const ProfileCounts &)> text;
};
} // namespace

static std::string countText(std::uint64_t count) {
  return count ? fmt::format("{}", count) : "";
}

/// "8.0", of what happened at all.
static std::string quotientText(std::uint64_t a, std::uint64_t b) {
  return b ? fmt::format("{:.1f}", ratioOf(a, b)) : "";
}

static std::string columnOf(const ProfileCounts &counts, Count count) {
  return countText(counts[count]);
}

static std::vector<ProfileColumn> allColumns() {
  using C = const ProfileCounts &;
  return {
      {"warps", [](C c) { return columnOf(c, Count::executions); }},
      {"lanes",
       [](C c) {
         return quotientText(c[Count::threads_on], c[Count::executions]);
       }},
      {"diverging", [](C c) { return columnOf(c, Count::divergent_branches); }},
      {"sectors", [](C c) { return columnOf(c, Count::global_sectors); }},
      {"per request",
       [](C c) {
         return quotientText(c[Count::global_sectors],
                             c[Count::global_requests]);
       }},
      {"ideal",
       [](C c) {
         return quotientText(c[Count::global_sectors_ideal],
                             c[Count::global_requests]);
       }},
      {"local sectors", [](C c) { return columnOf(c, Count::local_sectors); }},
      {"wavefronts",
       [](C c) { return columnOf(c, Count::shared_wavefronts); }},
      {"n-way",
       [](C c) {
         return quotientText(c[Count::shared_wavefronts],
                             c[Count::shared_wavefronts_ideal]);
       }},
      {"cluster bytes", [](C c) { return columnOf(c, Count::cluster_bytes); }},
      {"collisions",
       [](C c) { return columnOf(c, Count::atomic_collisions); }},
      {"copies", [](C c) { return columnOf(c, Count::copies); }},
      {"copied bytes", [](C c) { return columnOf(c, Count::copy_bytes); }},
      {"multicast",
       [](C c) {
         return c[Count::copy_targets] > c[Count::copies]
                    ? quotientText(c[Count::copy_targets], c[Count::copies])
                    : "";
       }},
      {"waited", [](C c) { return columnOf(c, Count::wait_time); }},
      {"FLOP", [](C c) { return columnOf(c, Count::operations); }},
  };
}

/// "1.5 MiB"
static std::string bytesText(std::uint64_t bytes) {
  static constexpr const char *kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  return unit ? fmt::format("{:.1f} {}", value, kUnits[unit])
              : fmt::format("{} bytes", bytes);
}

static std::string headLine(const char *what, const std::string &text) {
  return fmt::format("{:<10} {}\n", what, text);
}

static std::string occupancyText(const Profile &profile) {
  const ProfiledOccupancy &o = profile.occupancy;
  std::string registers = "registers unknown";
  if (o.by_registers)
    registers = fmt::format("registers {} ({} per thread by {})",
                            o.by_registers, o.registers, o.registers_from);
  return fmt::format("{} CTAs on each SM, {:.1f}% of its warps, limited by {}: "
                     "threads {}, shared memory {}, {}, CTAs {}",
                     o.ctas_per_sm, 100 * o.occupancy(), o.limit, o.by_threads,
                     o.by_shared, registers, o.by_ctas);
}

static std::string wavesText(const Profile &profile) {
  const ProfiledOccupancy &o = profile.occupancy;
  if (!o.resident)
    return "the device cannot hold a CTA of it";
  std::string text = fmt::format("{:.2f}: {} CTAs, {} at once", o.waves(),
                                 o.ctas, o.resident);
  if (o.tail() > 0)
    text += fmt::format("; the last wave leaves {:.1f}% of the device idle",
                        100 * o.tail());
  return text;
}

static std::string trafficText(const Profile &profile) {
  const ProfiledTraffic &t = profile.traffic;
  return fmt::format("{} read, {} of it once and {} more than once ({} asked "
                     "for again); {} written",
                     bytesText(t.read_once + t.read_again),
                     bytesText(t.read_once), bytesText(t.read_again),
                     bytesText(t.requested_read - t.read_once - t.read_again),
                     bytesText(t.written));
}

static std::string intensityText(const Profile &profile) {
  return fmt::format(
      "{:.1f} FLOP for each byte that has to move, {:.1f} for each that is "
      "requested",
      ratioOf(profile.operations(), profile.traffic.compulsory()),
      ratioOf(profile.operations(), profile.traffic.requested()));
}

static std::string launchText(const Profile &profile) {
  std::string text = headLine(
      "profile",
      fmt::format("{}, grid {}, block {}{} on {}{}", printable(profile.kernel),
                  sizeText(profile.grid), sizeText(profile.block),
                  profile.cluster == std::array<std::uint32_t, 3>{1, 1, 1}
                      ? ""
                      : ", cluster " + sizeText(profile.cluster),
                  profile.device.name,
                  profile.launches.size() > 1
                      ? fmt::format(", {} launches", profile.launches.size())
                      : ""));
  if (!profile.is_finished)
    text += headLine("", "a finding has ended it: the counts are of what ran");
  text += headLine("occupancy", occupancyText(profile));
  text += headLine("waves", wavesText(profile));
  text += headLine("memory", trafficText(profile));
  if (profile.operations())
    text += headLine("intensity", intensityText(profile));
  for (const auto &[shape, count] : profile.tensor())
    text += headLine("tensor", fmt::format("{} of {}", count, shape));
  return text;
}

/// The value that rows are sorted by, the largest first.
static void sortRows(std::vector<ProfileRow> &rows, Count count) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ProfileRow &a, const ProfileRow &b) {
                     return a.counts[count] > b.counts[count];
                   });
}

static std::string gridText(const std::vector<ProfileRow> &rows, ProfileBy by) {
  std::vector<std::vector<std::string>> cells(rows.size() + 1);
  cells[0].push_back(by == ProfileBy::kernel ? "kernel" : "line");
  for (std::size_t i = 0; i < rows.size(); ++i)
    cells[i + 1].push_back(printable(rows[i].place));
  for (const ProfileColumn &column : allColumns()) {
    std::vector<std::string> texts;
    for (const ProfileRow &row : rows)
      texts.push_back(column.text(row.counts));
    if (std::all_of(texts.begin(), texts.end(),
                    [](const std::string &text) { return text.empty(); }))
      continue;
    cells[0].push_back(column.head);
    for (std::size_t i = 0; i < texts.size(); ++i)
      cells[i + 1].push_back(texts[i]);
  }
  std::string text;
  std::vector<std::size_t> widths(cells[0].size());
  for (const auto &row : cells)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string line = fmt::format("{:<{}}", cells[i][0], widths[0]);
    for (std::size_t j = 1; j < cells[i].size(); ++j)
      line += fmt::format("  {:>{}}", cells[i][j], widths[j]);
    if (i > 0 && by == ProfileBy::instruction)
      line += "  " + printable(rows[i - 1].text);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string to_table(std::span<const Profile> profiles,
                     const ProfileTable &table) {
  Count sorted = table.sort.empty() ? Count::executions
                                    : counterNamed(table.sort).count;
  std::string text;
  auto addRows = [&](std::span<const Profile> some) {
    std::vector<ProfileRow> rows = rowsOf(some, table.by);
    sortRows(rows, sorted);
    std::size_t all = rows.size();
    if (table.rows && rows.size() > table.rows)
      rows.resize(table.rows);
    text += '\n' + gridText(rows, table.by);
    if (rows.size() < all)
      text += fmt::format("and {} more\n", all - rows.size());
  };
  for (const Profile &profile : profiles) {
    text += launchText(profile);
    if (table.by != ProfileBy::kernel)
      addRows({&profile, 1});
    for (const ProfileHint &hint : hints(profile))
      text += headLine("hint", hint.to_string());
  }
  if (table.by == ProfileBy::kernel && !profiles.empty())
    addRows(profiles);
  return text;
}

} // namespace kiln
