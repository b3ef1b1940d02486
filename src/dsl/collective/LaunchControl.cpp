// LaunchControl: clusterlaunchcontrol, the request and what its answer says.
#include "dsl/kernel/State.h"
#include "kiln/language/threads/cluster.h"
#include "kiln/language/value/control.h"
#include "kiln/language/collective/launch_control.h"
#include "kiln/language/threads/threads.h"
#include "kiln/language/memory/tma.h"
#include "support/Error.h"

namespace kiln {

static constexpr int kAnswerBytes = 16;

LaunchControl::LaunchControl(KernelBuilder &kb, int readers, Where where) {
  KernelBuilder::State &state = kb.state();
  state.checkOpen(where);
  state.requireTensorCore(TensorCore::tcgen05, "cluster launch control", where);
  if (state.clusterCtas() != 1)
    userErrorAt(where,
                "cluster launch control in kernel {}, which has clusters of "
                "{}; it takes over CTAs without clusters",
                state.name, state.clusterCtas());
  if (state.currentRole || state.isOneThread)
    userErrorAt(where, "LaunchControl is made outside roles and one_thread: "
                       "all threads synchronise there");
  int threads = state.contract.threads();
  if (readers < 1 || readers > threads)
    userErrorAt(where, "{} threads read the answers; kernel {} has 1 to {}",
                readers, state.name, threads);
  LocationScope scope(where);
  answer_ = kb.shared({Type::u32, 1, 4}, {.name = "launch_answer"}, where);
  barriers_ = kb.mbarriers(2, "launch", where);
  one_thread([&] {
    (*barriers_)[0].init(1);
    (*barriers_)[1].init(readers);
    fence_mbarrier_init();
  });
  sync_threads();
}

/// Whether a CTA was got, and which.
static Values readAnswer(const SharedTile &answer, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Type word = state.builder.getI32Type();
  mlir::Value out = state.inlineAsm(
      "{\n.reg .b128 answer;\n.reg .pred got;\n.reg .b32 none;\n"
      "ld.shared.b128 answer, [$4];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 got, answer;\n"
      "selp.b32 $0, 1, 0, got;\nmov.b32 $1, 0;\nmov.b32 $2, 0;\n"
      "mov.b32 $3, 0;\n"
      "@got clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 "
      "{$1, $2, $3, none}, answer;\n}",
      "=r,=r,=r,=r,l,~{memory}", {state.use(answer.address(where), where)},
      mlir::LLVM::LLVMStructType::getLiteral(
          state.context.get(), llvm::SmallVector<mlir::Type>(4, word)),
      where);
  Values values;
  for (std::int64_t i = 0; i < 4; ++i)
    values.push_back(state.wrap(
        mlir::LLVM::ExtractValueOp::create(state.builder, state.at(where), out,
                                           llvm::ArrayRef<std::int64_t>{i}),
        Type::i32));
  return values;
}

void LaunchControl::ask_all(Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (!state.isOneThread)
    userErrorAt(where, "ask_all stands outside one_thread; one thread asks for "
                       "the CTA");
  LocationScope scope(where);
  Mbarrier answered = (*barriers_)[0], read = (*barriers_)[1];
  Var parity(i32, 0), got(i32, 1);
  while_([&] { return got != 0; },
         [&] {
           read.wait(parity ^ 1);
           answered.arrive_expect_tx(kAnswerBytes);
           state.inlineAsm(
               "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::"
               "complete_tx::bytes.b128 [$0], [$1];",
               "l,l,~{memory}",
               {state.use(answer_.address(where), where),
                state.use(answered.address(), where)},
               nullptr, where);
           answered.wait(parity);
           got = readAnswer(answer_, where)[0];
           fence_async_shared(); // before the next answer comes
           parity = parity ^ 1;
         });
}

void LaunchControl::for_each(const std::function<void(const GridPlace &)> &body,
                             Where where) {
  auto outside = collectiveLine;
  LocationScope scope(where);
  Mbarrier answered = (*barriers_)[0], read = (*barriers_)[1];
  Var x(block_id(Axis::x)), y(block_id(Axis::y)), z(block_id(Axis::z));
  Var parity(i32, 0), got(i32, 1);
  while_([&] { return got != 0; },
         [&] {
           {
             UserCode user(outside);
             body({x, y, z});
           }
           answered.wait(parity);
           Values answer = readAnswer(answer_, where);
           got = answer[0], x = answer[1], y = answer[2], z = answer[3];
           fence_async_shared();
           read.arrive();
           parity = parity ^ 1;
         });
}

} // namespace kiln
