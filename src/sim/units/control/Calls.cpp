// Calls: device functions, by name or through a pointer.
//
// Registers belong to functions, so a call moves nothing but parameters and
// the place where the lanes go on. A lane that enters a function it has not
// left yet finds the registers taken: the frame keeps what they held. Local
// memory is a stack: the frame says where the function's part of it begins.
#include "sim/units/Execute.h"
#include "sim/units/copies/Bulk.h"
#include "support/Error.h"

namespace kiln::sim {

/// A return address needs room too.
static constexpr int kMaxDepth = 16384;

namespace {
struct Call {
  int function = -1; ///< -1: by address
  Reg address;
  std::vector<Slot> arguments, results;
};

/// The lanes of a register while it changes hands.
struct Moved {
  Reg to;
  std::array<std::uint64_t, kLanes> bits;
  std::array<std::uint64_t, kLanes> poison;
  std::uint32_t origin = 0; ///< of what is unwritten
};
} // namespace

/// A function of so many parameters and results of those sizes?
static bool matches(const std::vector<Slot> &given,
                    const std::vector<Slot> &wanted) {
  return given.size() == wanted.size() &&
         std::equal(given.begin(), given.end(), wanted.begin(),
                    [](const Slot &a, const Slot &b) {
                      // An immediate has the size that is asked for.
                      return a.bytes == b.bytes || a.reg.isValid();
                    });
}

/// Where a slot lies in a lane's local memory: in the frame at `base`, for
/// which growLocal has made room.
static ByteRange placeOf(Warp &warp, const Slot &slot, std::uint32_t base,
                         int lane) {
  std::size_t offset = std::size_t(warp.localBytes) * lane + base + slot.offset;
  return {warp.local.data() + offset, &warp.localValid, offset, nullptr,
          /*isLocal=*/true};
}

/// Bytes from frame to frame at once; registers are read now and written when
/// the caller of this says so.
static std::vector<Moved> moveSlots(Warp &warp, const std::vector<Slot> &from,
                                    std::uint32_t fromBase,
                                    const std::vector<Slot> &to,
                                    std::uint32_t toBase, LaneMask lanes) {
  std::vector<Moved> moved;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (to[i].reg.isValid()) {
      Moved value{to[i].reg, {}, {}};
      if (from[i].reg.isValid())
        value.origin = warp.poisonOrigin(from[i].reg);
      forEachLane(lanes, [&](int lane) {
        if (from[i].reg.isValid()) {
          value.bits[lane] = warp.read(from[i].reg, lane);
          value.poison[lane] = warp.poisonBits(from[i].reg, lane);
          return;
        }
        ByteRange place = placeOf(warp, from[i], fromBase, lane);
        std::size_t bytes = std::min<std::uint32_t>(from[i].bytes, 8);
        std::memcpy(&value.bits[lane], place.data, bytes);
        value.poison[lane] = place.unwritten(bytes);
        if (value.poison[lane] && !value.origin)
          value.origin = place.valid->origin(place.offset, bytes);
      });
      moved.push_back(value);
      continue;
    }
    forEachLane(lanes, [&](int lane) {
      ByteRange place = placeOf(warp, to[i], toBase, lane);
      if (from[i].reg.isValid()) {
        std::uint64_t bits = warp.read(from[i].reg, lane);
        std::size_t bytes = std::min<std::uint32_t>(to[i].bytes, 8);
        std::memcpy(place.data, &bits, bytes);
        place.mark(bytes, warp.poisonBits(from[i].reg, lane),
                   warp.poisonOrigin(from[i].reg));
      } else {
        copyBytes(place, placeOf(warp, from[i], fromBase, lane),
                  std::min(from[i].bytes, to[i].bytes));
      }
    });
  }
  return moved;
}

static void writeMoved(Warp &warp, const std::vector<Moved> &moved,
                       LaneMask lanes) {
  for (const Moved &value : moved) {
    forEachLane(lanes, [&](int lane) {
      warp.write(value.to, lane, value.bits[lane]);
      warp.setPoisonBits(value.to, lane, value.poison[lane]);
    });
    warp.setPoisonOrigin(value.to, value.origin);
  }
}

void Warp::growLocal(std::uint32_t bytes) {
  if (bytes <= localBytes && !local.empty())
    return;
  std::uint32_t fresh = std::max(bytes, 2 * localBytes);
  share_.take(std::uint64_t(fresh - localBytes) * kLanes * 9 / 8,
              "the local memory of a warp");
  std::vector<std::uint8_t> memory(std::size_t(fresh) * kLanes);
  ValidBits valid(memory.size());
  for (int lane = 0; lane < kLanes && localBytes; ++lane) {
    std::size_t to = std::size_t(fresh) * lane;
    std::size_t from = std::size_t(localBytes) * lane;
    copyBytes({&memory[to], &valid, to, nullptr, /*isLocal=*/true},
              {&local[from], &localValid, from, nullptr, /*isLocal=*/true},
              localBytes);
  }
  local = std::move(memory);
  localValid = std::move(valid);
  localBytes = fresh;
}

void Warp::fillLocalAddresses(const FunctionCode &code, std::uint32_t base,
                              LaneMask lanes) {
  for (const auto &[reg, offset] : code.localAddresses) {
    forEachLane(lanes, [&](int lane) { write(reg, lane, base + offset); });
    setPoison(reg, lanes, 0);
  }
}

void Warp::enter(int function, const Op &op) {
  const Call &call = *static_cast<const Call *>(op.extra.get());
  Group &group = *current_;
  LaneMask lanes = group.lanes;
  const FunctionCode &callee = code_.functions[function];
  auto frame = std::make_shared<Frame>();
  frame->caller = group.frame;
  frame->function = function;
  frame->call = &op;
  frame->returnTo = group.pc + 1;
  frame->localBase = frameEnd();
  forEachLane(lanes, [&](int lane) { // behind what is allocated (alloca)
    std::uint32_t top = (stackTops[lane] + 15) & ~15u;
    frame->localBase = std::max(frame->localBase, top);
  });
  frame->depth = group.frame ? group.frame->depth + 1 : 1;
  auto mostLocal = static_cast<std::uint32_t>(
      machine().config().device.max_local_bytes_per_thread);
  if (frame->depth > kMaxDepth ||
      !isInside(frame->localBase, callee.localBytes, mostLocal))
    machine().findings().fault(
        FindingId::stackOverflow, *this, op, lanes,
        fmt::format("a thread is {} calls deep with {} bytes of local memory; "
                    "it may have {} calls and {} bytes",
                    frame->depth, frame->localBase + callee.localBytes,
                    kMaxDepth, mostLocal));
  growLocal(frame->localBase + callee.localBytes);
  // The frame is fresh, whatever was there before.
  forEachLane(machine().config().checks ? lanes : 0, [&](int lane) {
    localValid.clear(std::size_t(localBytes) * lane + frame->localBase,
                     callee.localBytes);
  });
  std::vector<Moved> moved =
      moveSlots(*this, call.arguments, localBase(), callee.parameters,
                frame->localBase, lanes);
  bool isNested = false;
  for (const Frame *outer = group.frame.get(); outer && !isNested;
       outer = outer->caller.get())
    isNested = outer->function == function;
  if (isNested) {
    constexpr std::uint64_t kPerRegister = 2 * 8 * kLanes; // with its poison
    frame->share.take(callee.registers.size() * kPerRegister,
                      "the registers of a function that calls itself");
    for (const Reg &reg : callee.registers) {
      const auto *lanesOf = this->lanes<std::uint8_t>(reg);
      frame->file.insert(frame->file.end(), lanesOf,
                         lanesOf + std::size_t(reg.width) * kLanes);
      auto &poison = frame->poison.emplace_back();
      for (int lane = 0; lane < kLanes; ++lane)
        poison[lane] = poisonBits(reg, lane);
    }
    for (int i = callee.predicateBegin; i < callee.predicateEnd; ++i) {
      frame->predicates.push_back(predicates_[i]);
      frame->predPoison.push_back(predPoison_[i]);
    }
  }
  fillLocalAddresses(callee, frame->localBase, lanes);
  writeMoved(*this, moved, lanes);
  group.reconvergence = ReconvergenceRef(new ReconvergencePoint(
      frame->returnTo, lanes, std::move(group.reconvergence), group.frame));
  group.frame = std::move(frame);
  group.pc = callee.first;
}

void Warp::leave() {
  Group &group = *current_;
  std::shared_ptr<Frame> frame = group.frame;
  const FunctionCode &callee = code_.functions[frame->function];
  const Call &call = *static_cast<const Call *>(frame->call->extra.get());
  std::uint32_t callerBase = frame->caller ? frame->caller->localBase : 0;
  LaneMask lanes = group.lanes;
  forEachLane(lanes, [&](int lane) {
    stackTops[lane] = std::min(stackTops[lane], frame->localBase);
  });
  std::vector<Moved> moved = moveSlots(*this, callee.results, frame->localBase,
                                       call.results, callerBase, lanes);
  auto blend = [&](LaneMask &to, LaneMask from) {
    to = (to & ~lanes) | (from & lanes);
  };
  const std::uint8_t *saved = frame->file.data();
  for (std::size_t i = 0; i < frame->poison.size(); ++i) {
    const Reg &reg = callee.registers[i];
    forEachLane(lanes, [&](int lane) {
      std::size_t at = std::size_t(reg.width) * lane;
      std::memcpy(this->lanes<std::uint8_t>(reg) + at, saved + at, reg.width);
      setPoisonBits(reg, lane, frame->poison[i][lane]);
    });
    saved += std::size_t(reg.width) * kLanes;
  }
  for (std::size_t i = 0; i < frame->predicates.size(); ++i) {
    blend(predicates_[callee.predicateBegin + i], frame->predicates[i]);
    blend(predPoison_[callee.predicateBegin + i], frame->predPoison[i]);
  }
  writeMoved(*this, moved, lanes);
  group.pc = frame->returnTo;
  group.frame = frame->caller;
}

/// The function that a lane's pointer means.
static int calleeOf(Warp &warp, const Op &op, const Call &call, int lane) {
  if (call.function >= 0)
    return call.function;
  std::uint64_t address = warp.read(call.address, lane);
  const auto &functions = warp.code().functions;
  auto found = warp.code().functionAt.find(address);
  bool isFunction = found != warp.code().functionAt.end() &&
                    !functions[found->second].function->isEntry;
  if (!isFunction)
    warp.machine().findings().fault(
        FindingId::callTarget, warp, op, LaneMask(1) << lane,
        fmt::format("{:#x} is no function's address", address));
  const FunctionCode &callee = functions[found->second];
  if (!matches(call.arguments, callee.parameters) ||
      !matches(callee.results, call.results))
    warp.machine().findings().fault(
        FindingId::callTarget, warp, op, LaneMask(1) << lane,
        fmt::format("{} takes other parameters than the call gives",
                    callee.function->name));
  return found->second;
}

static Step callFunction(Warp &warp, const Op &op, LaneMask active) {
  const Call &call = *static_cast<const Call *>(op.extra.get());
  int function = calleeOf(warp, op, call, firstLane(active));
  LaneMask same = active;
  if (call.function < 0)
    forEachLane(active, [&](int lane) {
      if (calleeOf(warp, op, call, lane) != function)
        same &= ~(LaneMask(1) << lane);
    });
  Group &group = warp.group();
  if (same == group.lanes) {
    warp.enter(function, op);
    return Step::jumped;
  }
  // Those of one function come back here as a group; the others come back too
  // if they call, and all meet behind the call.
  int here = group.pc;
  LaneMask others = active & ~same;
  warp.branch(same, here, here + 1);
  for (Group &rest : warp.groups())
    if (rest.lanes & others)
      rest.pc = here;
  return Step::jumped;
}

/// Refuse a call whose operands are not those of the function.
static void checkSizes(const Decoder &decoder,
                       const ptx::Instruction &instruction, const char *what,
                       const std::vector<Slot> &given,
                       const std::vector<ptx::Variable> &wanted) {
  if (given.size() != wanted.size())
    decoder.refuse(instruction,
                   fmt::format("the function has {} {}s and the call {}",
                               wanted.size(), what, given.size()));
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i].reg.isValid() && given[i].bytes != wanted[i].bytes)
      decoder.refuse(instruction,
                     fmt::format("{} {} of the function has {} bytes and that "
                                 "of the call {}",
                                 what, i, wanted[i].bytes, given[i].bytes));
}

void decodeCall(Decoder &decoder, const ptx::Instruction &instruction, Op &op) {
  const ptx::Operand *results = nullptr, *arguments = nullptr,
                     *target = nullptr;
  for (const ptx::Operand &operand : instruction.operands) {
    if (operand.kind == ptx::Operand::Kind::list)
      (target ? arguments : results) = &operand;
    else if (!target)
      target = &operand;
  }
  if (target->kind == ptx::Operand::Kind::symbol &&
      isSystemFunction(target->name))
    return decodeSystemCall(decoder, instruction, op);
  Call call;
  for (auto [list, slots] : {std::pair(arguments, &call.arguments),
                             std::pair(results, &call.results)})
    if (list)
      for (const ptx::Operand &operand : list->elements)
        slots->push_back(decoder.slot(instruction, operand));
  if (target->kind == ptx::Operand::Kind::reg) {
    call.address = expectWidth(decoder, instruction, decoder.reg(*target), 8);
  } else {
    call.function = decoder.functionNumber(target->name);
    if (call.function < 0)
      decoder.refuse(
          instruction,
          fmt::format("the function '{}' has no body here", target->name));
    const ptx::Function &callee = *decoder.module().find(target->name);
    if (callee.isEntry)
      decoder.refuse(
          instruction,
          fmt::format("'{}' is an entry; a call takes a .func", target->name));
    checkSizes(decoder, instruction, "parameter", call.arguments,
               callee.parameters);
    checkSizes(decoder, instruction, "result", call.results, callee.results);
  }
  op.extra = std::make_shared<Call>(std::move(call));
  op.handler = callFunction;
}

} // namespace kiln::sim
