// Values: what several rows of launch files read.
#pragma once

#include "kiln/base/types.h"
#include "support/text/JsonNode.h"

#include <string>

namespace kiln::launchfile {

/// "f16, bf16, ...": the types of buffers and numbers.
std::string typeNames();
/// One of them, or of those that tensor maps alone have.
Type readType(const JsonNode &node, bool isOfMap = false);
/// Refuse what is not an alignment that buffers have.
void checkAlign(const JsonNode &node);

} // namespace kiln::launchfile
