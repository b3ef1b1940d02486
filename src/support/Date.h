// Date: now, as files keep it.
#pragma once

#include <ctime>
#include <string>

namespace kiln {

/// "2026-11-15T08:00:00Z"
inline std::string dateNow() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

} // namespace kiln
