// Event: one table from opcodes and modifiers to what they do.
#include "sim/program/Effect.h"

namespace kiln::sim {

/// The first number among the operands; 0 where there is none.
static std::int64_t immediate(const ptx::Instruction &instruction) {
  for (const ptx::Operand &operand : instruction.operands)
    if (operand.kind == ptx::Operand::Kind::immediate)
      return static_cast<std::int64_t>(operand.bits);
  return 0;
}

/// The address operand number `n` (from 0); false where there is none.
static bool takeAddress(Decoder &decoder, const ptx::Instruction &instruction,
                        int n, Reg &reg, std::int64_t &offset) {
  for (const ptx::Operand &operand : instruction.operands) {
    if (operand.kind != ptx::Operand::Kind::address || n-- > 0)
      continue;
    reg = decoder.address(operand, offset);
    return true;
  }
  return false;
}

static void describeMemory(Decoder &decoder,
                           const ptx::Instruction &instruction, Event &event) {
  takeAddress(decoder, instruction, 0, event.address, event.offset);
  event.space = spaceOf(instruction);
  for (const ptx::Operand &operand : instruction.operands)
    if (operand.kind == ptx::Operand::Kind::address)
      event.space = decoder.spaceOfAddress(operand, event.space);
  ptx::ScalarType type;
  for (const std::string &modifier : instruction.modifiers)
    if (ptx::parseScalarType(modifier, type))
      event.bytes = ptx::sizeBytes(type);
  for (const char *word :
       {"acquire", "release", "relaxed", "volatile", "acq_rel", "mmio"})
    event.isStrong |= instruction.has(word);
  event.isStrong |= event.kind == EventKind::atomic;
}

static void describeMbarrier(Decoder &decoder,
                             const ptx::Instruction &instruction,
                             Event &event) {
  takeAddress(decoder, instruction, 0, event.address, event.offset);
  if (instruction.has("test_wait") || instruction.has("try_wait")) {
    event.kind = EventKind::barrierWait;
    event.operand = decoder.reg(instruction.operands[2]);
  } else if (instruction.has("init") || instruction.has("inval")) {
    event.kind = EventKind::barrierInit;
  } else {
    event.kind = EventKind::barrierArrive;
  }
}

static void describeCopy(Decoder &decoder, const ptx::Instruction &instruction,
                         Event &event) {
  event.count = immediate(instruction);
  event.isTensor = instruction.has("tensor");
  bool isCopy = instruction.operands.size() > 2;
  if (instruction.has("bulk") && !event.isTensor && isCopy)
    event.size = decoder.reg(instruction.operands[2], 4);
  if (instruction.has("commit_group")) {
    event.kind = EventKind::copyCommit;
  } else if (instruction.has("wait_group") || instruction.has("wait_all")) {
    event.kind = EventKind::copyWait;
  } else if (instruction.has("prefetch")) {
    event.kind = EventKind::none;
  } else if (instruction.has("mbarrier")) {
    event.kind = EventKind::barrierArrive; // cp.async.mbarrier.arrive
    takeAddress(decoder, instruction, 0, event.address, event.offset);
  } else if (instruction.has("bulk_group")) {
    event.kind = EventKind::copyOut;
    takeAddress(decoder, instruction, 0, event.operand, event.operandOffset);
    takeAddress(decoder, instruction, 1, event.address, event.offset);
  } else {
    event.kind = EventKind::copyIn;
    takeAddress(decoder, instruction, 0, event.address, event.offset);
    takeAddress(decoder, instruction, 1, event.operand, event.operandOffset);
    if (instruction.has("bulk"))
      takeAddress(decoder, instruction, 2, event.barrier, event.barrierOffset);
  }
}

static void describeWgmma(Decoder &decoder, const ptx::Instruction &instruction,
                          Event &event) {
  event.isAligned = true;
  event.count = immediate(instruction);
  if (instruction.has("commit_group")) {
    event.kind = EventKind::productCommit;
  } else if (instruction.has("wait_group")) {
    event.kind = EventKind::productWait;
  } else if (instruction.has("mma_async")) {
    event.kind = EventKind::product;
    for (const std::string &modifier : instruction.modifiers)
      if (int n; std::sscanf(modifier.c_str(), "m64n%dk", &n) == 1)
        event.count = n;
    if (instruction.operands[1].kind == ptx::Operand::Kind::reg)
      event.address = decoder.reg(instruction.operands[1], 8);
    if (instruction.operands[2].kind == ptx::Operand::Kind::reg)
      event.operand = decoder.reg(instruction.operands[2], 8);
  }
}

static CostClass costOf(Unit unit) {
  switch (unit) {
  case Unit::memory:
  case Unit::matrix:
    return CostClass::memory;
  case Unit::copies:
    return CostClass::tma;
  case Unit::wgmma:
    return CostClass::wgmma;
  case Unit::barrier:
  case Unit::mbarrier:
    return CostClass::barrier;
  default:
    return CostClass::scalar;
  }
}

Event eventOf(Decoder &decoder, const ptx::Instruction &instruction,
              Unit unit) {
  const std::string &opcode = instruction.opcode;
  Event event;
  event.cost = costOf(unit);
  event.isAligned = instruction.has("aligned");
  if (opcode == "ld" || opcode == "ldu" || opcode == "ldmatrix" ||
      (opcode == "wmma" && instruction.has("load")))
    event.kind = EventKind::load;
  else if (opcode == "atom" || (opcode == "red" && !instruction.has("async")))
    event.kind = EventKind::atomic;
  else if (opcode == "st" || opcode == "stmatrix" || opcode == "red" ||
           (opcode == "wmma" && instruction.has("store")))
    event.kind = EventKind::store;
  if (event.kind != EventKind::none) {
    describeMemory(decoder, instruction, event);
    // st.async and red.async tell the mbarrier that is their last operand.
    if (instruction.has("async")) {
      event.kind = EventKind::copyIn;
      takeAddress(decoder, instruction, 1, event.barrier, event.barrierOffset);
    }
    return event;
  }
  if (opcode == "mbarrier") {
    describeMbarrier(decoder, instruction, event);
  } else if (opcode == "cp") {
    describeCopy(decoder, instruction, event);
  } else if (opcode == "wgmma") {
    describeWgmma(decoder, instruction, event);
  } else if (opcode == "setmaxnreg") {
    event.kind = EventKind::registers;
    event.isAligned = true;
  } else if (opcode == "nanosleep") {
    event.kind = EventKind::sleep;
  } else if ((opcode == "bar" || opcode == "barrier") &&
             instruction.has("cluster")) {
    event.kind = instruction.has("arrive") ? EventKind::clusterArrive
                                           : EventKind::clusterWait;
  } else if (opcode == "bar" || opcode == "barrier") {
    event.isAligned |= opcode == "bar" && !instruction.has("warp");
    if (!instruction.has("warp")) {
      event.kind = EventKind::ctaBarrier;
      // A reduction has its result before the barrier.
      std::size_t at = instruction.has("red") ? 1 : 0;
      event.operand = decoder.reg(instruction.operands[at], 4);
    }
  } else if (opcode == "call" || opcode == "exit" || opcode == "ret" ||
             opcode == "trap" || opcode == "tcgen05") {
    event.kind = EventKind::other;
  }
  return event;
}

} // namespace kiln::sim
