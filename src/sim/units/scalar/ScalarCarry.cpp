// ScalarCarry: sums and products of many words, through the carry flag.
//
// The flag is one predicate per function. A subtraction keeps its borrow there:
// PTX leaves the flag's polarity to the pair of sub.cc and subc, which agree.
#include "sim/units/Execute.h"
#include "sim/units/scalar/Scalar.h"

namespace kiln::sim {

Pred Decoder::carry() {
  if (!carry_.isValid())
    carry_ = scratchPred();
  return carry_;
}

namespace {
enum class Product { none, low, high };
/// op.flags
constexpr std::uint32_t kReadsCarry = 1, kWritesCarry = 2;
} // namespace

template <typename T, bool isSubtraction, Product product>
static Step executeCarry(Warp &warp, const Op &op, LaneMask active) {
  using U = Storage<T>;
  constexpr int bits = 8 * sizeof(T);
  const U *a = warp.lanes<U>(op.src[0]), *b = warp.lanes<U>(op.src[1]);
  const U *c = product == Product::none ? b : warp.lanes<U>(op.src[2]);
  LaneMask carryIn = op.flags & kReadsCarry ? warp.pred(op.psrc) : 0;
  using Signed = std::conditional_t<bits == 64, __int128, std::int64_t>;
  using Unsigned =
      std::conditional_t<bits == 64, unsigned __int128, std::uint64_t>;
  using Wide = std::conditional_t<std::is_signed_v<T>, Signed, Unsigned>;
  U result[kLanes];
  LaneMask carryOut = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    U x = a[lane], y = b[lane];
    if constexpr (product != Product::none) {
      Wide full = Wide(T(x)) * Wide(T(y));
      x = product == Product::high ? U(full >> bits) : U(full);
      y = c[lane];
    }
    U in = carryIn >> lane & 1;
    if (isSubtraction) {
      result[lane] = x - y - in;
      carryOut |= LaneMask(x < y || (in && x == y)) << lane;
    } else {
      result[lane] = x + y + in;
      carryOut |= LaneMask(result[lane] < x || (in && result[lane] == x))
                  << lane;
    }
  }
  blendLanes(warp.lanes<U>(op.dst), result, active);
  if (op.flags & kWritesCarry)
    warp.setPred(op.pdst, active, carryOut);
  return Step::next;
}

void decodeCarry(Decoder &decoder, const ptx::Instruction &instruction,
                 Op &op) {
  const std::string &opcode = instruction.opcode;
  bool isMad = opcode.substr(0, 3) == "mad";
  bool isSubtraction = opcode.substr(0, 3) == "sub";
  if (opcode.back() == 'c') {
    op.flags |= kReadsCarry;
    op.psrc = decoder.carry();
  }
  if (instruction.has("cc")) {
    op.flags |= kWritesCarry;
    op.pdst = decoder.carry();
  }
  withWideInteger(
      decoder, instruction, lastType(decoder, instruction), [&]<typename T>() {
        op.dst = destination(decoder, instruction, instruction.operands[0],
                             sizeof(T));
        for (std::size_t i = 1; i < instruction.operands.size(); ++i)
          op.src[i - 1] =
              source<T>(decoder, instruction, instruction.operands[i]);
        if (isMad)
          op.handler = instruction.has("hi")
                           ? executeCarry<T, false, Product::high>
                           : executeCarry<T, false, Product::low>;
        else
          op.handler = isSubtraction ? executeCarry<T, true, Product::none>
                                     : executeCarry<T, false, Product::none>;
      });
}

std::vector<Instruction> scalarCarryInstructions() {
  const char *sum = ", u32 s32 u64 s64 cc -> =t t t";
  return {
      {"addc", decodeCarry, Unit::scalar, "u32 s32 u64 s64, .cc", sum},
      {"subc", decodeCarry, Unit::scalar, "u32 s32 u64 s64, .cc", sum},
      {"madc", decodeCarry, Unit::scalar, ".lo .hi of u32 s32 u64 s64, .cc",
       "lo|hi, u32 s32 u64 s64 cc -> =t t t t"},
  };
}

} // namespace kiln::sim
