// MmaShapes: the table of shapes, and the fragments' layouts.
#include "sim/units/matrix/MmaShapes.h"
#include "sim/program/Lanes.h"

#include <algorithm>
#include <cstdio>

namespace kiln::sim {

using enum ptx::ScalarType;

/// Shapes by the type of A: those of sm_90 but the oldest and the sub-byte
/// ones.
struct KnownShape {
  ptx::ScalarType type;
  int m, n, k;
};
static constexpr KnownShape kShapes[] = {
    {f16, 16, 8, 8},   {f16, 16, 8, 16},  {bf16, 16, 8, 8},  {bf16, 16, 8, 16},
    {tf32, 16, 8, 4},  {tf32, 16, 8, 8},  {s8, 8, 8, 16},    {s8, 16, 8, 16},
    {s8, 16, 8, 32},   {u8, 8, 8, 16},    {u8, 16, 8, 16},   {u8, 16, 8, 32},
    {e4m3, 16, 8, 16}, {e4m3, 16, 8, 32}, {e5m2, 16, 8, 16}, {e5m2, 16, 8, 32},
    {f64, 8, 8, 4},    {f64, 16, 8, 4},   {f64, 16, 8, 8},   {f64, 16, 8, 16},
};

int MmaShape::packed() const { return registerBytes() / ptx::sizeBytes(typeA); }

int MmaShape::packedAccumulators(ptx::ScalarType type) {
  return type == f16 ? 2 : 1;
}

int MmaShape::registerBytes() const { return typeA == f64 ? 8 : 4; }

int MmaShape::registersA() const { return m * k / kLanes / packed(); }

int MmaShape::registersB() const { return k * n / kLanes / packed(); }

int MmaShape::registersOf(ptx::ScalarType accumulator) const {
  return m * n / kLanes / packedAccumulators(accumulator);
}

/// Whether B's type goes with A's: eight-bit types of a kind may be mixed.
static bool arePartners(ptx::ScalarType a, ptx::ScalarType b) {
  auto isInteger = [](ptx::ScalarType type) {
    return type == s8 || type == u8;
  };
  auto isEight = [](ptx::ScalarType type) {
    return type == e4m3 || type == e5m2;
  };
  return a == b || (isInteger(a) && isInteger(b)) || (isEight(a) && isEight(b));
}

/// Whether products of a type can be added in an accumulator of the other.
static bool isAccumulator(ptx::ScalarType operand, ptx::ScalarType type) {
  if (operand == s8 || operand == u8)
    return type == s32;
  if (operand == f64)
    return type == f64;
  bool canBeHalf = operand == f16 || operand == e4m3 || operand == e5m2;
  return type == f32 || (canBeHalf && type == f16);
}

bool parseMma(const std::vector<std::string> &modifiers, MmaShape &shape,
              std::string &why) {
  std::vector<ptx::ScalarType> types;
  for (const std::string &modifier : modifiers) {
    ptx::ScalarType type;
    if (ptx::parseScalarType(modifier, type))
      types.push_back(type);
    else if (modifier == "satfinite")
      shape.isSaturated = true;
    else if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &shape.m, &shape.n,
                         &shape.k) != 3 &&
             modifier != "sync" && modifier != "aligned" && modifier != "row" &&
             modifier != "col") {
      why = "the modifier ." + modifier;
      return false;
    }
  }
  bool isRowCol = std::adjacent_find(modifiers.begin(), modifiers.end(),
                                     [](const auto &a, const auto &b) {
                                       return a == "row" && b == "col";
                                     }) != modifiers.end();
  if (types.size() != 4 || !isRowCol) {
    why = "its layouts and types are not of the form .row.col.d.a.b.c";
    return false;
  }
  shape.typeD = types[0];
  shape.typeA = types[1];
  shape.typeB = types[2];
  shape.typeC = types[3];
  if (!arePartners(shape.typeA, shape.typeB) ||
      !isAccumulator(shape.typeA, shape.typeC) ||
      !isAccumulator(shape.typeA, shape.typeD)) {
    why = "these types do not go together";
    return false;
  }
  if (std::any_of(std::begin(kShapes), std::end(kShapes),
                  [&](const KnownShape &known) {
                    return known.type == shape.typeA && known.m == shape.m &&
                           known.n == shape.n && known.k == shape.k;
                  }))
    return true;
  why = "its shape is not known for its types";
  return false;
}

MatrixElement elementA(const MmaShape &shape, int lane, int index) {
  int packed = shape.packed(), reg = index / packed;
  int rowBlocks = shape.m / 8;
  return {lane / 4 + 8 * (reg % rowBlocks), packed * (lane % 4) +
                                                index % packed +
                                                4 * packed * (reg / rowBlocks)};
}

MatrixElement elementB(const MmaShape &shape, int lane, int index) {
  int packed = shape.packed(), reg = index / packed;
  return {packed * (lane % 4) + index % packed + 4 * packed * reg, lane / 4};
}

MatrixElement elementC(int lane, int index) {
  return {lane / 4 + 8 * (index / 2), 2 * (lane % 4) + index % 2};
}

} // namespace kiln::sim
