// Looks: what can be asked of a launch that stands still: threads, registers,
// memory, barriers, what is in flight.
#pragma once

#include "sim/debug/Runner.h"

namespace kiln::sim {

/// Answer a question. Throws UserError where there is no answer.
nlohmann::json look(Runner &runner, const nlohmann::json &request);

/// Where a thread stands: the time, its instruction, its frames.
nlohmann::json positionOf(Runner &runner, const ThreadName &thread);

// By topic, for `look`.

/// The warp that a request is about. Throws UserError where it is not under
/// way.
Warp &warpOf(const Runner &runner, const ThreadName &thread);
Cta &ctaOf(const Runner &runner, const Dim3 &index);
nlohmann::json lookThreads(Runner &runner, const nlohmann::json &request);
nlohmann::json lookRegisters(Runner &runner, const nlohmann::json &request);
nlohmann::json lookExpression(Runner &runner, const nlohmann::json &request);
nlohmann::json lookMemory(Runner &runner, const nlohmann::json &request);
nlohmann::json lookTile(Runner &runner, const nlohmann::json &request);
nlohmann::json lookTensorMap(Runner &runner, const nlohmann::json &request);
nlohmann::json lookDescriptor(Runner &runner, const nlohmann::json &request);
nlohmann::json lookMbarriers(Runner &runner, const nlohmann::json &request);
nlohmann::json lookFlights(Runner &runner, const nlohmann::json &request);
nlohmann::json lookTensor(Runner &runner, const nlohmann::json &request);

} // namespace kiln::sim
