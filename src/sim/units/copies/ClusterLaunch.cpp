// ClusterLaunch: clusterlaunchcontrol, by which a cluster asks for the work of
// one that has not begun.
//
// A request is granted while clusters are left that do not fit on the device
// beside those that have begun; the last of them is taken. The answer arrives
// as a copy of 16 bytes does.
#include "sim/units/copies/ClusterLaunch.h"
#include "sim/program/Effect.h"
#include "sim/units/copies/Bulk.h"

namespace kiln::sim {

namespace {
struct CancelRequest {
  AddressOperand answer, barrier;
  bool isForAll = false; ///< .multicast::cluster::all
};
} // namespace

/// An answer: its first bit says whether a cluster was cancelled; the second
/// to fourth word are the first CTA of it.
static constexpr std::uint32_t kAnswerBytes = 16;

static Step tryCancel(Warp &warp, const Op &op, LaneMask active) {
  const auto &request = *static_cast<const CancelRequest *>(op.extra.get());
  Cluster &cluster = warp.cta().cluster();
  forEachLane(active, [&](int lane) {
    SharedRange answer =
        sharedRange(warp, op, request.answer, kAnswerBytes, kAnswerBytes, lane);
    SharedRange barrier = sharedRange(warp, op, request.barrier, 8, 8, lane);
    std::uint32_t mask = request.isForAll ? (1u << cluster.size()) - 1
                                          : 1u << answer.owner->rankInCluster();
    std::array<std::uint32_t, 4> words{};
    if (std::optional<Dim3> got = warp.machine().cancelCluster())
      words = {1, (*got)[0], (*got)[1], (*got)[2]};
    forEachCta(cluster, mask, [&](Cta &target) {
      tellCopyBegin(warp, op, lane, target, barrier.address);
      tellCopy(warp, op, lane, onBarrier(target, barrier.address), &target,
               {answer.address - kFirstSharedAddress, kAnswerBytes},
               {.isWrite = true});
      cluster.enqueue([&warp, &op, &target, lane, answer, barrier, words] {
        ByteRange place = answer.in(target);
        std::memcpy(place.data, words.data(), kAnswerBytes);
        place.markWritten(kAnswerBytes);
        completeTx(warp, op, lane, target, barrier.address, kAnswerBytes);
      });
    });
  });
  return Step::next;
}

static Step isCanceled(Warp &warp, const Op &op, LaneMask active) {
  LaneMask yes = 0;
  forEachLane(active, [&](int lane) {
    yes |= LaneMask(warp.read(op.src[0], lane) & 1) << lane;
  });
  warp.setPred(op.pdst, active, yes);
  warp.setPredPoison(op.pdst, active, warp.poison(op.src[0]));
  return Step::next;
}

/// Words 1 to 3 of the answer, from the one that `imm` says on.
static Step firstCta(Warp &warp, const Op &op, LaneMask active) {
  for (std::size_t i = 0; i < op.list.size(); ++i) {
    auto word = static_cast<int>(op.imm + static_cast<std::int64_t>(i)) + 1;
    const Reg &half = op.src[word / 2 % 2];
    forEachLane(active, [&](int lane) {
      std::uint64_t bits =
          word > 3 ? 0 : warp.read(half, lane) >> 32 * (word % 2);
      warp.write(op.list[i], lane, static_cast<std::uint32_t>(bits));
    });
    warp.setPoison(op.list[i], active, warp.poison(half));
  }
  return Step::next;
}

static void decode(Decoder &decoder, const ptx::Instruction &instruction,
                   Op &op) {
  const auto &operands = instruction.operands;
  if (instruction.has("try_cancel")) {
    CancelRequest request;
    request.answer = AddressOperand::decode(decoder, operands[0]);
    request.barrier = AddressOperand::decode(decoder, operands[1]);
    request.isForAll = instruction.has("multicast::cluster::all");
    op.extra = std::make_shared<CancelRequest>(request);
    op.handler = tryCancel;
    return;
  }
  op.src[0] = decoder.reg(operands[1]);
  op.src[1] = highHalf(op.src[0]);
  if (instruction.has("is_canceled")) {
    op.pdst = decoder.pred(operands[0]);
    op.handler = isCanceled;
    return;
  }
  op.list = decoder.vector(operands[0], 4);
  op.isListWritten = true;
  op.imm = instruction.has("get_first_ctaid::y")   ? 1
           : instruction.has("get_first_ctaid::z") ? 2
                                                   : 0;
  op.handler = firstCta;
}

static void effectOfRequest(Decoder &decoder,
                            const ptx::Instruction &instruction,
                            Effect &effect) {
  if (!instruction.has("try_cancel"))
    return;
  effect.kind = EffectKind::copyIn;
  effect.isClusterRequest = true;
  takeAddress(decoder, instruction, 0, effect.address, effect.offset);
  takeAddress(decoder, instruction, 1, effect.barrier, effect.barrierOffset);
}

Instruction clusterLaunchControl() {
  return {"clusterlaunchcontrol",
          decode,
          Unit::copies,
          "try_cancel, granted while clusters have not begun, and query_cancel",
          "try_cancel async mbarrier::complete_tx::bytes, shared::cta "
          "multicast::cluster::all b128 -> [a] [a]; "
          "query_cancel is_canceled, pred b128 -> =p b128; "
          "query_cancel get_first_ctaid, v4 b32 b128 -> ={b32}* b128; "
          "query_cancel "
          "get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z, b32 b128 "
          "-> =b32 b128",
          {.effect = effectOfRequest}};
}

} // namespace kiln::sim
