// KeyTables: the rows for people, as docs/launch-file.md has them.
#include "check/launchfile/Keys.h"
#include "support/Error.h"

namespace kiln {

using namespace launchfile;

template <typename To>
static void append(std::vector<LaunchFileKey> &all, const Keys<To> &keys) {
  for (const Key<To> &key : keys)
    all.push_back(key.words);
}

std::vector<LaunchFileKey> launch_file_keys() {
  std::vector<LaunchFileKey> all;
  append(all, fileKeys());
  append(all, launchKeys());
  append(all, bufferKeys());
  append(all, pointerKeys());
  append(all, scalarKeys());
  append(all, tensorMapKeys());
  append(all, structKeys());
  append(all, fieldKeys());
  append(all, sharedKeys());
  return all;
}

std::string launch_file_table(std::string_view place) {
  std::string text = "| key | takes | default | meaning |\n|---|---|---|---|\n";
  for (const LaunchFileKey &key : launch_file_keys())
    if (key.place == place)
      text += fmt::format("| `{}` | {} | {} | {} |\n", key.name, key.accepted,
                          key.fallback.empty() ? "required" : key.fallback,
                          key.help);
  return text;
}

} // namespace kiln
