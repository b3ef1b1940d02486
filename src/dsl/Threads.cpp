// Threads: ids, elections, barriers and fences, one instruction each.
#include "kiln/threads.h"
#include "dsl/State.h"
#include "support/Error.h"

namespace kiln {

/// One special register per axis.
template <typename X, typename Y, typename Z>
static Value readRegister(Axis axis, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Location loc = state.at(where);
  mlir::Type i32 = state.builder.getI32Type();
  mlir::Value value;
  switch (axis) {
  case Axis::x:
    value = X::create(state.builder, loc, i32);
    break;
  case Axis::y:
    value = Y::create(state.builder, loc, i32);
    break;
  case Axis::z:
    value = Z::create(state.builder, loc, i32);
    break;
  }
  return state.wrap(value, Type::i32);
}

Value thread_id(Axis axis, Where where) {
  return readRegister<mlir::NVVM::ThreadIdXOp, mlir::NVVM::ThreadIdYOp,
                      mlir::NVVM::ThreadIdZOp>(axis, where);
}

Value block_id(Axis axis, Where where) {
  return readRegister<mlir::NVVM::BlockIdXOp, mlir::NVVM::BlockIdYOp,
                      mlir::NVVM::BlockIdZOp>(axis, where);
}

Value grid_size(Axis axis, Where where) {
  return readRegister<mlir::NVVM::GridDimXOp, mlir::NVVM::GridDimYOp,
                      mlir::NVVM::GridDimZOp>(axis, where);
}

/// `value` as lane 0 has it, so that ptxas knows all lanes agree (else C7520).
static Value uniform(const Value &value, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value mask = state.constant(Type::i32, -1, where);
  mlir::Value lane = state.constant(Type::i32, 0, where);
  mlir::Value clamp = state.constant(Type::i32, 31, where);
  mlir::Value result = mlir::NVVM::ShflOp::create(
      state.builder, state.at(where), state.builder.getI32Type(), mask,
      state.use(value, where), lane, clamp, mlir::NVVM::ShflKind::idx,
      mlir::UnitAttr());
  return state.wrap(result, Type::i32);
}

Value warp_id(Where where) {
  return uniform(thread_id(Axis::x, where) >> At(5, where), where);
}

Value warpgroup_id(Where where) {
  return uniform(thread_id(Axis::x, where) >> At(7, where), where);
}

Value lane_id(Where where) { return thread_id(Axis::x, where) & At(31, where); }

Value warpgroup_thread_id(Where where) {
  return thread_id(Axis::x, where) & At(127, where);
}

Value elect(Where where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value result = mlir::NVVM::ElectSyncOp::create(
      state.builder, state.at(where), state.builder.getI1Type(), mlir::Value());
  return state.wrap(result, Type::i1);
}

void sync_threads(Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (state.currentRole)
    userErrorAt(where,
                "sync_threads() waits for all {} threads of the CTA and "
                "stands inside the role of warpgroup {}; use a named "
                "barrier, sync_threads(id, threads)",
                state.contract.threads(),
                state.roles[*state.currentRole].first);
  // nvvm.barrier with a location does not parse again as it is printed.
  mlir::NVVM::Barrier0Op::create(state.builder, state.at(where));
}

/// Refuse a named barrier or a number of threads the hardware does not have.
static void checkNamedBarrier(const KernelBuilder::State &state, int id,
                              int threads, const Where &where) {
  if (id < 1 || id > 15)
    userErrorAt(where, "there is no named barrier {}; 1 to 15 are free", id);
  if (threads < 32 || threads % 32 != 0 || threads > state.contract.threads())
    userErrorAt(where,
                "barrier {} waits for {} threads; it takes whole warps: "
                "a multiple of 32 up to {}",
                id, threads, state.contract.threads());
}

void sync_threads(int id, int threads, Where where) {
  auto &state = KernelBuilder::State::current(where);
  checkNamedBarrier(state, id, threads, where);
  state.inlineAsm(fmt::format("bar.sync {}, {};", id, threads), "~{memory}", {},
                  nullptr, where);
}

void arrive_threads(int id, int threads, Where where) {
  auto &state = KernelBuilder::State::current(where);
  checkNamedBarrier(state, id, threads, where);
  state.inlineAsm(fmt::format("bar.arrive {}, {};", id, threads), "~{memory}",
                  {}, nullptr, where);
}

void sync_warpgroup(Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (state.isOneThread)
    userErrorAt(where, "sync_warpgroup stands inside one_thread; all 128 "
                       "threads of the warpgroup meet there");
  if (!state.currentRole) {
    if (state.contract.threads() != 128)
      userErrorAt(where,
                  "sync_warpgroup is called by one warpgroup, and kernel {} "
                  "has {} threads here; call it in the role of a warpgroup",
                  state.name, state.contract.threads());
    return sync_threads(1, 128, where);
  }
  const Role &role = state.roles[*state.currentRole];
  if (role.count == 1)
    return sync_threads(1 + role.first, 128, where);
  Value id = warpgroup_id(where) + At(1, where);
  state.inlineAsm("bar.sync $0, 128;", "r,~{memory}", {state.use(id, where)},
                  nullptr, where);
}

static void addFence(const char *text, const Where &where) {
  KernelBuilder::State::current(where).inlineAsm(text, "~{memory}", {}, nullptr,
                                                 where);
}

void fence_async_shared(Where where) {
  addFence("fence.proxy.async.shared::cta;", where);
}

void fence_async_cluster(Where where) {
  addFence("fence.proxy.async.shared::cluster;", where);
}

void fence_async_global(Where where) {
  addFence("fence.proxy.async.global;", where);
}

void fence_async(Where where) { addFence("fence.proxy.async;", where); }

} // namespace kiln
