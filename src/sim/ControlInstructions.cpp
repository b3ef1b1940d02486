// ControlInstructions: branches, the end of a kernel, and calls to the system.
#include "sim/Access.h"
#include "support/Error.h"

#include <cstring>

namespace kiln::sim {

static Step branch(Warp &warp, const Op &op, LaneMask active) {
  warp.branch(active, op.target, op.reconverge);
  return Step::jumped;
}

static void decodeBranch(Decoder &, const ptx::Instruction &instruction,
                         Op &op) {
  op.target = instruction.operands.at(0).target;
  op.handler = branch;
}

/// brx.idx: lanes go where their index says; one target at a time.
static Step branchIndexed(Warp &warp, const Op &op, LaneMask active) {
  const auto &targets = *static_cast<const std::vector<int> *>(op.extra.get());
  int lane = firstLane(active);
  std::uint64_t index = warp.read(op.src[0], lane);
  if (index >= targets.size())
    warp.machine().fault("branch-table", warp, op, LaneMask(1) << lane,
                         fmt::format("the index {} is outside a table of {} "
                                     "targets",
                                     index, targets.size()));
  LaneMask same = 0;
  forEachLane(active, [&](int other) {
    if (warp.read(op.src[0], other) == index)
      same |= LaneMask(1) << other;
  });
  if (same == warp.group().lanes) {
    warp.group().pc = targets[index];
    return Step::jumped;
  }
  // The rest comes back to this instruction.
  int here = warp.group().pc;
  warp.branch(same, targets[index], op.reconverge);
  for (Group &group : warp.groups())
    if (group.pc == here + 1 && (group.lanes & ~same & active))
      group.pc = here;
  return Step::jumped;
}

static void decodeBranchIndexed(Decoder &decoder,
                                const ptx::Instruction &instruction, Op &op) {
  const auto &tables = decoder.function().branchTargets;
  auto table = tables.find(instruction.operands.at(1).name);
  if (table == tables.end())
    decoder.refuse(instruction, "its table of targets is declared nowhere");
  op.src[0] = decoder.reg(instruction.operands[0], 4);
  op.extra = std::make_shared<std::vector<int>>(table->second);
  op.handler = branchIndexed;
}

static Step leave(Warp &warp, const Op &, LaneMask active) {
  bool isAll = active == warp.group().lanes;
  if (!isAll)
    ++warp.group().pc;
  warp.exit(active);
  return Step::jumped;
}

static void decodeExit(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = leave;
}

static Step trap(Warp &warp, const Op &op, LaneMask active) {
  warp.machine().fault("trap", warp, op, active, "the kernel executed a trap");
}

static void decodeTrap(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = trap;
}

// Calls: printf and assert, which the driver implements on hardware.

/// A string of the module, up to its zero byte.
static std::string stringAt(Accessor &accessor, std::uint64_t address,
                            int lane) {
  std::string text;
  for (;; ++address) {
    char c = static_cast<char>(
        *accessor.locate(Space::generic, address, 1, 1, lane, false).data);
    if (c == 0)
      return text;
    text += c;
  }
}

/// printf's output for one lane; arguments lie in `place` one behind the other,
/// each aligned to its size.
static std::string formatPrintf(Accessor &accessor, const std::string &format,
                                std::uint64_t arguments, int lane) {
  std::string out;
  std::uint64_t offset = 0;
  auto take = [&](std::size_t bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    std::uint64_t bits = 0;
    Place place = accessor.locate(Space::generic, arguments + offset, bytes,
                                  bytes, lane, false);
    std::memcpy(&bits, place.data, bytes);
    offset += bytes;
    return bits;
  };
  for (std::size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    std::size_t end = format.find_first_of("diouxXcsfFeEgGaAp%", i + 1);
    if (end == std::string::npos)
      return out + format.substr(i);
    std::string spec = format.substr(i, end - i + 1);
    char conversion = format[end];
    i = end + 1;
    char buffer[512];
    bool isLong = spec.find('l') != std::string::npos;
    if (conversion == '%') {
      out += '%';
      continue;
    }
    if (std::strchr("fFeEgGaA", conversion)) {
      double value = std::bit_cast<double>(take(8));
      std::snprintf(buffer, sizeof(buffer), spec.c_str(), value);
    } else if (conversion == 's') {
      std::string text = stringAt(accessor, take(8), lane);
      std::snprintf(buffer, sizeof(buffer), spec.c_str(), text.c_str());
    } else if (conversion == 'p') {
      std::snprintf(buffer, sizeof(buffer), "0x%llx",
                    static_cast<unsigned long long>(take(8)));
    } else if (isLong) {
      std::snprintf(buffer, sizeof(buffer), spec.c_str(),
                    static_cast<long long>(take(8)));
    } else {
      std::snprintf(buffer, sizeof(buffer), spec.c_str(),
                    static_cast<int>(take(4)));
    }
    out += buffer;
  }
  return out;
}

/// A value the kernel put into a parameter of the call.
static std::uint64_t callParameter(Accessor &accessor, const Symbol &symbol,
                                   int lane) {
  std::uint64_t bits = 0;
  Place place = accessor.locate(Space::local, symbol.address, symbol.bytes, 1,
                                lane, false);
  std::memcpy(&bits, place.data, std::min<std::uint64_t>(8, symbol.bytes));
  return bits;
}

namespace {
struct SystemCall {
  std::vector<Symbol> parameters;
  Symbol result{};
  bool hasResult = false;
};
} // namespace

static Step callPrintf(Warp &warp, const Op &op, LaneMask active) {
  const auto &call = *static_cast<const SystemCall *>(op.extra.get());
  Accessor accessor(warp, op, "printf");
  std::string text;
  forEachLane(active, [&](int lane) {
    std::string format = stringAt(
        accessor, callParameter(accessor, call.parameters[0], lane), lane);
    text +=
        formatPrintf(accessor, format,
                     callParameter(accessor, call.parameters[1], lane), lane);
    if (call.hasResult) {
      Place place =
          accessor.locate(Space::local, call.result.address, 4, 1, lane, true);
      std::memset(place.data, 0, 4);
    }
  });
  warp.machine().print(text);
  return Step::next;
}

static Step callAssert(Warp &warp, const Op &op, LaneMask active) {
  const auto &call = *static_cast<const SystemCall *>(op.extra.get());
  Accessor accessor(warp, op, "an assertion");
  int lane = firstLane(active);
  auto text = [&](std::size_t i) {
    return stringAt(accessor, callParameter(accessor, call.parameters[i], lane),
                    lane);
  };
  warp.machine().fault(
      "assert", warp, op, active,
      fmt::format("the assertion `{}` failed ({}:{}, {})", text(0), text(1),
                  callParameter(accessor, call.parameters[2], lane), text(3)));
}

static void decodeCall(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  const ptx::Operand *results = nullptr, *arguments = nullptr;
  std::string name;
  for (const ptx::Operand &operand : instruction.operands) {
    if (operand.kind == ptx::Operand::Kind::list)
      (name.empty() ? results : arguments) = &operand;
    else if (name.empty())
      name = operand.name;
  }
  if (name == "vprintf")
    op.handler = callPrintf;
  else if (name == "__assertfail")
    op.handler = callAssert;
  else
    decoder.refuse(instruction, "calls other than printf and assert");
  SystemCall call;
  if (arguments)
    for (const ptx::Operand &argument : arguments->elements) {
      const Symbol *symbol = decoder.symbol(argument.name);
      if (!symbol)
        decoder.refuse(instruction,
                       fmt::format("{} is declared nowhere", argument.name));
      call.parameters.push_back(*symbol);
    }
  if (call.parameters.size() < (name == "vprintf" ? 2u : 4u))
    decoder.refuse(instruction, "too few arguments");
  if (results && !results->elements.empty()) {
    const Symbol *symbol = decoder.symbol(results->elements[0].name);
    if (symbol) {
      call.result = *symbol;
      call.hasResult = true;
    }
  }
  op.extra = std::make_shared<SystemCall>(std::move(call));
}

/// Nothing to do in a simulator.
static Step nothing(Warp &, const Op &, LaneMask) { return Step::next; }

static void decodeNothing(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = nothing;
}

std::vector<Instruction> controlInstructions() {
  return {
      {"bra", decodeBranch, "control", ".uni accepted"},
      {"brx", decodeBranchIndexed, "control", ".idx"},
      {"ret", decodeExit, "control", "of a kernel"},
      {"exit", decodeExit, "control", ""},
      {"trap", decodeTrap, "control", ""},
      {"brkpt", decodeNothing, "control", "ignored"},
      {"call", decodeCall, "control", "vprintf and __assertfail"},
      {"griddepcontrol", decodeNothing, "control",
       "launches follow one another"},
  };
}

bool Instruction::isArithmetic() const {
  std::string_view name = unit;
  return name == "scalar" || name == "float" || name == "conversion" ||
         name == "address";
}

} // namespace kiln::sim
