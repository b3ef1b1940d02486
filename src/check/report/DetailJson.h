// DetailJson: the details of launches as JSON, written and read.
#pragma once

#include "kiln/check/report.h"
#include "support/text/JsonNode.h"

#include <nlohmann/json.hpp>

namespace kiln {

nlohmann::ordered_json toJson(const std::vector<Finding::Frame> &stack);
std::vector<Finding::Frame> stackFrom(const JsonNode &node);

nlohmann::ordered_json toJson(const Listing &listing);
Listing listingFrom(const JsonNode &node);

nlohmann::ordered_json toJson(const SourceExcerpt &source);
SourceExcerpt sourceFrom(const JsonNode &node);

/// Of the launch of that number; what its listing tells is left out.
nlohmann::ordered_json toJson(std::uint64_t launch,
                              const ReportedLaunch::Detail &detail);
ReportedLaunch::Detail detailFrom(const JsonNode &node);

/// Texts of a file that somebody else may have written.
std::string textFrom(const JsonNode &node, const char *key);
std::uint64_t wholeFrom(const JsonNode &node, const char *key,
                        std::uint64_t fallback = 0);
std::array<std::uint32_t, 3> sizeFrom(const JsonNode &node, const char *key);

} // namespace kiln
