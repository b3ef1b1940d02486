// Threads: ids, elections, barriers and fences, one instruction each.
#include "kiln/language/threads/threads.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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
                "barrier (KernelBuilder::named_barriers)",
                state.contract.threads(),
                state.roles[*state.currentRole].first);
  // nvvm.barrier with a location does not parse again as it is printed.
  mlir::NVVM::Barrier0Op::create(state.builder, state.at(where));
}

int KernelBuilder::State::takeNamedBarriers(int count, const std::string &what,
                                            const Where &where_) {
  int taken = 0;
  std::string list;
  for (const NamedBarrierUse &use : namedBarriers) {
    taken += use.count;
    list += fmt::format("{}{} by {} at {}:{}", list.empty() ? "" : ", ",
                        use.count, use.what, use.where.file, use.where.line);
  }
  constexpr int kBarriers = DeviceDescription::named_barriers;
  if (taken + count > kBarriers)
    userErrorAt(where_,
                "{} takes {} named barriers, and of the {} that a CTA has {} "
                "are left{}{}",
                what, count, kBarriers, kBarriers - taken,
                list.empty() ? "" : "; taken: ", list);
  namedBarriers.push_back({what, count, where_});
  return 1 + taken; // 0 is sync_threads's
}

int KernelBuilder::State::warpgroupBarriers(const Where &where_) {
  if (!firstWarpgroupBarrier)
    firstWarpgroupBarrier = takeNamedBarriers(
        std::max(1, contract.threads() / 128), "sync_warpgroup", where_);
  return firstWarpgroupBarrier;
}

/// "bar.sync" or "bar.arrive" of a barrier known while building, or at run time
/// by `offset` from it.
static void addBarrier(const char *instruction, int number, const Value &offset,
                       int threads, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (!offset.is_valid()) {
    state.inlineAsm(fmt::format("{} {}, {};", instruction, number, threads),
                    "~{memory}", {}, nullptr, where);
    return;
  }
  Value id = offset + At(number, where);
  state.inlineAsm(fmt::format("{} $0, {};", instruction, threads),
                  "r,~{memory}", {state.use(id, where)}, nullptr, where);
}

NamedBarrier NamedBarrierArray::operator[](At index) const {
  auto &state = KernelBuilder::State::current(index.where());
  if (auto *literal = std::get_if<std::int64_t>(&index.operand())) {
    if (*literal < 0 || *literal >= count_)
      userErrorAt(index.where(),
                  "there is no named barrier {} in an array of {}", *literal,
                  count_);
    return Make::a<NamedBarrier>(first_ + static_cast<int>(*literal), Value(),
                                 threads_);
  }
  return Make::a<NamedBarrier>(first_, state.resolve(index, Type::i32),
                               threads_);
}

void NamedBarrier::sync(Where where) const {
  addBarrier("bar.sync", number_, offset_, threads_, where);
}

void NamedBarrier::arrive(Where where) const {
  addBarrier("bar.arrive", number_, offset_, threads_, where);
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
    return addBarrier("bar.sync", state.warpgroupBarriers(where), Value(), 128,
                      where);
  }
  const Role &role = state.roles[*state.currentRole];
  int first = state.warpgroupBarriers(where);
  if (role.count == 1)
    addBarrier("bar.sync", first + role.first, Value(), 128, where);
  else
    addBarrier("bar.sync", first, warpgroup_id(where), 128, where);
}

static void addFence(const char *text, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (state.has("fence.proxy.async"))
    state.inlineAsm(text, "~{memory}", {}, nullptr, where);
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
