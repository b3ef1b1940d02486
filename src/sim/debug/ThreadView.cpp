// ThreadView: registers and memory of a thread.
#include "sim/debug/ThreadView.h"
#include "kiln/base/text.h"
#include "sim/machine/SpecialRegisters.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

#include <cstring>

namespace kiln::sim {

Type shownType(ptx::ScalarType type) {
  using S = ptx::ScalarType;
  switch (type) {
  case S::f16:
    return f16;
  case S::bf16:
    return bf16;
  case S::f32:
    return f32;
  case S::f64:
    return f64;
  case S::s8:
    return i8;
  case S::s16:
    return i16;
  case S::s32:
    return i32;
  case S::s64:
    return i64;
  default:
    break;
  }
  switch (ptx::sizeBytes(type)) {
  case 1:
    return u8;
  case 2:
    return u16;
  case 4:
    return u32;
  default:
    return u64;
  }
}

const Group *ThreadView::group() const {
  for (const Group &group : warp_.groups())
    if (group.lanes >> lane_ & 1)
      return &group;
  return nullptr;
}

const FunctionCode &ThreadView::function() const {
  const Group *at = group();
  int number = at && at->frame ? at->frame->function : 0;
  return warp_.code().functions[static_cast<std::size_t>(number)];
}

DebugValue ThreadView::registerValue(const std::string &name,
                                     std::optional<Type> type) {
  const FunctionCode &code = function();
  const auto &registers = code.function->registers;
  for (std::size_t i = 0; i < registers.size(); ++i) {
    if (registers[i].name != name)
      continue;
    if (int pred = code.declaredPredicates[i]; pred >= 0)
      return {false, warp_.pred({pred, false}) >> lane_ & 1, 0};
    const Reg &reg = code.declared[i];
    if (!reg.isValid())
      break;
    return DebugValue::of(type.value_or(shownType(registers[i].type)),
                          warp_.read(reg, lane_));
  }
  if (auto special = findSpecialRegister(std::string_view(name)))
    return DebugValue::of(u64, special->value(warp_, lane_));
  userError("{} has no register {} that is used; `registers` lists them",
            quote(code.function->name, 100), name);
}

SeenBytes ThreadView::seeShared(std::uint64_t address, std::size_t bytes) {
  std::uint32_t plain;
  if (address >> kWindowShift == kSharedWindow >> kWindowShift)
    address -= kSharedWindow;
  Cta *cta = sharedOwner(warp_.cta(), address, plain);
  // People write addresses as messages have them: without the CTA's rank.
  if (cta && address >> kRankShift == 0)
    cta = &warp_.cta();
  if (!cta || plain < kFirstSharedAddress ||
      !isInside(plain - kFirstSharedAddress, bytes, cta->shared.size()))
    userError("{} bytes at shared address {}: the CTA has {} bytes from "
              "address {} on",
              bytes, address, warp_.cta().shared.size(), kFirstSharedAddress);
  std::size_t offset = plain - kFirstSharedAddress;
  return {cta->shared.data() + offset, &cta->sharedValid, offset,
          warp_.machine().findings().describeShared(plain)};
}

SeenBytes ThreadView::seeGlobal(std::uint64_t address, std::size_t bytes) {
  GlobalMemory &memory = warp_.machine().memory();
  Region *region = memory.find(address);
  if (!region || !isInside(address - region->base, bytes, region->bytes))
    userError("{} bytes at global address {:#x}: {}", bytes, address,
              memory.describe(address));
  return {region->at(address), &region->valid,
          static_cast<std::size_t>(address - region->base),
          memory.describe(address)};
}

SeenBytes ThreadView::see(const std::string &space, std::uint64_t address,
                          std::size_t bytes) {
  if (space == "shared")
    return seeShared(address, bytes);
  if (space == "global")
    return seeGlobal(address, bytes);
  if (space == "generic") {
    if (address >> kWindowShift == kSharedWindow >> kWindowShift)
      return seeShared(address, bytes);
    if (address >> kWindowShift == kLocalWindow >> kWindowShift)
      return see("local", address - kLocalWindow, bytes);
    if (address >> kWindowShift == kParamWindow >> kWindowShift)
      return see("param", address - kParamWindow, bytes);
    return seeGlobal(address, bytes);
  }
  if (space == "local") {
    if (!isInside(address, bytes, warp_.localBytes))
      userError("{} bytes at local address {}: the thread has {}", bytes,
                address, warp_.localBytes);
    std::size_t offset =
        static_cast<std::size_t>(lane_) * warp_.localBytes + address;
    return {warp_.local.data() + offset, &warp_.localValid, offset,
            fmt::format("local address {}", address)};
  }
  if (space == "param") {
    const auto &params = warp_.machine().config().params;
    if (!isInside(address, bytes, params.size()))
      userError("{} bytes at parameter address {}: there are {}", bytes,
                address, params.size());
    return {params.data() + address, nullptr, 0,
            fmt::format("byte {} of the parameters", address)};
  }
  userError("'{}' is no space of memory; expected shared, global, local, param "
            "or generic",
            space);
}

DebugValue ThreadView::memory(const std::string &space, std::uint64_t address,
                              Type type) {
  if (is_subbyte(type))
    userError("a value of type {} has no address; `memory` shows several",
              name(type));
  auto bytes = static_cast<std::size_t>(size_bytes(type));
  return DebugValue::of(type,
                        load_bits(type, see(space, address, bytes).data, 0));
}

std::optional<std::uint64_t>
ThreadView::parameter(const std::string &name) const {
  const ptx::Function &entry = *warp_.code().functions.front().function;
  std::vector<std::uint64_t> offsets =
      parameterOffsets(entry, warp_.cta().machine().config().device);
  for (std::size_t i = 0; i < entry.parameters.size(); ++i)
    if (entry.parameters[i].name == name)
      return offsets[i];
  return {};
}

DebugValue ThreadView::symbol(const std::string &name, bool isParameter) {
  auto at = [](std::uint64_t address) {
    return DebugValue{false, static_cast<std::int64_t>(address), 0};
  };
  const Machine &machine = warp_.machine();
  auto ofParameter = parameter(name);
  if (isParameter && ofParameter)
    return at(*ofParameter);
  std::uint64_t end = kFirstSharedAddress + warp_.cta().shared.size();
  for (std::uint64_t address = kFirstSharedAddress; address < end;)
    if (const auto *variable = machine.findings().sharedVariable(address)) {
      if (variable->first == name)
        return at(variable->second.address);
      address = std::max(address + 1,
                         variable->second.address + variable->second.bytes);
    } else {
      ++address;
    }
  for (const SharedObject &object : machine.config().sharedObjects)
    if (object.name == name)
      for (std::uint64_t address = kFirstSharedAddress; address < end;
           ++address)
        if (std::string found = machine.findings().sharedName(
                static_cast<std::uint32_t>(address));
            found == name || found == name + "[0]")
          return at(address);
  for (const auto &[base, region] : warp_.machine().memory().regions())
    if (region->name == name)
      return at(base);
  if (ofParameter)
    return at(*ofParameter);
  userError("'{}' is no variable, parameter of the kernel or buffer", name);
}

std::uint64_t ThreadView::addressOf(const std::string &text,
                                    const std::string &space) {
  DebugValue value = Expression::parse(text).evaluate(*this, space == "param");
  if (value.isReal)
    userError("the address '{}' is no integer", text);
  return static_cast<std::uint64_t>(value.whole);
}

} // namespace kiln::sim
