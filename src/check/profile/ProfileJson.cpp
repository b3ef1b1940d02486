// ProfileJson: profiles as an object (docs/profile.schema.json).
#include "check/profile/Rows.h"

#include <nlohmann/json.hpp>

namespace kiln {

using nlohmann::ordered_json;

static const char *nameOf(AccessKind kind) {
  switch (kind) {
  case AccessKind::load:
    return "load";
  case AccessKind::store:
    return "store";
  case AccessKind::atomic:
    return "atomic";
  case AccessKind::none:
    break;
  }
  return "none";
}

/// Those that are not zero.
static ordered_json countsJson(const ProfileCounts &counts) {
  ordered_json value = ordered_json::object();
  for (const ProfileCounter &row : profile_counters())
    if (std::uint64_t count = counts[row.count])
      value[row.name] = count;
  return value;
}

static ordered_json accessJson(const AccessShape &access) {
  ordered_json value = {{"kind", nameOf(access.kind)},
                        {"alignment", access.alignment}};
  if (access.bytes)
    value["bytes"] = access.bytes;
  if (access.stride)
    value["stride"] = *access.stride;
  if (access.worst_ideal) {
    value["worst_wavefronts"] = access.worst_wavefronts;
    value["worst_ideal"] = access.worst_ideal;
  }
  if (access.most_collisions > 1)
    value["most_collisions"] = access.most_collisions;
  return value;
}

static ordered_json instructionJson(const ProfiledInstruction &one) {
  ordered_json value = {{"ptx_line", one.ptx_line},
                        {"file", one.where.file},
                        {"line", one.where.line},
                        {"instruction", one.text},
                        {"counts", countsJson(one.counts)}};
  if (one.access.alignment)
    value["access"] = accessJson(one.access);
  if (!one.tensor.empty())
    value["tensor"] = one.tensor;
  for (const Finding::Frame &frame : one.stack)
    value["stack"].push_back({{"function", frame.function},
                              {"file", frame.where.file},
                              {"line", frame.where.line}});
  return value;
}

static ordered_json occupancyJson(const ProfiledOccupancy &o) {
  ordered_json value = {{"ctas_per_sm", o.ctas_per_sm},
                        {"limit", o.limit},
                        {"by_threads", o.by_threads},
                        {"by_shared_memory", o.by_shared},
                        {"by_registers", o.by_registers},
                        {"by_ctas", o.by_ctas},
                        {"warps_per_cta", o.warps_per_cta},
                        {"max_warps_per_sm", o.max_warps_per_sm},
                        {"shared_bytes", o.shared_bytes},
                        {"occupancy", o.occupancy()},
                        {"ctas", o.ctas},
                        {"resident_ctas", o.resident},
                        {"waves", o.waves()},
                        {"tail", o.tail()}};
  if (o.registers)
    value["registers"] = {{"per_thread", o.registers},
                          {"from", o.registers_from}};
  return value;
}

static ordered_json trafficJson(const Profile &profile) {
  const ProfiledTraffic &t = profile.traffic;
  return {{"requested_read", t.requested_read},
          {"requested_written", t.requested_written},
          {"read_once", t.read_once},
          {"read_again", t.read_again},
          {"written", t.written},
          {"intensity", ratioOf(profile.operations(), t.compulsory())},
          {"requested_intensity",
           ratioOf(profile.operations(), t.requested())}};
}

static ordered_json profileJson(const Profile &profile) {
  ordered_json lines = ordered_json::array(), list = ordered_json::array(),
               hintList = ordered_json::array();
  for (const ProfileRow &row : rowsOf({&profile, 1}, ProfileBy::line))
    lines.push_back({{"place", row.place},
                     {"file", row.where.file},
                     {"line", row.where.line},
                     {"counts", countsJson(row.counts)}});
  for (const ProfiledInstruction &one : profile.instructions)
    list.push_back(instructionJson(one));
  for (const ProfileHint &hint : hints(profile))
    hintList.push_back({{"file", hint.where.file},
                        {"line", hint.where.line},
                        {"ptx_line", hint.ptx_line},
                        {"message", hint.message}});
  return {{"kernel", profile.kernel},
          {"launches", profile.launches},
          {"grid", profile.grid},
          {"block", profile.block},
          {"cluster", profile.cluster},
          {"finished", profile.is_finished},
          {"device", profile.device.name},
          {"occupancy", occupancyJson(profile.occupancy)},
          {"traffic_bytes", trafficJson(profile)},
          {"tensor", profile.tensor()},
          {"counts", countsJson(profile.total())},
          {"hints", hintList},
          {"lines", lines},
          {"instructions", list}};
}

std::string to_json(std::span<const Profile> profiles) {
  ordered_json list = ordered_json::array();
  for (const Profile &profile : profiles)
    list.push_back(profileJson(profile));
  ordered_json value = {{"version", kProfileVersion},
                        {"kiln", KILN_VERSION},
                        {"profiles", list}};
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

} // namespace kiln
