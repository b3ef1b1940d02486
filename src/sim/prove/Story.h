// Story: a counterexample as people tell it: who goes on, where, and what comes
// of it.
#pragma once

#include "kiln/run/launch.h"
#include "sim/prove/Search.h"

#include <string>
#include <vector>

namespace kiln::sim {

/// Steps in this order, in at most 20 lines. Those of one process that follow
/// each other are one line.
std::vector<std::string> tellStory(const Search &search,
                                   std::span<const std::size_t> order,
                                   const LaunchResult &result);

/// "cta0.warp2.lane0", and "cta0.warp2.lane0#3" for the third piece of work
/// that those lanes have issued.
std::string nameOf(const Search &search, const Process &process);
/// Those who take steps in this order.
std::vector<std::string> namesOf(const Search &search,
                                 std::span<const std::size_t> order);
/// Give the search such names to make the same choices. Throws UserError.
void replayNames(Search &search, const std::vector<std::string> &names);

} // namespace kiln::sim
