// LinkedText: several PTX texts in one, as cuLinkComplete gives them away.
#pragma once

#include <string>
#include <vector>

namespace kiln::cudart {

std::string joinTexts(const std::vector<std::string> &texts);
/// The texts again; one that was never joined is one.
std::vector<std::string> splitTexts(const std::string &text);

} // namespace kiln::cudart
