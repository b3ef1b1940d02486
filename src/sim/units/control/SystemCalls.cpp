// SystemCalls: printf and assert, which the driver implements on hardware.
#include "sim/machine/SpecialRegisters.h"
#include "sim/units/Units.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

/// What one conversion may print, and about what one call may: the size of
/// CUDA's buffer.
static constexpr int kMaxWidth = 1 << 20;

/// A string of the module, up to its zero byte or to what may be printed.
static std::string stringAt(Accessor &accessor, std::uint64_t address,
                            int lane) {
  std::string text;
  for (;; ++address) {
    char c = static_cast<char>(
        *accessor.locate(Space::generic, address, 1, 1, lane, false).data);
    if (c == 0 || text.size() == kMaxWidth)
      return text;
    text += c;
  }
}

/// `spec` with one value, as C's printf has it.
template <typename T>
static std::string formatOne(const std::string &spec, T value) {
  int length = std::snprintf(nullptr, 0, spec.c_str(), value);
  std::string text(std::max(length, 0), '\0');
  std::snprintf(text.data(), text.size() + 1, spec.c_str(), value);
  return text;
}

namespace {
/// printf's output for one lane; arguments lie one behind the other, each
/// aligned to its size. The format is the kernel's: the host's printf sees
/// nothing but conversions that were put together here.
class Printf {
public:
  Printf(Accessor &accessor, std::uint64_t arguments, int lane)
      : accessor_(accessor), arguments_(arguments), lane_(lane) {}

  std::string print(const std::string &format) {
    std::string out;
    for (std::size_t i = 0; i < format.size() && out.size() < kMaxWidth;) {
      std::size_t begin = i;
      if (format[i] == '%') {
        out += convert(format, i);
        // What is no conversion is printed as it is.
        if (i != begin)
          continue;
      }
      out += format[i++];
    }
    return out;
  }

private:
  std::uint64_t take(std::size_t bytes) {
    offset_ = (offset_ + bytes - 1) / bytes * bytes;
    std::uint64_t bits = 0;
    ByteRange place = accessor_.locate(Space::generic, arguments_ + offset_,
                                       bytes, bytes, lane_, false);
    std::memcpy(&bits, place.data, bytes);
    offset_ += bytes;
    return bits;
  }

  /// A width or a precision, if there is one, `*` included.
  std::string number(const std::string &format, std::size_t &at) {
    std::string digits;
    if (at < format.size() && format[at] == '*') {
      ++at;
      auto value = static_cast<std::int32_t>(take(4));
      return std::to_string(std::clamp(value, -kMaxWidth, kMaxWidth));
    }
    while (at < format.size() && format[at] >= '0' && format[at] <= '9')
      digits += format[at++];
    if (digits.size() > 7 || std::atoi(digits.c_str()) > kMaxWidth)
      return std::to_string(kMaxWidth);
    return digits;
  }

  /// The conversion at `at`, which is moved behind it; not where there is none.
  std::string convert(const std::string &format, std::size_t &at) {
    std::size_t end = at + 1;
    auto isOneOf = [&](const char *characters) {
      return end < format.size() && format[end] != 0 &&
             std::strchr(characters, format[end]);
    };
    std::string spec = "%";
    while (isOneOf("-+ #0") && spec.size() < 6)
      spec += format[end++];
    spec += number(format, end);
    if (isOneOf(".")) {
      std::string precision = number(format, ++end);
      if (!precision.starts_with('-')) // as if it were left out
        spec += '.' + precision;
    }
    std::string halves; // of an int
    bool isWide = false;
    for (; isOneOf("hlLqjzt"); ++end) {
      isWide |= format[end] != 'h';
      if (format[end] == 'h' && halves.size() < 2)
        halves += 'h';
    }
    if (!isOneOf("diouxXcsfFeEgGaAp%"))
      return "";
    char conversion = format[end];
    at = end + 1;
    if (conversion == '%')
      return "%";
    if (std::strchr("fFeEgGaA", conversion))
      return formatOne(spec + conversion, std::bit_cast<double>(take(8)));
    if (conversion == 's')
      return formatOne(spec + 's', stringAt(accessor_, take(8), lane_).c_str());
    if (conversion == 'p')
      return fmt::format("{:#x}", take(8));
    if (isWide && conversion != 'c')
      return formatOne(spec + "ll" + conversion,
                       static_cast<long long>(take(8)));
    if (conversion == 'c')
      halves.clear();
    return formatOne(spec + halves + conversion, static_cast<int>(take(4)));
  }

  Accessor &accessor_;
  std::uint64_t arguments_, offset_ = 0;
  int lane_;
};
} // namespace

namespace {
struct SystemCall {
  std::vector<Slot> parameters, results;
};
} // namespace

/// A value the kernel put into a parameter of the call.
static std::uint64_t callParameter(Warp &warp, Accessor &accessor,
                                   const Slot &slot, int lane) {
  if (slot.reg.isValid())
    return warp.read(slot.reg, lane);
  std::uint64_t bits = 0;
  ByteRange place = accessor.locate(
      Space::local, warp.localBase() + slot.offset, slot.bytes, 1, lane, false);
  std::memcpy(&bits, place.data, std::min<std::uint32_t>(8, slot.bytes));
  return bits;
}

static Step callPrintf(Warp &warp, const Op &op, LaneMask active) {
  const auto &call = *static_cast<const SystemCall *>(op.extra.get());
  Accessor accessor(warp, op, "printf");
  std::string text;
  forEachLane(active, [&](int lane) {
    auto parameter = [&](std::size_t i) {
      return callParameter(warp, accessor, call.parameters[i], lane);
    };
    text += Printf(accessor, parameter(1), lane)
                .print(stringAt(accessor, parameter(0), lane));
    for (const Slot &result : call.results) {
      if (result.reg.isValid()) {
        warp.write(result.reg, lane, 0);
        warp.setPoison(result.reg, LaneMask(1) << lane, 0);
        continue;
      }
      ByteRange place =
          accessor.locate(Space::local, warp.localBase() + result.offset,
                          result.bytes, 1, lane, true);
      std::memset(place.data, 0, result.bytes);
    }
  });
  if (!warp.machine().print(warp.cta().cluster(), text))
    userErrorAt(warp.machine().findings().sourceLine(*op.origin),
                "the kernel prints more than {} bytes", kMaxPrintedBytes);
  return Step::next;
}

static Step callAssert(Warp &warp, const Op &op, LaneMask active) {
  const auto &call = *static_cast<const SystemCall *>(op.extra.get());
  Accessor accessor(warp, op, "an assertion");
  int lane = firstLane(active);
  auto parameter = [&](std::size_t i) {
    return callParameter(warp, accessor, call.parameters[i], lane);
  };
  auto text = [&](std::size_t i) {
    return stringAt(accessor, parameter(i), lane);
  };
  auto special = [&](const char *name) {
    return findSpecialRegister(name)->value(warp, lane);
  };
  // The line that CUDA prints.
  warp.machine().findings().fault(
      FindingId::assertion, warp, op, active,
      fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion "
                  "`{}` failed.",
                  text(1), parameter(2), text(3), special("%ctaid.x"),
                  special("%ctaid.y"), special("%ctaid.z"), special("%tid.x"),
                  special("%tid.y"), special("%tid.z"), text(0)));
}

/// Put a value into a result of the call.
static void putResult(Warp &warp, Accessor &accessor, const Slot &slot,
                      int lane, std::uint64_t value) {
  if (slot.reg.isValid()) {
    warp.write(slot.reg, lane, value);
    warp.setPoison(slot.reg, LaneMask(1) << lane, 0);
    return;
  }
  ByteRange place = accessor.locate(
      Space::local, warp.localBase() + slot.offset, slot.bytes, 1, lane, true);
  std::memcpy(place.data, &value, std::min<std::size_t>(8, slot.bytes));
  place.markWritten(slot.bytes);
}

static Step callMalloc(Warp &warp, const Op &op, LaneMask active) {
  const auto &call = *static_cast<const SystemCall *>(op.extra.get());
  GlobalMemory &memory = warp.machine().memory();
  Accessor accessor(warp, op, "malloc");
  forEachLane(active, [&](int lane) {
    std::uint64_t bytes =
        callParameter(warp, accessor, call.parameters[0], lane);
    std::uint64_t address = memory.heap()->allocate(bytes);
    // Nobody has written what was another block before.
    if (Region *region = address ? memory.find(address) : nullptr) {
      region->touch(address, bytes, /*isWrite=*/true);
      region->valid.clear(address - region->base, bytes);
    }
    warp.watchers().tell(Allocation{Allocation::Of::heap, warp, op,
                                    LaneMask(1) << lane, address, bytes,
                                    /*isFreed=*/false});
    for (const Slot &result : call.results)
      putResult(warp, accessor, result, lane, address);
  });
  return Step::next;
}

static Step callFree(Warp &warp, const Op &op, LaneMask active) {
  const auto &call = *static_cast<const SystemCall *>(op.extra.get());
  Accessor accessor(warp, op, "free");
  forEachLane(active, [&](int lane) {
    std::uint64_t address =
        callParameter(warp, accessor, call.parameters[0], lane);
    DeviceHeap *heap = warp.machine().memory().heap();
    if (address && !(heap && heap->free(address)))
      warp.machine().findings().report(
          FindingId::deviceFree, warp, op, LaneMask(1) << lane,
          fmt::format("{:#x} is freed, which malloc did not give or which was "
                      "freed before",
                      address));
    warp.watchers().tell(Allocation{Allocation::Of::heap, warp, op,
                                    LaneMask(1) << lane, address, 0,
                                    /*isFreed=*/true});
  });
  return Step::next;
}

namespace {
struct SystemFunction {
  const char *name;
  Handler handler;
  std::size_t parameters; ///< at least
};
} // namespace

static constexpr SystemFunction kSystemFunctions[] = {
    {"vprintf", callPrintf, 2},
    {"__assertfail", callAssert, 4},
    {"malloc", callMalloc, 1},
    {"free", callFree, 1},
};

static const SystemFunction *findSystemFunction(const std::string &name) {
  for (const SystemFunction &function : kSystemFunctions)
    if (name == function.name)
      return &function;
  return nullptr;
}

bool isSystemFunction(const std::string &name) {
  return findSystemFunction(name) != nullptr;
}

void decodeSystemCall(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  SystemCall call;
  const SystemFunction *function = nullptr;
  for (const ptx::Operand &operand : instruction.operands) {
    if (operand.kind != ptx::Operand::Kind::list) {
      function = findSystemFunction(operand.name);
      continue;
    }
    for (const ptx::Operand &element : operand.elements)
      (function ? call.parameters : call.results)
          .push_back(decoder.slot(instruction, element));
  }
  op.handler = function->handler;
  if (call.parameters.size() < function->parameters)
    decoder.refuse(instruction, "too few arguments");
  op.extra = std::make_shared<SystemCall>(std::move(call));
}

} // namespace kiln::sim
