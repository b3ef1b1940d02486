// LookRegisters: registers of a thread or of all lanes, and expressions.
#include "kiln/base/text.h"
#include "sim/debug/Looks.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

using Json = nlohmann::json;

static std::string hexOf(std::uint64_t bits, int bytes) {
  return fmt::format("{:#0{}x}", bits, 2 + 2 * bytes);
}

/// A register as JSON: of the lane, or of all 32.
static Json registerJson(const Warp &warp, const ThreadName &thread,
                         const ptx::Register &declared, const Reg &reg,
                         int pred, bool isAll) {
  auto valueAt = [&](int lane) -> Json {
    if (pred >= 0)
      return (warp.pred({pred, false}) >> lane & 1) != 0;
    DebugValue value =
        DebugValue::of(shownType(declared.type), warp.read(reg, lane));
    return value.isReal ? Json(value.text()) : Json(value.whole);
  };
  Json json{{"name", declared.name}, {"type", ptx::name(declared.type)}};
  if (isAll) {
    Json values = Json::array();
    for (int lane = 0; lane < kLanes; ++lane)
      values.push_back(valueAt(lane));
    json["values"] = values;
    return json;
  }
  json["value"] = valueAt(thread.lane);
  if (pred < 0) {
    json["bits"] = hexOf(warp.read(reg, thread.lane), reg.bytes);
    if (warp.poison(reg) >> thread.lane & 1)
      json["unwritten"] = true;
  }
  return json;
}

static Json specialsJson(ThreadView &view) {
  Json list = Json::array();
  for (const char *name :
       {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z",
        "%ntid.x", "%nctaid.x", "%laneid", "%warpid", "%cluster_ctarank"})
    try {
      list.push_back(
          {{"name", name}, {"value", view.registerValue(name, {}).whole}});
    } catch (const UserError &) {
      continue; // this target has none of that name
    }
  return list;
}

Json lookRegisters(Runner &runner, const Json &request) {
  ThreadName thread = ThreadName::fromJson(request.at("thread"));
  Warp &warp = warpOf(runner, thread);
  ThreadView view(warp, thread.lane);
  const FunctionCode &code = view.function();
  bool isAll = request.value("all", false);
  auto wanted = request.value("names", std::vector<std::string>());
  Json list = Json::array();
  const auto &registers = code.function->registers;
  for (std::size_t i = 0; i < registers.size(); ++i) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(),
                                     registers[i].name) == wanted.end())
      continue;
    int pred = code.declaredPredicates[i];
    if (pred < 0 && !code.declared[i].isValid())
      continue;
    // One of 16 bytes is two, which no expression reads.
    if (pred < 0 && ptx::sizeBytes(registers[i].type) > 8)
      continue;
    list.push_back(registerJson(warp, thread, registers[i], code.declared[i],
                                pred, isAll));
  }
  Json answer{{"thread", thread.toJson()},
              {"function", quote(code.function->name, 200)},
              {"registers", list}};
  if (request.value("special", false))
    answer["special"] = specialsJson(view);
  for (const std::string &name : wanted)
    if (std::none_of(list.begin(), list.end(),
                     [&](const Json &one) { return one["name"] == name; }))
      answer["special"].push_back(
          {{"name", name}, {"value", view.registerValue(name, {}).number()}});
  return answer;
}

Json lookExpression(Runner &runner, const Json &request) {
  ThreadName thread = ThreadName::fromJson(request.at("thread"));
  Warp &warp = warpOf(runner, thread);
  Expression expression =
      Expression::parse(request.at("expression").get<std::string>());
  auto valueAt = [&](int lane) {
    ThreadView view(warp, lane);
    DebugValue value = expression.evaluate(view);
    return value.isReal ? Json(value.text()) : Json(value.whole);
  };
  Json answer{{"expression", expression.text()}, {"thread", thread.toJson()}};
  if (!request.value("all", false)) {
    answer["value"] = valueAt(thread.lane);
    if (answer["value"].is_number_integer())
      answer["hex"] = fmt::format(
          "{:#x}",
          static_cast<std::uint64_t>(answer["value"].get<std::int64_t>()));
    return answer;
  }
  Json values = Json::array();
  for (int lane = 0; lane < kLanes; ++lane)
    try {
      values.push_back(valueAt(lane));
    } catch (const UserError &error) {
      values.push_back({{"error", error.message()}});
    }
  answer["values"] = values;
  return answer;
}

} // namespace kiln::sim
