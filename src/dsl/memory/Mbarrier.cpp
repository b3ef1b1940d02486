// Mbarrier: barriers in shared memory, one instruction each.
#include "kiln/language/memory/mbarrier.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

namespace kiln {

/// How long the loop of `wait` may suspend before it looks again, in
/// nanoseconds.
static constexpr int kWaitHintNs = 10000000;

static constexpr int kMaxBarrierCount = DeviceDescription::max_mbarrier_count;

/// The barrier's allocation, once its address is known to be of this kernel.
static BarrierUse &useOf(KernelBuilder::State &state, const Value &address,
                         int array, const Where &where) {
  state.use(address, where);
  return state.barriers[array];
}

/// Note who waits first, for the check that somebody arrives.
static void noteWait(BarrierUse &barrier, const Where &where) {
  if (!barrier.firstWait.is_known())
    barrier.firstWait = collectiveLine.value_or(where);
}

/// What the scope adds to an instruction whose default is the CTA; `order` is
/// its order by default. Barriers are of a CTA; a cluster is as far as anyone
/// can reach them.
static std::string suffixOf(Scope scope, const char *order,
                            const Where &where) {
  if (scope != Scope::cta && scope != Scope::cluster)
    userErrorAt(where, "an mbarrier orders the threads of a CTA or of a "
                       "cluster; use Scope::cta or Scope::cluster");
  return scope == Scope::cluster ? fmt::format(".{}.cluster", order) : "";
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

/// `instruction [address], operand;` without a result.
static void addInstruction(KernelBuilder::State &state,
                           const std::string &instruction, mlir::Value address,
                           mlir::Value operand, const Where &where) {
  if (operand)
    state.inlineAsm(fmt::format("{} [$0], $1;", instruction), "l,r,~{memory}",
                    {address, operand}, nullptr, where);
  else
    state.inlineAsm(fmt::format("{} [$0];", instruction), "l,~{memory}",
                    {address}, nullptr, where);
}

/// mbarrier.arrive at an address whose space `space` names; what it gives back,
/// a state, is not needed to wait by parity.
static void arriveAt(KernelBuilder::State &state, const std::string &space,
                     mlir::Value address, const At &count, const Where &where) {
  auto *literal = std::get_if<std::int64_t>(&count.operand());
  bool isOne = literal && *literal == 1;
  addInstruction(state, fmt::format("mbarrier.arrive{}.b64 _,", space), address,
                 isOne ? mlir::Value() : useCount(state, count, 1, "arrivals"),
                 where);
}

static constexpr const char *kRemote = ".shared::cluster";

Mbarrier MbarrierArray::operator[](At index) const {
  auto &state = KernelBuilder::State::current(index.where());
  auto *literal = std::get_if<std::int64_t>(&index.operand());
  if (literal && (*literal < 0 || *literal >= count_))
    userErrorAt(index.where(), "there is no mbarrier {} in an array of {}",
                *literal, count_);
  if (literal && *literal == 0)
    return Make::a<Mbarrier>(address_, array_);
  Value bytes = state.resolve(index, Type::i32) * At(8, index.where());
  mlir::Value address =
      state.offset(state.use(address_, index.where()),
                   state.use(bytes, index.where()), index.where());
  return Make::a<Mbarrier>(state.wrap(address, Type::u32), array_);
}

void Mbarrier::init(int count, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  if (count < 1 || count > kMaxBarrierCount)
    userErrorAt(where, "an mbarrier counts 1 to {} arrivals, not {}",
                kMaxBarrierCount, count);
  useOf(state, address_, array_, where).hasInit = true;
  addInstruction(state, "mbarrier.init.shared.b64", state.use(address_, where),
                 state.constant(Type::i32, count, where), where);
}

void Mbarrier::inval(Where where) const {
  auto &state = KernelBuilder::State::current(where);
  addInstruction(state, "mbarrier.inval.shared.b64", state.use(address_, where),
                 {}, where);
}

void Mbarrier::arrive(At count, Scope scope, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  arriveAt(state, suffixOf(scope, "release", where) + ".shared",
           state.use(address_, where), count, where);
}

void Mbarrier::arrive_expect_tx(At bytes, Scope scope, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  addInstruction(state,
                 fmt::format("mbarrier.arrive.expect_tx{}.shared.b64 _,",
                             suffixOf(scope, "release", where)),
                 state.use(address_, where), useCount(state, bytes, 0, "bytes"),
                 where);
}

void Mbarrier::expect_tx(At bytes, Scope scope, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  addInstruction(
      state,
      fmt::format("mbarrier.expect_tx.relaxed.{}.shared.b64",
                  suffixOf(scope, "", where).empty() ? "cta" : "cluster"),
      state.use(address_, where), useCount(state, bytes, 0, "bytes"), where);
}

void Mbarrier::arrive_copies(bool is_extra, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  if (!is_extra)
    useOf(state, address_, array_, where).hasArrive = true;
  addInstruction(state,
                 fmt::format("cp.async.mbarrier.arrive{}.shared.b64",
                             is_extra ? "" : ".noinc"),
                 state.use(address_, where), {}, where);
}

/// Whether a phase has completed, asked once.
static Value testPhase(KernelBuilder::State &state, const char *how,
                       const Value &address, const At &parity,
                       std::optional<int> hintNs, Scope scope,
                       const Where &where) {
  mlir::Value complete = state.inlineAsm(
      fmt::format("mbarrier.{}.parity{}.shared::cta.b64 $0, [$1], $2{};", how,
                  suffixOf(scope, "acquire", where),
                  hintNs ? fmt::format(", {}", *hintNs) : ""),
      "=b,l,r,~{memory}",
      {state.use(address, where), state.use(parity, Type::i32)},
      state.builder.getI1Type(), where);
  return state.wrap(complete, Type::i1);
}

void Mbarrier::arrive_products(const ProductArrival &options,
                               Where where) const {
  auto &state = KernelBuilder::State::current(where);
  state.requireTensorCore(TensorCore::tcgen05, "arrive_products", where);
  if (!state.isOneThread)
    userErrorAt(where, "arrive_products stands outside one_thread; it speaks "
                       "for the products of the thread that calls it");
  if (options.cta_group != 1 && options.cta_group != 2)
    userErrorAt(where, "a CTA group of {}; 1 or 2 CTAs multiply together",
                options.cta_group);
  useOf(state, address_, array_, where).hasArrive = true;
  llvm::SmallVector<mlir::Value> operands = {state.use(address_, where)};
  std::string mask;
  if (options.cta_mask) {
    operands.push_back(state.ctaMask(*options.cta_mask, where));
    mask = ", $1";
  }
  bool isMulticast = options.cta_mask.has_value();
  state.inlineAsm(
      fmt::format("tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::"
                  "cluster{}.b64 [$0]{};",
                  options.cta_group, isMulticast ? ".multicast::cluster" : "",
                  mask),
      isMulticast ? "l,h,~{memory}" : "l,~{memory}", operands, nullptr, where);
}

void Mbarrier::wait(At parity, Scope scope, Where where) const {
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
                  suffixOf(scope, "acquire", where)),
      "l,r,n,~{memory}",
      {state.use(address_, where), state.use(parity, Type::i32),
       state.constant(Type::i32, kWaitHintNs, where)},
      nullptr, where);
}

Value Mbarrier::try_wait(At parity, int hint_ns, Scope scope,
                         Where where) const {
  auto &state = KernelBuilder::State::current(where);
  if (hint_ns < 0)
    userErrorAt(where,
                "try_wait was given {} nanoseconds to suspend; 0 or "
                "more are possible",
                hint_ns);
  noteWait(useOf(state, address_, array_, where), where);
  return testPhase(state, "try_wait", address_, parity, hint_ns, scope, where);
}

Value Mbarrier::test_wait(At parity, Scope scope, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  noteWait(useOf(state, address_, array_, where), where);
  return testPhase(state, "test_wait", address_, parity, std::nullopt, scope,
                   where);
}

RemoteMbarrier Mbarrier::remote(At rank, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value address =
      state.remoteAddress(state.use(address_, where), rank, where);
  return Make::a<RemoteMbarrier>(state.wrap(address, Type::u32), array_);
}

void RemoteMbarrier::arrive(At count, Scope scope, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  arriveAt(state, suffixOf(scope, "release", where) + kRemote,
           state.use(address_, where), count, where);
}

void RemoteMbarrier::arrive_expect_tx(At bytes, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  useOf(state, address_, array_, where).hasArrive = true;
  addInstruction(
      state,
      fmt::format("mbarrier.arrive.expect_tx.release.cluster{}.b64 _,",
                  kRemote),
      state.use(address_, where), useCount(state, bytes, 0, "bytes"), where);
}

void RemoteMbarrier::expect_tx(At bytes, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  addInstruction(
      state, "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64",
      state.use(address_, where), useCount(state, bytes, 0, "bytes"), where);
}

void fence_mbarrier_init(Where where) {
  KernelBuilder::State::current(where).inlineAsm(
      "fence.mbarrier_init.release.cluster;", "~{memory}", {}, nullptr, where);
}

} // namespace kiln
