// LookUnits: mbarriers, asynchronous groups in flight, tensor memory.
#include "sim/debug/Looks.h"
#include "support/Error.h"

namespace kiln::sim {

using Json = nlohmann::json;

static std::string placeOf(const Runner &runner, const Op &op) {
  Finding::Frame frame = runner.places().framesOf(*op.origin).front();
  return fmt::format("{}:{}", frame.where.file, frame.where.line);
}

Json lookMbarriers(Runner &runner, const Json &request) {
  Cta &cta = ctaOf(runner, ThreadName::fromJson(request.at("thread")).cta);
  Json list = Json::array();
  for (const auto &[address, state] : cta.mbarriers) {
    Json senders = Json::array();
    for (const Op *op : state.senders)
      senders.push_back(placeOf(runner, *op));
    list.push_back({{"address", address},
                    {"name", cta.machine().findings().describeShared(address)},
                    {"completed", state.phase},
                    {"parity", state.phase & 1},
                    {"expected", state.expected},
                    {"pending", state.pending},
                    {"bytes", state.txCount},
                    {"senders", senders}});
  }
  return {{"cta", cta.index()}, {"mbarriers", list}};
}

/// Groups of copies of a warp's lanes: open, and committed and not known to be
/// over.
static void addCopies(const Runner &runner, Json &list, const char *unit,
                      PerLane<BulkGroups> &groups) {
  if (!groups.isUsed())
    return;
  for (int lane = 0; lane < kLanes; ++lane) {
    const BulkGroups *own = &groups[lane];
    auto add = [&](const std::vector<std::shared_ptr<Pending>> &works,
                   const char *state) {
      std::size_t waiting = 0;
      std::string at;
      for (const auto &work : works) {
        waiting += !work->isDone;
        if (work->op)
          at = placeOf(runner, *work->op);
      }
      if (works.empty())
        return;
      list.push_back({{"unit", unit},
                      {"lane", lane},
                      {"state", state},
                      {"operations", works.size()},
                      {"in_flight", waiting},
                      {"at", at}});
    };
    for (std::size_t i = 0; i < own->committed.size(); ++i)
      add(own->committed[i], "committed");
    add(own->open, "not committed");
  }
}

Json lookFlights(Runner &runner, const Json &request) {
  ThreadName thread = ThreadName::fromJson(request.at("thread"));
  Warp &warp = warpOf(runner, thread);
  Json list = Json::array();
  addCopies(runner, list, "cp.async.bulk", warp.bulk);
  addCopies(runner, list, "cp.async", warp.asyncCopies);
  Json held = Json::array();
  for (std::size_t i = 0; i < warp.wgmma.held.size(); ++i) {
    const WgmmaQueue::Held &product = warp.wgmma.held[i];
    held.push_back({{"number", product.number},
                    {"at", placeOf(runner, *product.op)},
                    {"registers", product.registers.size()}});
  }
  Json loads = Json::array();
  for (std::size_t i = 0; i < warp.tensor.loads.size(); ++i)
    loads.push_back({{"at", placeOf(runner, *warp.tensor.loads[i].op)}});
  return {{"thread", thread.toJson()},
          {"copies", list},
          {"wgmma",
           {{"issued", warp.wgmma.issued},
            {"committed_groups", warp.wgmma.groups.size()},
            {"not_waited_for", held}}},
          {"tcgen05",
           {{"uncommitted_lanes", warp.tensor.uncommitted},
            {"loads_not_waited_for", loads}}}};
}

Json lookTensor(Runner &runner, const Json &request) {
  Cta &cta = ctaOf(runner, ThreadName::fromJson(request.at("thread")).cta);
  TensorMemory *memory = cta.findTensorMemory();
  if (!memory)
    userError("CTA ({}, {}, {}) has used no tensor memory", cta.index()[0],
              cta.index()[1], cta.index()[2]);
  Json allocations = Json::array();
  for (const TensorMemory::Allocation &one : memory->allocations)
    allocations.push_back({{"column", one.column},
                           {"columns", one.columns},
                           {"at", one.op ? placeOf(runner, *one.op) : ""}});
  Json answer{{"cta", cta.index()}, {"allocations", allocations}};
  if (!request.contains("column"))
    return answer;
  auto column = request["column"].get<std::uint32_t>();
  auto columns = request.value("columns", 1u);
  auto row = request.value("row", 0u), rows = request.value("rows", 32u);
  Type type = parseDebugType(request.value("type", "f32"));
  if (size_bytes(type) != 4)
    userError("tensor memory is shown in types of 4 bytes, not in {}",
              name(type));
  if (!isInside(column, columns, TensorMemory::kColumns) ||
      !isInside(row, rows, TensorMemory::kLanes))
    userError("lanes {} to {}, columns {} to {}: tensor memory has {} lanes of "
              "{} columns",
              row, row + rows - 1, column, column + columns - 1,
              TensorMemory::kLanes, TensorMemory::kColumns);
  Json lines = Json::array();
  for (std::uint32_t lane = row; lane < row + rows; ++lane) {
    Json line = Json::array();
    for (std::uint32_t at = column; at < column + columns; ++at) {
      DebugValue value = DebugValue::of(type, *memory->at(lane, at));
      bool isWritten = memory->valid.all(TensorMemory::offset(lane, at), 4);
      line.push_back(!isWritten     ? Json(nullptr)
                     : value.isReal ? Json(value.real)
                                    : Json(value.whole));
    }
    lines.push_back(std::move(line));
  }
  answer["values"] = lines;
  return answer;
}

} // namespace kiln::sim
