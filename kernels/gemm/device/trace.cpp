// trace: the words of each line.
#include "trace.h"
#include "operands.h"

#include <kiln/language/threads/threads.h>

namespace kiln::gemm_kernel {

/// Print in the first thread of the warpgroup that stands here.
static void say(const std::string &format, std::initializer_list<At> values,
                std::optional<Value> condition = std::nullopt) {
  Value is_first = warpgroup_thread_id() == 0;
  if (condition)
    is_first = is_first && *condition;
  print(format, values, {.predicate = is_first, .is_debug = true});
}

/// Print in the thread that stands here.
static void say_alone(const std::string &format,
                      std::initializer_list<At> values) {
  print(format, values, PrintOptions{.is_debug = true});
}

Trace::Trace(const GemmProblem &problem, const GemmSchedule &schedule)
    : stages_(schedule.stages), tile_k_(schedule.tile_k),
      a_bytes_(tile_of_a(problem, schedule).stride_bytes()),
      b_bytes_(tile_of_b(problem, schedule).stride_bytes()),
      panel_bytes_(tile_of_b(problem, schedule).panel_bytes()) {}

Value Trace::phase(const Value &iv, int first) const {
  return (iv / stages_ + first) % 2;
}

Value Trace::b_offset(const Value &slot) const {
  return slot * b_bytes_ + a_bytes_ * stages_;
}

void Trace::producer_waits(const Value &iv) const {
  say_alone("[prod] iv={}  | mbarDONE[{}] try_wait  phase={}",
            {iv, stage(iv), phase(iv, 1)});
}

void Trace::producer_loaded(const Value &iv) const {
  Value slot = stage(iv), b = b_offset(slot);
  say_alone("[prod] iv={}  | mbarDONE[{}] try_wait  phase={} [done]",
            {iv, slot, phase(iv, 1)});
  say_alone("[prod] a_offset={} b_offset={} b_offset2={}",
            {a_offset(slot), b, b + panel_bytes_});
  say_alone("[prod] iv={}  | mbarTMA[{}] arrive", {iv, slot});
  say_alone("[prod] iv={}  | mbarTMA[{}] arrive [done]", {iv, slot});
}

void Trace::consumer_waits(const Value &iv) const {
  say("[cons] iv={}  | mbarTMA[{}] try_wait   phase={}",
      {iv, stage(iv), phase(iv, 0)});
}

void Trace::consumer_multiplies(const Value &iv) const {
  Value slot = stage(iv);
  say("[cons] iv={}  | mbarTMA[{}] try_wait   phase={} [done]",
      {iv, slot, phase(iv, 0)});
  say("[cons] a_offset={} b_offset={}", {a_offset(slot), b_offset(slot)});
}

void Trace::consumer_releases(const Value &iv) const {
  // With one slot a multiplication ends in its own turn, else in the next.
  std::optional<Value> is_held;
  if (stages_ > 1)
    is_held = iv > 0;
  Value slot = stage(iv + (stages_ - 1));
  say("[cons] iv={}  | mbarDONE[{}] arrive ", {iv, slot}, is_held);
  say("[cons] iv={}  | mbarDONE[{}] arrive [done]", {iv, slot}, is_held);
}

void Trace::consumer_stores() const { say("[cons]  | Storing", {}); }

void Trace::prologue_loads(const Value &iv, const Value &row,
                           const Value &column) const {
  Value slot = stage(iv), b = b_offset(slot), k = iv * tile_k_;
  say("[Prologue] TMA Load a_offset={} b_offset={} b_offset2={} @ a=({},{}) "
      "b=({},{})",
      {a_offset(slot), b, b + panel_bytes_, k, row, column, k});
  say("[Prologue] mbarTMA[{}] arrive", {slot});
  say("[Prologue] mbarTMA[{}] arrive [done]", {slot});
}

void Trace::main_waits(const Value &iv) const {
  say("[MainLoop] mbarTMA[{}] try_wait   phase={}", {stage(iv), phase(iv, 0)});
}

void Trace::main_multiplies(const Value &iv) const {
  Value slot = stage(iv);
  say("[MainLoop] mbarTMA[{}] try_wait   phase={} [done]",
      {slot, phase(iv, 0)});
  say("[MainLoop] iv={} MMA a_offset={} b_offset={}",
      {iv, a_offset(slot), b_offset(slot)});
}

void Trace::main_loads(const Value &iv, const Value &next, const Dim &k_tiles,
                       const Value &row, const Value &column) const {
  Value is_any = next < k_tiles;
  Value slot = stage(next), b = b_offset(slot), k = next * tile_k_;
  say("[MainLoop] mbarTMA[{}] arrive", {slot}, is_any);
  say("[MainLoop] mbarTMA[{}] arrive [done]", {slot}, is_any);
  say("[MainLoop] iv={} TMA Load a_offset={} b_offset={} b_offset2={} @ "
      "a=({},{}) b=({},{})",
      {iv, a_offset(slot), b, b + panel_bytes_, k, row, column, k}, is_any);
}

void Trace::stores() const { say("Storing", {}); }

} // namespace kiln::gemm_kernel
