// AtomicPacked: atom and red on values that are no 32 or 64 bits: halves and
// their pairs, vectors of them and of f32, and 128 bits.
//
// A vector is atomic element by element; here a lane does all of it at once.
#include "sim/units/Execute.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/memory/Reduction.h"
#include "support/Error.h"

namespace kiln::sim {

namespace {
struct PackedAtomic {
  enum class Kind : std::uint8_t { reduce, exchange, compareAndSwap };
  Kind kind = Kind::reduce;
  Reduction reduction;
  Space space = Space::generic;
  int elementBytes = 0; ///< of a register's value
  std::vector<Reg> values, compared, results;

  std::size_t bytes() const { return values.size() * elementBytes; }
};

/// At most 16 bytes of a lane.
using Bytes = std::array<std::uint8_t, 16>;
} // namespace

static Bytes gather(const Warp &warp, const std::vector<Reg> &registers,
                    int elementBytes, int lane) {
  Bytes bytes{};
  for (std::size_t i = 0; i < registers.size(); ++i) {
    std::uint64_t bits = warp.read(registers[i], lane);
    std::memcpy(bytes.data() + i * elementBytes, &bits, elementBytes);
  }
  return bytes;
}

static Step packedAtomic(Warp &warp, const Op &op, LaneMask active) {
  const auto &what = *static_cast<const PackedAtomic *>(op.extra.get());
  bool hasChecks = warp.machine().config().checks;
  LaneMask bad = warp.poison(op.src[0]) & active;
  if (bad && hasChecks)
    warp.machine().findings().fault(
        FindingId::uninitializedAddress, warp, op, bad,
        "the address depends on bytes that nobody wrote");
  Accessor accessor(warp, op, "an atomic");
  std::size_t bytes = what.bytes();
  forEachLane(active, [&](int lane) {
    std::uint64_t address =
        warp.read(op.src[0], lane) + static_cast<std::uint64_t>(op.imm);
    ByteRange place =
        accessor.locate(what.space, address, bytes, bytes, lane, true);
    Bytes old{};
    std::memcpy(old.data(), place.data, bytes);
    bool isWritten = !hasChecks || place.isWritten(bytes);
    Bytes value = gather(warp, what.values, what.elementBytes, lane);
    switch (what.kind) {
    case PackedAtomic::Kind::reduce:
      what.reduction.apply(place.data, value.data(), bytes);
      break;
    case PackedAtomic::Kind::exchange:
      std::memcpy(place.data, value.data(), bytes);
      place.markWritten(bytes);
      break;
    case PackedAtomic::Kind::compareAndSwap:
      if (old == gather(warp, what.compared, what.elementBytes, lane))
        std::memcpy(place.data, value.data(), bytes);
      break;
    }
    if (std::memcmp(place.data, old.data(), bytes) != 0) {
      ++warp.effects;
      warp.cta().cluster().notify();
    }
    LaneMask bit = LaneMask(1) << lane;
    bool isKnown =
        std::all_of(what.values.begin(), what.values.end(),
                    [&](const Reg &reg) { return !(warp.poison(reg) & bit); });
    if (hasChecks && !isKnown && place.isGlobal())
      warp.machine().findings().report(
          FindingId::uninitializedStore, warp, op, bit,
          "a value that depends on bytes nobody wrote goes to global memory");
    for (std::size_t i = 0; i < what.results.size(); ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, old.data() + i * what.elementBytes, what.elementBytes);
      warp.write(what.results[i], lane, bits);
      warp.setPoison(what.results[i], bit, isWritten ? 0 : bit);
    }
  });
  return Step::next;
}

bool isPackedAtomic(const ptx::Instruction &instruction, ptx::ScalarType type) {
  int bytes = ptx::sizeBytes(type);
  return (bytes != 4 && bytes != 8) || type == ptx::ScalarType::f16x2 ||
         type == ptx::ScalarType::bf16x2 || instruction.has("v2") ||
         instruction.has("v4") || instruction.has("v8");
}

/// Registers of `{a, b}` or of one operand; 128 bits are two of them.
static std::vector<Reg> registersOf(Decoder &decoder,
                                    const ptx::Instruction &instruction,
                                    const ptx::Operand &operand, int bytes) {
  std::vector<Reg> list = decoder.vector(operand, bytes);
  if (bytes == 16)
    return {list[0], highHalf(list[0])};
  for (const Reg &reg : list)
    expectWidth(decoder, instruction, reg, bytes);
  return list;
}

void decodePackedAtomic(Decoder &decoder, const ptx::Instruction &instruction,
                        ptx::ScalarType type, Op &op) {
  using enum ptx::ScalarType;
  PackedAtomic what;
  what.space = spaceOf(instruction);
  int bytes = ptx::sizeBytes(type);
  what.elementBytes = std::min(bytes, 8);
  if (instruction.has("exch")) {
    what.kind = PackedAtomic::Kind::exchange;
  } else if (instruction.has("cas")) {
    what.kind = PackedAtomic::Kind::compareAndSwap;
  } else {
    what.reduction = {reductionKind(decoder, instruction), type == f16x2 ? f16
                                                           : type == bf16x2
                                                               ? bf16
                                                               : type};
    if (!what.reduction.isKnown())
      decoder.refuse(instruction,
                     fmt::format("the operation {} is not one of its type",
                                 name(what.reduction.kind)));
  }
  bool isSwap = what.kind == PackedAtomic::Kind::compareAndSwap;
  if (what.kind != PackedAtomic::Kind::reduce && type != b128 &&
      !(isSwap && bytes == 2))
    decoder.refuse(instruction, "its type is not one of the operation");
  const auto &operands = instruction.operands;
  std::size_t next = 0;
  if (instruction.opcode == "atom")
    what.results = registersOf(decoder, instruction, operands[next++], bytes);
  op.src[0] = decoder.address(operands[next++], op.imm);
  if (isSwap)
    what.compared = registersOf(decoder, instruction, operands[next++], bytes);
  what.values = registersOf(decoder, instruction, operands[next], bytes);
  std::size_t count = what.values.size();
  if (what.bytes() > sizeof(Bytes) ||
      (!what.results.empty() && what.results.size() != count) ||
      (isSwap && what.compared.size() != count))
    decoder.refuse(instruction, "its vectors are not of one size of at most "
                                "16 bytes");
  op.extra = std::make_shared<PackedAtomic>(std::move(what));
  op.handler = packedAtomic;
}

} // namespace kiln::sim
