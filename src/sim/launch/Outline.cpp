// Outline: what an entry does with its parameters, followed through registers.
//
// Only what keeps an address an address is followed (AddressUse), so that a
// stride, which is multiplied first, is not taken for a pointer.
#include "kiln/check/outline.h"

#include "ptx/Ast.h"
#include "sim/program/AddressSpaces.h"
#include "sim/program/flow/Reachable.h"
#include "sim/units/Units.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

namespace kiln::sim {

using ptx::Operand;
using ptx::ScalarType;

namespace {

/// A place in the parameters.
struct Place {
  std::size_t parameter = 0;
  std::int64_t offset = 0;
  auto operator<=>(const Place &) const = default;
};

/// What is known of the value that lies at a place.
struct Facts {
  std::optional<ScalarType> loadedAs;
  bool isAddress = false, isRead = false, isWritten = false, isMap = false;
  int rank = 0;
  std::set<ScalarType> elements; ///< what lies behind it is accessed as
};

/// What a register may hold.
struct Held {
  /// Values of these places, plus something. A value of many is not followed.
  std::vector<Place> values;
  std::optional<Place> address; ///< the address of this one

  bool add(const Place &place) {
    constexpr std::size_t kMost = 4;
    if (values.size() == kMost ||
        std::count(values.begin(), values.end(), place))
      return false;
    values.push_back(place);
    return true;
  }
};

class Tracer {
public:
  explicit Tracer(const ptx::Function &entry)
      : entry_(entry), held_(entry.registers.size()),
        isIndexed_(entry.parameters.size()) {
    for (std::size_t i = 0; i < entry.parameters.size(); ++i)
      byName_[entry.parameters[i].name] = i;
    // Registers that go round a loop are known after a few rounds.
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds && hasChanged_; ++round) {
      hasChanged_ = false;
      for (const ptx::Instruction &instruction : entry.body)
        follow(instruction);
    }
  }

  PtxParameter describe(std::size_t index) const;

private:
  std::optional<PtxField> fieldOf(const ptx::Variable &declared,
                                  const Place &place, const Facts &facts) const;
  std::optional<Place> placeOf(const Operand &operand) const;
  void follow(const ptx::Instruction &instruction);
  void followLoad(const ptx::Instruction &instruction, const Place &from);
  void followValue(const ptx::Instruction &instruction, const AddressUse &use);
  void followAccess(const ptx::Instruction &instruction, const AddressUse &use);
  void followMap(const ptx::Instruction &instruction, const Operand &operand,
                 bool isWritten);
  void giveToCall(const ptx::Instruction &instruction);
  void setAddress(int reg, const Place &place);
  void takeAccess(const Operand &address, std::optional<ScalarType> type,
                  bool isRead, bool isWritten);

  const ptx::Function &entry_;
  std::map<std::string, std::size_t> byName_;
  std::vector<Held> held_;
  std::vector<bool> isIndexed_;
  std::map<Place, Facts> facts_;
  bool hasChanged_ = true;
};

} // namespace

static constexpr std::uint64_t kMapBytes = 128;

/// Whether a parameter is bytes by value.
static bool isArray(const ptx::Variable &declared) {
  return declared.bytes != static_cast<std::uint64_t>(sizeBytes(declared.type));
}

/// The last modifier that is a type: that of what is accessed.
static std::optional<ScalarType> typeOf(const ptx::Instruction &instruction) {
  std::optional<ScalarType> found;
  ScalarType type;
  for (const std::string &modifier : instruction.modifiers)
    if (ptx::parseScalarType(modifier, type))
      found = type;
  return found;
}

/// The register that an operand is, or that its address begins with; -1: none.
static int registerOf(const Operand &operand) {
  if (operand.kind == Operand::Kind::reg)
    return operand.reg;
  bool isAddress =
      operand.kind == Operand::Kind::address && !operand.elements.empty();
  return isAddress ? registerOf(operand.elements[0]) : -1;
}

/// The place that an address, or a symbol, means.
std::optional<Place> Tracer::placeOf(const Operand &operand) const {
  bool isAddress =
      operand.kind == Operand::Kind::address && !operand.elements.empty();
  const Operand &base = isAddress ? operand.elements[0] : operand;
  std::int64_t offset = base.offset + (isAddress ? operand.offset : 0);
  if (base.kind == Operand::Kind::symbol) {
    auto found = byName_.find(base.name);
    if (found != byName_.end())
      return Place{found->second, offset};
  }
  if (base.kind == Operand::Kind::reg && held_[base.reg].address) {
    Place place = *held_[base.reg].address;
    place.offset += isAddress ? operand.offset : 0;
    return place;
  }
  return std::nullopt;
}

void Tracer::setAddress(int reg, const Place &place) {
  if (reg < 0 || held_[reg].address)
    return;
  held_[reg].address = place;
  hasChanged_ = true;
}

/// A part of a parameter is read into one register, or several.
void Tracer::followLoad(const ptx::Instruction &instruction,
                        const Place &from) {
  std::optional<ScalarType> type = typeOf(instruction);
  const Operand &to = instruction.operands[0];
  if (!type)
    return;
  Place place = from;
  std::size_t count = to.kind == Operand::Kind::vector ? to.elements.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const Operand &one = to.kind == Operand::Kind::vector ? to.elements[i] : to;
    facts_[place].loadedAs = type;
    if (one.kind == Operand::Kind::reg)
      hasChanged_ |= held_[one.reg].add(place);
    place.offset += ptx::sizeBytes(*type);
  }
}

/// Values of 64 bits that are moved and added.
void Tracer::followValue(const ptx::Instruction &instruction,
                         const AddressUse &use) {
  const std::vector<Operand> &operands = instruction.operands;
  int to = registerOf(operands[0]);
  if (to < 0)
    return;
  bool isOfTwo = std::popcount(use.passed) > 1;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (!AddressUse::has(use.passed, i))
      continue;
    if (int from = registerOf(operands[i]); from >= 0) {
      for (const Place &place : std::vector(held_[from].values)) {
        hasChanged_ |= held_[to].add(place);
        if (use.isConverted)
          facts_[place].isAddress = true;
      }
    }
    std::optional<Place> place = placeOf(operands[i]);
    if (!place)
      continue;
    const Operand *other = use.isSum && isOfTwo ? &operands[3 - i] : nullptr;
    if (other && other->kind == Operand::Kind::immediate)
      place->offset += static_cast<std::int64_t>(other->bits);
    else if (use.isSum)
      isIndexed_[place->parameter] = true;
    setAddress(to, *place);
  }
}

void Tracer::takeAccess(const Operand &address, std::optional<ScalarType> type,
                        bool isRead, bool isWritten) {
  int reg = registerOf(address);
  if (reg < 0 || address.kind != Operand::Kind::address)
    return;
  for (const Place &place : held_[reg].values) {
    Facts &facts = facts_[place];
    facts.isAddress = true;
    facts.isRead |= isRead;
    facts.isWritten |= isWritten;
    if (type)
      facts.elements.insert(*type);
  }
}

/// A tensor map: the rank of a copy by it is a modifier.
void Tracer::followMap(const ptx::Instruction &instruction,
                       const Operand &operand, bool isWritten) {
  std::optional<Place> place = placeOf(operand);
  if (!place)
    return;
  Facts &facts = facts_[*place];
  facts.isMap = true;
  facts.isWritten |= isWritten;
  for (const std::string &modifier : instruction.modifiers)
    if (modifier.size() == 2 && modifier[1] == 'd')
      facts.rank = modifier[0] - '0';
}

void Tracer::followAccess(const ptx::Instruction &instruction,
                          const AddressUse &use) {
  std::optional<ScalarType> type = typeOf(instruction);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const Operand &operand = instruction.operands[i];
    bool isMap = AddressUse::has(use.maps, i);
    bool isRead = AddressUse::has(use.read, i);
    bool isWritten = AddressUse::has(use.written, i);
    if (isMap)
      followMap(instruction, operand, isWritten);
    if (isMap || isRead || isWritten)
      takeAccess(operand, isMap ? std::nullopt : type, isRead, isWritten);
  }
}

/// An argument of a call: what the function does with it is not followed.
void Tracer::giveToCall(const ptx::Instruction &instruction) {
  for (const Operand &operand : instruction.operands)
    if (operand.kind == Operand::Kind::reg)
      for (const Place &place : held_[operand.reg].values)
        facts_[place].isAddress = true;
}

/// What it does with addresses; of an opcode that no unit has, what stands in
/// brackets is taken for what it reads.
static AddressUse useOf(const ptx::Instruction &instruction) {
  if (const Instruction *row = instructionSet().find(instruction.opcode))
    return row->traits.addresses ? row->traits.addresses(instruction)
                                 : AddressUse();
  AddressUse use;
  for (std::size_t i = 0; i < instruction.operands.size() && i < 8; ++i)
    if (instruction.operands[i].kind == Operand::Kind::address)
      use.read |= OperandSet(1 << i);
  return use;
}

void Tracer::follow(const ptx::Instruction &instruction) {
  const std::vector<Operand> &operands = instruction.operands;
  if (operands.empty())
    return;
  AddressUse use = useOf(instruction);
  if (use.passed)
    return followValue(instruction, use);
  bool isLoad = operands.size() > 1 && AddressUse::has(use.read, 1) &&
                operands[0].kind != Operand::Kind::address;
  if (isLoad)
    if (std::optional<Place> from = placeOf(operands[1]))
      return followLoad(instruction, *from);
  if (use.written && spaceOf(instruction) == Space::param)
    return giveToCall(instruction);
  followAccess(instruction, use);
}

/// The type of elements for one of PTX; none: bits that several have.
static std::optional<Type> exactType(ScalarType type) {
  static const std::map<ScalarType, Type> kTypes = {
      {ScalarType::u8, Type::u8},       {ScalarType::s8, Type::i8},
      {ScalarType::s16, Type::i16},     {ScalarType::u32, Type::u32},
      {ScalarType::s32, Type::i32},     {ScalarType::u64, Type::u64},
      {ScalarType::s64, Type::i64},     {ScalarType::f16, Type::f16},
      {ScalarType::f16x2, Type::f16},   {ScalarType::bf16, Type::bf16},
      {ScalarType::bf16x2, Type::bf16}, {ScalarType::f32, Type::f32},
      {ScalarType::f64, Type::f64}};
  auto found = kTypes.find(type);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

/// The likeliest type of so many bytes in a kernel that uses these words.
static Type likelyType(int bytes, const ptx::Function &entry) {
  if (bytes == 8)
    return Type::u64;
  if (bytes == 1)
    return Type::u8;
  if (bytes != 2)
    return Type::f32;
  bool hasBf16 = false, hasF16 = false;
  for (const ptx::Instruction &instruction : entry.body)
    for (const std::string &modifier : instruction.modifiers) {
      hasBf16 |= modifier.starts_with("bf16");
      hasF16 |= modifier.starts_with("f16");
    }
  return hasBf16 && !hasF16 ? Type::bf16 : hasF16 ? Type::f16 : Type::u16;
}

/// What the elements behind a pointer are.
static void settleElements(const Facts &facts, const ptx::Function &entry,
                           PtxField &field) {
  std::set<Type> exact;
  int smallest = 4;
  for (ScalarType type : facts.elements) {
    smallest = exact.empty() && type == *facts.elements.begin()
                   ? ptx::sizeBytes(type)
                   : std::min(smallest, ptx::sizeBytes(type));
    if (auto known = exactType(type))
      exact.insert(*known);
  }
  field.is_type_guessed = exact.size() != 1;
  field.type = exact.size() == 1 && size_bytes(*exact.begin()) <= smallest
                   ? *exact.begin()
                   : likelyType(smallest, entry);
}

/// A number of which only its bytes are known.
static Type bitsType(std::uint64_t bytes) {
  static constexpr Type kTypes[] = {Type::u8, Type::u16, Type::u32};
  return bytes >= 8 ? Type::u64 : kTypes[bytes / 2];
}

/// What lies at a place; nothing where no more than its address was used.
std::optional<PtxField> Tracer::fieldOf(const ptx::Variable &declared,
                                        const Place &place,
                                        const Facts &facts) const {
  std::uint64_t bytes =
      facts.isMap      ? kMapBytes
      : facts.loadedAs ? static_cast<std::uint64_t>(sizeBytes(*facts.loadedAs))
                       : 0;
  PtxField field{.offset = static_cast<std::uint32_t>(place.offset)};
  if (!bytes || place.offset < 0 || bytes > declared.bytes ||
      field.offset > declared.bytes - bytes)
    return std::nullopt;
  if (facts.isMap) {
    field.kind = PtxField::Kind::tensor_map;
    field.rank = facts.rank;
    field.is_written = facts.isWritten;
  } else if (facts.isAddress && bytes == 8) {
    field.kind = PtxField::Kind::pointer;
    field.is_read = facts.isRead;
    field.is_written = facts.isWritten;
    settleElements(facts, entry_, field);
  } else {
    auto type = exactType(isArray(declared) ? *facts.loadedAs : declared.type);
    if (!type)
      type = exactType(*facts.loadedAs);
    field.is_type_guessed = !type;
    field.type = type.value_or(bitsType(bytes));
  }
  return field;
}

PtxParameter Tracer::describe(std::size_t index) const {
  const ptx::Variable &declared = entry_.parameters[index];
  PtxParameter result{.name = declared.name,
                      .bytes = static_cast<std::uint32_t>(declared.bytes),
                      .is_indexed = isIndexed_[index]};
  std::uint64_t end = 0;
  for (auto at = facts_.lower_bound({index, 0});
       at != facts_.end() && at->first.parameter == index; ++at) {
    auto field = fieldOf(declared, at->first, at->second);
    // A part that is read again inside another is a field already.
    if (!field || field->offset < end)
      continue;
    end = field->offset +
          (field->kind == PtxField::Kind::tensor_map ? kMapBytes
           : field->kind == PtxField::Kind::pointer
               ? 8
               : static_cast<std::uint64_t>(size_bytes(field->type)));
    result.fields.push_back(*field);
  }
  bool isMap = declared.bytes == kMapBytes && isArray(declared);
  if (result.fields.empty() && !isArray(declared))
    result.fields.push_back(
        {.type = exactType(declared.type).value_or(bitsType(declared.bytes)),
         .is_type_guessed = true});
  else if (result.fields.empty() && isMap && declared.align >= 64)
    result.fields.push_back({.kind = PtxField::Kind::tensor_map});
  isMap &= result.fields.size() == 1 &&
           result.fields[0].kind == PtxField::Kind::tensor_map;
  result.is_struct = isArray(declared) && !isMap;
  return result;
}

/// Three numbers of a directive; what it leaves out is 1.
static std::array<std::uint32_t, 3> sizesOf(const std::vector<int> &numbers) {
  std::array<std::uint32_t, 3> sizes = {1, 1, 1};
  for (std::size_t i = 0; i < numbers.size() && i < 3; ++i)
    sizes[i] = static_cast<std::uint32_t>(std::max(numbers[i], 1));
  return sizes;
}

static PtxEntry describe(const ptx::Module &module,
                         const ptx::Function &entry) {
  PtxEntry result{.name = entry.name};
  Tracer tracer(entry);
  for (std::size_t i = 0; i < entry.parameters.size(); ++i)
    result.parameters.push_back(tracer.describe(i));
  auto directive = [&](const char *name) -> const std::vector<int> * {
    auto found = entry.directives.find(name);
    return found == entry.directives.end() ? nullptr : &found->second;
  };
  if (auto *most = directive("maxntid"))
    result.block = sizesOf(*most);
  if (auto *exact = directive("reqntid")) {
    result.block = sizesOf(*exact);
    result.is_block_required = true;
  }
  if (auto *cluster = directive("reqnctapercluster"))
    result.cluster = sizesOf(*cluster);
  Reachable reachable = reachableFrom(module, entry);
  auto take = [&](const ptx::Variable &variable) {
    if (variable.space == ptx::StateSpace::shared && !variable.bytes)
      result.dynamic_smem.push_back(variable.name);
  };
  for (const ptx::Variable &variable : module.variables)
    if (reachable.variables.contains(variable.name))
      take(variable);
  for (const ptx::Function *function : reachable.functions)
    for (const ptx::Variable &variable : function->locals)
      take(variable);
  return result;
}

} // namespace kiln::sim

namespace kiln {

std::vector<PtxEntry> outline(std::string_view ptx) {
  ptx::Module module = ptx::parse(std::string(ptx));
  std::vector<PtxEntry> entries;
  for (const ptx::Function *entry : module.entries())
    entries.push_back(sim::describe(module, *entry));
  return entries;
}

} // namespace kiln
