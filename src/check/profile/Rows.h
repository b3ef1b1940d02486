// Rows: a profile, divided into lines, instructions or kernels.
#pragma once

#include "kiln/check/profile.h"

namespace kiln {

struct ProfileRow {
  std::string place; ///< "a.cu:12"; the kernel
  std::string text;  ///< the instruction; empty: there are several
  SourceLine where = {};
  ProfileCounts counts;
};

/// "a.cu:12", or "PTX:30" where the PTX does not tell its lines.
std::string placeOf(const ProfiledInstruction &one);
/// In the order of the program.
std::vector<ProfileRow> rowsOf(std::span<const Profile> profiles, ProfileBy by);
/// "2x2x1"
std::string sizeText(const std::array<std::uint32_t, 3> &size);
/// The row of profile_counters() of that name. Throws UserError that lists them
/// where there is none.
const ProfileCounter &counterNamed(const std::string &name);
/// A quotient; 0 where nothing is divided.
inline double ratioOf(std::uint64_t a, std::uint64_t b) {
  return b ? double(a) / double(b) : 0;
}

} // namespace kiln
