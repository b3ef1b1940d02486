// Seeds: what mutation begins with, made of what other tests have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::fuzz {

/// Inputs of a target, in the same order always; those that are written by hand
/// lie in corpus/TARGET.
std::vector<std::string> seedsOf(std::string_view target);

/// The words of a target's inputs, as libFuzzer takes them; empty: none.
std::string dictionaryOf(std::string_view target);

} // namespace kiln::fuzz
