// schedule: how a GEMM is computed, as words.
#include "words.h"

#include <kiln/gemm.h>

namespace kiln {

using namespace gemm;

static constexpr std::pair<GemmKind, std::string_view> kKinds[] = {
    {GemmKind::multistage, "multistage"},
    {GemmKind::warp_specialized, "warp-specialized"},
    {GemmKind::cooperative, "cooperative"},
    {GemmKind::pingpong, "pingpong"}};

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

static constexpr std::pair<bool, std::string_view> kSwitches[] = {
    {true, "on"}, {false, "off"}};

/// The fields that are one number, and the least it may be.
struct NumberField {
  int GemmSchedule::*field;
  std::string_view word;
  int least;
};
static constexpr NumberField kNumbers[] = {
    {&GemmSchedule::stages, "stages", 0},
    {&GemmSchedule::instruction_n, "instr-n", 0},
    {&GemmSchedule::consumers, "consumers", 0},
    {&GemmSchedule::raster_group, "raster-group", 1},
    {&GemmSchedule::ctas, "ctas", 0},
    {&GemmSchedule::occupancy, "occupancy", 1},
    {&GemmSchedule::split_k, "split-k", 1},
};

/// The fields that are two numbers, "2x1".
struct PairField {
  int GemmSchedule::*first, GemmSchedule::*second;
  std::string_view word;
  int least;
};
static constexpr PairField kPairs[] = {
    {&GemmSchedule::cluster_m, &GemmSchedule::cluster_n, "cluster", 1},
    {&GemmSchedule::epilogue_m, &GemmSchedule::epilogue_n, "epilogue-tile", 0},
    {&GemmSchedule::producer_registers, &GemmSchedule::consumer_registers,
     "registers", 0},
};

static constexpr const char *kKnown =
    "a schedule is multistage, warp-specialized, cooperative or pingpong, a "
    "tile MxNxK, and stages, instr-n, consumers, raster-group, ctas, "
    "occupancy, split-k, cluster, epilogue-tile, registers, split, a-from, "
    "swizzle, multicast, raster or swap with = and a value";

std::string_view name(GemmKind kind) { return name_in(kKinds, kind); }
GemmKind parse_gemm_kind(std::string_view text) {
  return parse_in(kKinds, text, "schedule");
}

std::string GemmSchedule::to_string() const {
  GemmSchedule usual;
  std::string text = fmt::format("{} {}x{}x{} stages={}", name(kind), tile_m,
                                 tile_n, tile_k, stages);
  auto add = [&](std::string_view word, std::string_view value) {
    text += fmt::format(" {}={}", word, value);
  };
  for (const NumberField &number : kNumbers)
    if (this->*number.field != usual.*number.field && number.word != "stages")
      add(number.word, std::to_string(this->*number.field));
  for (const PairField &pair : kPairs)
    if (this->*pair.first != usual.*pair.first ||
        this->*pair.second != usual.*pair.second)
      add(pair.word,
          fmt::format("{}x{}", this->*pair.first, this->*pair.second));
  if (split != usual.split)
    add("split", name_in(kSplits, split));
  if (is_a_in_registers != usual.is_a_in_registers)
    add("a-from", name_in(kPlacesOfA, is_a_in_registers));
  if (swizzle != usual.swizzle)
    add("swizzle", name_in(kSwizzles, swizzle));
  if (is_multicast != usual.is_multicast)
    add("multicast", name_in(kSwitches, is_multicast));
  if (raster != usual.raster)
    add("raster", name_in(kRasters, raster));
  if (is_swapped != usual.is_swapped)
    add("swap", name_in(kSwitches, is_swapped));
  return text;
}

/// Set the field that "key=value" names; false where none has it.
static bool set_field(GemmSchedule &schedule, const std::string &key,
                      const std::string &value) {
  for (const NumberField &number : kNumbers)
    if (key == number.word) {
      schedule.*number.field = parse_number(value, key, number.least);
      return true;
    }
  for (const PairField &pair : kPairs)
    if (key == pair.word) {
      std::vector<std::string> sides = split(value, 'x');
      if (sides.size() != 2)
        throw UserError(fmt::format("{} is '{}'; write two numbers, for "
                                    "example 2x1",
                                    key, value));
      schedule.*pair.first = parse_number(sides[0], key, pair.least);
      schedule.*pair.second = parse_number(sides[1], key, pair.least);
      return true;
    }
  if (key == "split")
    schedule.split = parse_in(kSplits, value, "side to split");
  else if (key == "a-from")
    schedule.is_a_in_registers = parse_in(kPlacesOfA, value, "place of A");
  else if (key == "swizzle")
    schedule.swizzle = parse_in(kSwizzles, value, "swizzle");
  else if (key == "multicast")
    schedule.is_multicast = parse_in(kSwitches, value, "multicast");
  else if (key == "raster")
    schedule.raster = parse_in(kRasters, value, "raster");
  else if (key == "swap")
    schedule.is_swapped = parse_in(kSwitches, value, "swap");
  else
    return false;
  return true;
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

GemmSchedule GemmSchedule::parse(const std::string &text) {
  GemmSchedule schedule;
  for (const std::string &word : gemm::split(text, ' ')) {
    auto [key, value] = key_value(word);
    bool begins_with_digit = word.find_first_of("0123456789") == 0;
    if (has_word(kKinds, word))
      schedule.kind = parse_gemm_kind(word);
    else if (begins_with_digit)
      set_tile(schedule, word);
    else if (!set_field(schedule, key, value))
      throw UserError(
          fmt::format("'{}' is not a word of a schedule: {}", word, kKnown));
  }
  return schedule;
}

} // namespace kiln
