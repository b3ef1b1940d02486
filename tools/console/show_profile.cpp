// show_profile: a table on stdout, or a file.
#include "show_profile.h"
#include "say.h"

namespace kiln::cli {

void show_profile(std::span<const Profile> profiles, const std::string &path,
                  const ProfileTable &table) {
  if (path == "-") {
    say("{}", to_table(profiles, table));
    return;
  }
  save_profile(profiles, path);
  say("{:<10} {}\n", "profile", path);
}

} // namespace kiln::cli
