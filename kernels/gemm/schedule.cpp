// schedule: how a GEMM is computed, as words: one row of one table for each
// field, from which text, kernel names and options follow.
#include "fields/columns.h"
#include "fields/field_text.h"

#include <kiln/kernels/gemm.h>

namespace kiln {

using namespace fields;

static constexpr std::pair<GemmKind, std::string_view> kKinds[] = {
    {GemmKind::multistage, "multistage"},
    {GemmKind::warp_specialized, "warp-specialized"},
    {GemmKind::cooperative, "cooperative"},
    {GemmKind::pingpong, "pingpong"},
    {GemmKind::vector, "vector"}};

static constexpr std::pair<GemmSplit, std::string_view> kSplits[] = {
    {GemmSplit::m, "m"}, {GemmSplit::n, "n"}};

static constexpr std::pair<Raster, std::string_view> kRasters[] = {
    {Raster::along_n, "n"}, {Raster::along_m, "m"}};

static constexpr std::pair<Swizzle, std::string_view> kSwizzles[] = {
    {Swizzle::none, "0"},
    {Swizzle::b32, "32"},
    {Swizzle::b64, "64"},
    {Swizzle::b128, "128"}};

/// Whether A is in registers.
static constexpr std::pair<bool, std::string_view> kPlacesOfA[] = {
    {false, "smem"}, {true, "regs"}};

/// Whether the grid divides K.
static constexpr std::pair<bool, std::string_view> kSplitters[] = {
    {false, "cluster"}, {true, "grid"}};

/// A field that is one number of at least `least`.
template <int GemmSchedule::*field, int least>
static constexpr Field<GemmSchedule>
number(std::string_view key, std::string_view meaning, bool is_open = false) {
  return {.key = key,
          .help = meaning,
          .is_open = is_open,
          .value = "N",
          .get = get_number<field>,
          .set = set_number<field, least>};
}

/// Two numbers, "2x1".
template <int GemmSchedule::*first, int GemmSchedule::*second, int least>
static constexpr Field<GemmSchedule>
pair(std::string_view key, std::string_view meaning, bool is_open = false) {
  return {.key = key,
          .help = meaning,
          .is_open = is_open,
          .value = "NxN",
          .get = get_pair<first, second>,
          .set = set_pair<first, second, least>};
}

/// One of a few words.
template <auto field, const auto &table>
static constexpr Field<GemmSchedule> choice(std::string_view key,
                                            std::string_view meaning) {
  return {.key = key,
          .help = meaning,
          .get = get_choice<field, table>,
          .set =
              [](GemmSchedule &schedule, std::string_view label,
                 const std::string &text) {
                set_choice<field, table>(
                    schedule, fmt::format("value of {}", label), text);
              },
          .words = words_in<table>};
}

/// Part of every text and name, not only where it is not the default.
static constexpr Field<GemmSchedule> always(Field<GemmSchedule> field) {
  field.is_always_said = true;
  return field;
}

static constexpr Field<GemmSchedule> kFields[] = {
    always(number<&GemmSchedule::stages, 0>("stages", "tiles in flight")),
    number<&GemmSchedule::instruction_n, 0>("instr-n",
                                            "columns of one instruction", true),
    number<&GemmSchedule::consumers, 0>("consumers", "warpgroups that multiply",
                                        true),
    choice<&GemmSchedule::split, kSplits>(
        "split", "the side that consumers divide: m or n"),
    choice<&GemmSchedule::is_a_in_registers, kPlacesOfA>(
        "a-from", "where wgmma reads A: smem or regs"),
    choice<&GemmSchedule::swizzle, kSwizzles>("swizzle",
                                              "bytes: 0, 32, 64 or 128"),
    pair<&GemmSchedule::cluster_m, &GemmSchedule::cluster_n, 1>(
        "cluster", "CTAs of a cluster, MxN"),
    number<&GemmSchedule::cta_group, 1>(
        "cta-group", "CTAs of a cluster that multiply together (Blackwell)"),
    choice<&GemmSchedule::is_multicast, kSwitches>(
        "multicast", "load once what a cluster shares: on or off"),
    number<&GemmSchedule::split_k, 1>("split-k",
                                      "CTAs that share a tile and divide K"),
    choice<&GemmSchedule::is_split_by_grid, kSplitters>(
        "split-by", "which CTAs divide K: those of a cluster, or of the grid"),
    choice<&GemmSchedule::is_swapped, kSwitches>(
        "swap", "compute the transpose, for few rows: on or off"),
    choice<&GemmSchedule::is_repacked, kSwitches>(
        "repack", "copy rows that TMA cannot take into a workspace: on or off"),
    choice<&GemmSchedule::raster, kRasters>(
        "raster", "which way the tiles are taken: m or n"),
    number<&GemmSchedule::raster_group, 1>(
        "raster-group", "rows (or columns) of tiles taken together"),
    number<&GemmSchedule::ctas, 0>(
        "ctas", "of a persistent kernel; 0: as many as fit", true),
    number<&GemmSchedule::occupancy, 1>("occupancy", "CTAs per multiprocessor"),
    pair<&GemmSchedule::epilogue_m, &GemmSchedule::epilogue_n, 0>(
        "epilogue-tile", "what goes out at once, MxN", true),
    pair<&GemmSchedule::producer_registers, &GemmSchedule::consumer_registers,
         0>("registers", "of the producer and of a consumer, 40x232", true),
};

std::span<const Field<GemmSchedule>> GemmSchedule::fields() { return kFields; }

std::string_view name(GemmKind kind) { return name_in(kKinds, kind); }
GemmKind parse_gemm_kind(std::string_view text) {
  return parse_in(kKinds, text, "schedule");
}

std::string GemmSchedule::to_string() const {
  return fmt::format("{} {}x{}x{} {}", name(kind), tile_m, tile_n, tile_k,
                     text_of(*this));
}

GemmSchedule GemmSchedule::reopened() const {
  GemmSchedule open = *this, usual;
  for (const Field<GemmSchedule> &field : kFields)
    if (field.is_open)
      field.read(open, field.get(usual));
  return open;
}

/// "128x128x64"
static void set_tile(GemmSchedule &schedule, const std::string &text) {
  std::vector<std::string> sides = split(text, 'x');
  int *fields[] = {&schedule.tile_m, &schedule.tile_n, &schedule.tile_k};
  try {
    for (std::size_t i = 0; i < 3; ++i)
      *fields[i] = parse_number(sides.at(i), "a side", 1);
    if (sides.size() == 3)
      return;
  } catch (const UserError &) {
  } catch (const std::out_of_range &) {
  }
  throw UserError(fmt::format(
      "'{}' is not a valid tile; write MxNxK, for example 128x128x64", text));
}

/// What a schedule is made of, for a word that it is not.
static std::string known_words_of_schedule() {
  std::vector<std::string_view> words;
  for (const Field<GemmSchedule> &field : kFields)
    words.push_back(field.key);
  return fmt::format("a schedule is one of {}, a tile MxNxK, and {} with = and "
                     "a value",
                     words_of(kKinds), fmt::join(words, ", "));
}

GemmSchedule GemmSchedule::parse(const std::string &text) {
  return GemmSchedule().with(text);
}

GemmSchedule GemmSchedule::with(const std::string &text) const {
  GemmSchedule schedule = *this;
  for (const std::string &word : fields::split(text, ' ')) {
    bool begins_with_digit = word.find_first_of("0123456789") == 0;
    if (has_word(kKinds, word))
      schedule.kind = parse_gemm_kind(word);
    else if (begins_with_digit)
      set_tile(schedule, word);
    else if (const auto *field = field_of<GemmSchedule>(word))
      field->read(schedule, key_value(word).second);
    else
      throw UserError(fmt::format("unknown schedule field '{}': {}", word,
                                  known_words_of_schedule()));
  }
  return schedule;
}

} // namespace kiln
