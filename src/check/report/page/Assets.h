// Assets: the style and the script of report pages, with what a browser must
// find them to be: nothing else runs (Content-Security-Policy).
#pragma once

#include <string_view>

namespace kiln {

struct PageAssets {
  std::string_view style, styleHash, script, scriptHash;
};

/// Made at build time from page/*.css and page/*.js (cmake/KilnPage.cmake).
const PageAssets &pageAssets();

} // namespace kiln
