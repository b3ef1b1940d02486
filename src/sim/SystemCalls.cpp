// SystemCalls: printf and assert, which the driver implements on hardware.
#include "sim/Access.h"
#include "support/Error.h"

#include <cstring>

namespace kiln::sim {

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

/// `spec` with one value, as C's printf has it.
template <typename T>
static std::string formatOne(const std::string &spec, T value) {
  int length = std::snprintf(nullptr, 0, spec.c_str(), value);
  std::string text(std::max(length, 0), '\0');
  std::snprintf(text.data(), text.size() + 1, spec.c_str(), value);
  return text;
}

/// printf's output for one lane; arguments lie one behind the other, each
/// aligned to its size.
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
    for (auto star = spec.find('*'); star != std::string::npos;
         star = spec.find('*'))
      spec.replace(star, 1, std::to_string(static_cast<int>(take(4))));
    bool isWide = spec.find_first_of("lzjt") != std::string::npos;
    if (conversion == '%')
      out += '%';
    else if (std::strchr("fFeEgGaA", conversion))
      out += formatOne(spec, std::bit_cast<double>(take(8)));
    else if (conversion == 's')
      out += formatOne(spec, stringAt(accessor, take(8), lane).c_str());
    else if (conversion == 'p')
      out += fmt::format("{:#x}", take(8));
    else if (isWide)
      out += formatOne(spec, static_cast<long long>(take(8)));
    else
      out += formatOne(spec, static_cast<int>(take(4)));
  }
  return out;
}

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
  Place place = accessor.locate(Space::local, warp.localBase() + slot.offset,
                                slot.bytes, 1, lane, false);
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
    text += formatPrintf(accessor, stringAt(accessor, parameter(0), lane),
                         parameter(1), lane);
    for (const Slot &result : call.results) {
      if (result.reg.isValid()) {
        warp.write(result.reg, lane, 0);
        warp.setPoison(result.reg, LaneMask(1) << lane, 0);
        continue;
      }
      Place place =
          accessor.locate(Space::local, warp.localBase() + result.offset,
                          result.bytes, 1, lane, true);
      std::memset(place.data, 0, result.bytes);
    }
  });
  warp.machine().print(warp.cta().cluster(), text);
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
  warp.machine().fault("assert", warp, op, active,
                       fmt::format("the assertion `{}` failed ({}:{}, {})",
                                   text(0), text(1), parameter(2), text(3)));
}

bool isSystemFunction(const std::string &name) {
  return name == "vprintf" || name == "__assertfail";
}

void decodeSystemCall(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  SystemCall call;
  bool isPrintf = false, hasName = false;
  for (const ptx::Operand &operand : instruction.operands) {
    if (operand.kind != ptx::Operand::Kind::list) {
      isPrintf |= operand.name == "vprintf";
      hasName = true;
      continue;
    }
    for (const ptx::Operand &element : operand.elements)
      (hasName ? call.parameters : call.results)
          .push_back(decoder.slot(instruction, element));
  }
  op.handler = isPrintf ? callPrintf : callAssert;
  if (call.parameters.size() < (isPrintf ? 2u : 4u))
    decoder.refuse(instruction, "too few arguments");
  op.extra = std::make_shared<SystemCall>(std::move(call));
}

} // namespace kiln::sim
