// Hints: what is certain to cost more than it has to.
//
// A hint follows from counts of all requests of an instruction: nothing is said
// of what happens now and then, or may be meant.
#include "check/profile/Rows.h"

#include <cstdlib>
#include <fmt/format.h>

namespace kiln {

std::string ProfileHint::to_string() const {
  return where.is_known() && where.file != "PTX"
             ? fmt::format("{}:{}: {}", where.file, where.line, message)
             : fmt::format("PTX:{}: {}", ptx_line, message);
}

/// "consecutive lanes are 128 bytes apart"
static std::string apart(const AccessShape &access) {
  if (!access.stride || *access.stride == 0)
    return "";
  return fmt::format("; consecutive {} are {} bytes apart",
                     access.is_matrix ? "rows" : "lanes",
                     std::llabs(*access.stride));
}

/// Every request has a conflict, and the worst of them as all have on average.
static std::string bankHint(const ProfiledInstruction &one) {
  const ProfileCounts &c = one.counts;
  std::uint64_t actual = c[Count::shared_wavefronts];
  std::uint64_t ideal = c[Count::shared_wavefronts_ideal];
  const AccessShape &access = one.access;
  bool isSame = access.worst_ideal &&
                actual * access.worst_ideal == ideal * access.worst_wavefronts;
  if (!isSame || access.worst_wavefronts < 2 * access.worst_ideal ||
      access.kind == AccessKind::atomic)
    return "";
  std::string distance = apart(access);
  return fmt::format(
      "{}-way bank conflict: each request takes {} wavefronts where {} would "
      "do{}{}",
      access.worst_wavefronts / access.worst_ideal, access.worst_wavefronts,
      access.worst_ideal, distance,
      distance.empty() ? "" : "; pad or swizzle the rows");
}

static std::string sectorHint(const ProfiledInstruction &one) {
  const ProfileCounts &c = one.counts;
  std::uint64_t requests = c[Count::global_requests];
  std::uint64_t actual = c[Count::global_sectors];
  std::uint64_t ideal = c[Count::global_sectors_ideal];
  const AccessShape &access = one.access;
  if (!requests || actual <= ideal || !access.stride ||
      access.kind == AccessKind::atomic)
    return "";
  auto stride = static_cast<std::uint64_t>(std::llabs(*access.stride));
  bool isDense = stride == access.bytes;
  if (isDense && access.alignment < 32)
    return fmt::format("misaligned: requests begin {} bytes from a multiple of "
                       "32 and move {:.1f} sectors where {:.1f} would do; align "
                       "the first lane to 32 bytes",
                       access.alignment, ratioOf(actual, requests),
                       ratioOf(ideal, requests));
  if (isDense || actual < 2 * ideal)
    return "";
  return fmt::format(
      "uncoalesced: each request moves {:.1f} sectors where {:.1f} would do{}; "
      "let neighbouring lanes take neighbouring elements",
      ratioOf(actual, requests), ratioOf(ideal, requests), apart(access));
}

static std::string atomicHint(const ProfiledInstruction &one) {
  const ProfileCounts &c = one.counts;
  std::uint64_t lanes = c[Count::atomic_lanes];
  std::uint64_t requests =
      c[Count::global_requests] + c[Count::shared_requests];
  // All lanes of every request have one address.
  if (lanes < 2 * requests || !requests ||
      c[Count::atomic_collisions] + requests != lanes)
    return "";
  return fmt::format("all lanes of a request ({:.1f} on average) update one "
                     "address; reduce in the warp first and let one lane do it",
                     ratioOf(lanes, requests));
}

std::vector<ProfileHint> hints(const Profile &profile) {
  std::vector<ProfileHint> all;
  for (const ProfiledInstruction &one : profile.instructions)
    for (const std::string &message :
         {bankHint(one), sectorHint(one), atomicHint(one)}) {
      ProfileHint hint{one.where, one.ptx_line, message};
      bool isKnown = false; // an unrolled loop is one line
      for (const ProfileHint &other : all)
        isKnown |= other.to_string() == hint.to_string();
      if (!message.empty() && !isKnown)
        all.push_back(std::move(hint));
    }
  return all;
}

} // namespace kiln
