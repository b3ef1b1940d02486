// LaneAccess: addresses, values and writers, lane by lane.
#include "sim/units/memory/LaneAccess.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

bool isRegular(const std::vector<Reg> &list, int bytes) {
  return !list.empty() &&
         std::all_of(list.begin(), list.end(), [&](const Reg &reg) {
           return reg.width == list.front().width && reg.width >= bytes;
         });
}

std::vector<Reg> elementsOf(Decoder &decoder,
                            const ptx::Instruction &instruction,
                            const ptx::Operand &operand, int &bytes) {
  constexpr std::size_t kMost = ThreadAccess::kValueBytes;
  std::vector<Reg> list = decoder.vector(operand, bytes);
  if (list.size() * static_cast<std::size_t>(bytes) > kMost)
    decoder.refuse(instruction,
                   fmt::format("{} bytes at once; a thread loads or stores "
                               "at most {}",
                               list.size() * bytes, kMost));
  if (bytes != 16)
    return list;
  bytes = 8;
  return {list[0], highHalf(list[0])};
}

void checkAddress(Warp &warp, const Op &op, LaneMask active) {
  LaneMask bad = warp.poison(op.src[0]) & active;
  if (bad && warp.machine().config().checks)
    warp.machine().findings().report(
        FindingId::uninitializedAddress, warp, op, bad,
        "the address depends on bytes that nobody wrote" +
            warp.machine().findings().originText(warp,
                                                 warp.poisonOrigin(op.src[0])));
}

void markStored(Warp &warp, const Op &op, const ByteRange &place,
                const Reg &value, std::size_t bytes, int lane) {
  std::uint64_t unwritten = warp.poisonBits(value, lane);
  if (warp.group().inDoubt >> lane & 1)
    unwritten = ~std::uint64_t(0);
  if (bytes < 8)
    unwritten &= (std::uint64_t(1) << (8 * bytes)) - 1;
  std::uint32_t origin = unwritten ? warp.poisonOrigin(value) : 0;
  place.mark(bytes, unwritten, origin);
  if (!unwritten)
    return;
  auto &stores = warp.cta().cluster().unwrittenStores;
  constexpr std::size_t kBytes = Cluster::UnwrittenStore::kBytes;
  bool isNoted =
      !place.isGlobal() || stores.size() < Cluster::UnwrittenStore::kMostGlobal;
  for (std::size_t at = 0; isNoted && at < bytes; at += kBytes)
    stores[{place.valid, (place.offset + at) / kBytes}] = {&op, origin};
  if (!place.isGlobal())
    return;
  // Whatever stores it, what was not loaded is one defect.
  warp.machine().findings().report(
      FindingId::uninitializedStore, warp, op, LaneMask(1) << lane,
      "a value that depends on bytes nobody wrote goes to global memory" +
          warp.machine().findings().originText(warp, origin),
      {}, warp.cta().cluster().origins[origin].op);
}

void noteWriter(Warp &warp, const Op &op, const void *data, int lane) {
  if (warp.machine().config().checks)
    warp.cta().cluster().lastWriters().note(warp, op, data, lane);
}

} // namespace kiln::sim
