// show_profile: how what a launch costs is shown to people.
#pragma once

#include <kiln/check/profile.h>

#include <span>
#include <string>

namespace kiln::cli {

/// Write profiles to the file of --profile, or print the table where it is "-".
/// Throws RuntimeError where it cannot be written.
void show_profile(std::span<const Profile> profiles, const std::string &path,
                  const ProfileTable &table = {});

} // namespace kiln::cli
