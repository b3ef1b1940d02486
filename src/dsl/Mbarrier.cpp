// Mbarrier: barriers in shared memory, one instruction each.
#include "kiln/mbarrier.h"
#include "dsl/State.h"
#include "support/Error.h"

namespace kiln {

/// How long the loop of `wait` may suspend before it looks again, in
/// nanoseconds.
static constexpr int kWaitHintNs = 10000000;

static constexpr int kMaxBarrierCount = (1 << 20) - 1;

/// The barrier's allocation, once its address is known to be of this kernel.
static BarrierUse &useOf(KernelBuilder::State &state, const Value &address,
                         int array, const std::source_location &where) {
  state.use(address, where);
  return state.barriers[array];
}

/// Note who waits first, for the check that somebody arrives.
static void noteWait(BarrierUse &barrier, const std::source_location &where) {
  if (!barrier.firstWait.is_known())
    barrier.firstWait = collectiveLine.value_or(where);
}

/// Barriers are of a CTA; a cluster is as far as anyone can reach them.
static mlir::NVVM::MemScopeKind lower(Scope scope,
                                      const std::source_location &where) {
  if (scope != Scope::cta && scope != Scope::cluster)
    userErrorAt(where, "an mbarrier orders the threads of a CTA or of a "
                       "cluster; use Scope::cta or Scope::cluster");
  return scope == Scope::cluster ? mlir::NVVM::MemScopeKind::CLUSTER
                                 : mlir::NVVM::MemScopeKind::CTA;
}

/// `value` as an i32 of 1 to what a barrier can count, where it is a literal.
static mlir::Value useCount(KernelBuilder::State &state, const At &value,
                            int least, const char *what) {
  auto *literal = std::get_if<std::int64_t>(&value.operand());
  if (literal && (*literal < least || *literal > kMaxBarrierCount))
    userErrorAt(value.where(), "an mbarrier counts {} to {} {}, not {}", least,
                kMaxBarrierCount, what, *literal);
  return state.use(value, Type::i32);
}

/// mbarrier.arrive at an address of either kind.
static void arriveAt(KernelBuilder::State &state, mlir::Value address,
                     const At &count, mlir::NVVM::MemScopeKind scope,
                     bool isRemote, const std::source_location &where) {
  auto *literal = std::get_if<std::int64_t>(&count.operand());
  bool isOne = literal && *literal == 1;
  mlir::Value arrivals =
      isOne ? mlir::Value() : useCount(state, count, 1, "arrivals");
  // A remote arrival gives no state back.
  mlir::Type result = isRemote ? mlir::Type() : state.builder.getI64Type();
  mlir::NVVM::MBarrierArriveOp::create(state.builder, state.at(where), result,
                                       address, arrivals, scope);
}

Mbarrier MbarrierArray::operator[](At index) const {
  auto &state = KernelBuilder::State::current(index.where());
  auto *literal = std::get_if<std::int64_t>(&index.operand());
  if (literal && (*literal < 0 || *literal >= count_))
    userErrorAt(index.where(), "there is no mbarrier {} in an array of {}",
                *literal, count_);
  if (literal && *literal == 0)
    return Mbarrier(address_, array_);
  Value bytes = state.resolve(index, Type::i32) * At(8, index.where());
  mlir::Value address =
      state.offset(state.use(address_, index.where()),
                   state.use(bytes, index.where()), index.where());
  return Mbarrier(state.wrap(address, Type::u32), array_);
}

void Mbarrier::init(int count, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  if (count < 1 || count > kMaxBarrierCount)
    userErrorAt(where, "an mbarrier counts 1 to {} arrivals, not {}",
                kMaxBarrierCount, count);
  useOf(state, address_, array_, where).hasInit = true;
  mlir::NVVM::MBarrierInitOp::create(
      state.builder, state.at(where), state.use(address_, where),
      state.constant(Type::i32, count, where), mlir::Value());
}

void Mbarrier::inval(std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::MBarrierInvalOp::create(state.builder, state.at(where),
                                      state.use(address_, where));
}

void Mbarrier::arrive(At count, Scope scope, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  arriveAt(state, state.use(address_, where), count, lower(scope, where),
           /*isRemote=*/false, where);
}

void Mbarrier::arrive_expect_tx(At bytes, Scope scope,
                                std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  mlir::NVVM::MBarrierArriveExpectTxOp::create(
      state.builder, state.at(where), mlir::Type(), state.use(address_, where),
      useCount(state, bytes, 0, "bytes"), lower(scope, where),
      /*relaxed=*/false, mlir::Value());
}

void Mbarrier::expect_tx(At bytes, Scope scope,
                         std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::MBarrierExpectTxOp::create(
      state.builder, state.at(where), state.use(address_, where),
      useCount(state, bytes, 0, "bytes"), lower(scope, where));
}

void Mbarrier::wait(At parity, Scope scope, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  noteWait(useOf(state, address_, array_, where), where);
  // A loop of its own in one block: nothing can float into it, and the
  // accumulators in flight around it meet no phi.
  state.inlineAsm(
      fmt::format("{{\n"
                  ".reg .pred complete;\n"
                  "try_again:\n"
                  "mbarrier.try_wait.parity{}.shared::cta.b64 complete, [$0], "
                  "$1, $2;\n"
                  "@!complete bra try_again;\n"
                  "}}",
                  scope == Scope::cluster ? ".acquire.cluster" : ""),
      "l,r,n,~{memory}",
      {state.use(address_, where), state.use(parity, Type::i32),
       state.constant(Type::i32, kWaitHintNs, where)},
      nullptr, where);
}

Value Mbarrier::try_wait(At parity, int hint_ns, Scope scope,
                         std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  if (hint_ns < 0)
    userErrorAt(where,
                "try_wait was given {} nanoseconds to suspend; 0 or "
                "more are possible",
                hint_ns);
  noteWait(useOf(state, address_, array_, where), where);
  mlir::Value complete = mlir::NVVM::MBarrierTryWaitOp::create(
      state.builder, state.at(where), state.builder.getI1Type(),
      state.use(address_, where), state.use(parity, Type::i32),
      state.constant(Type::i32, hint_ns, where), lower(scope, where));
  return state.wrap(complete, Type::i1);
}

Value Mbarrier::test_wait(At parity, Scope scope,
                          std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  noteWait(useOf(state, address_, array_, where), where);
  mlir::Value complete = mlir::NVVM::MBarrierTestWaitOp::create(
      state.builder, state.at(where), state.builder.getI1Type(),
      state.use(address_, where), state.use(parity, Type::i32),
      lower(scope, where));
  return state.wrap(complete, Type::i1);
}

RemoteMbarrier Mbarrier::remote(At rank, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value address =
      state.remoteAddress(state.use(address_, where), rank, where);
  return RemoteMbarrier(state.wrap(address, Type::u32), array_);
}

void RemoteMbarrier::arrive(At count, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  arriveAt(state, state.use(address_, where), count,
           mlir::NVVM::MemScopeKind::CLUSTER, /*isRemote=*/true, where);
}

void RemoteMbarrier::arrive_expect_tx(At bytes,
                                      std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  mlir::NVVM::MBarrierArriveExpectTxOp::create(
      state.builder, state.at(where), mlir::Type(), state.use(address_, where),
      useCount(state, bytes, 0, "bytes"), mlir::NVVM::MemScopeKind::CLUSTER,
      /*relaxed=*/false, mlir::Value());
}

void RemoteMbarrier::expect_tx(At bytes, std::source_location where) const {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::MBarrierExpectTxOp::create(
      state.builder, state.at(where), state.use(address_, where),
      useCount(state, bytes, 0, "bytes"), mlir::NVVM::MemScopeKind::CLUSTER);
}

void fence_mbarrier_init(std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::FenceMbarrierInitOp::create(state.builder, state.at(where));
}

} // namespace kiln
