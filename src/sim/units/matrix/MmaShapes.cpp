// MmaShapes: the table of shapes, and the fragments' layouts.
#include "sim/units/matrix/MmaShapes.h"
#include "isa/MatrixForms.h"
#include "sim/program/Lanes.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

using enum ptx::ScalarType;

int MmaShape::packed() const { return 8 * registerBytes() / elementBits; }

int MmaShape::packedAccumulators(ptx::ScalarType type) {
  return type == f16 ? 2 : 1;
}

int MmaShape::registerBytes() const { return typeA == f64 ? 8 : 4; }

/// A quarter of the warp has a product of its own.
static int lanesOf(const MmaShape &shape) {
  return shape.isQuarters ? kLanes / 4 : kLanes;
}

int MmaShape::registersA() const {
  return m * columnsA() / lanesOf(*this) / packed();
}

int MmaShape::registersB() const { return k * n / lanesOf(*this) / packed(); }

int MmaShape::registersOf(ptx::ScalarType accumulator) const {
  return m * n / lanesOf(*this) / packedAccumulators(accumulator);
}

int MmaShape::lastSelector() const {
  // Words that the groups of two rows fill, of the four of a quad.
  int words = 2 * (k / groupColumns()) * 4 / 32;
  return 4 / words - 1;
}

bool MmaShape::isPlain() const {
  bool isNarrow = elementBits < 8 || (typeA >= e2m3 && typeA <= e2m1) ||
                  (typeB >= e2m3 && typeB <= e2m1);
  return !isSparse && !scales && !isQuarters && !isNarrow;
}

/// Bits that an element takes: a byte for 6 and for 4 bits, where the kind has
/// both.
static int bitsOf(ptx::ScalarType type, const std::string &kind) {
  if (type == s4 || type == u4 || kind.starts_with("mxf4"))
    return 4;
  return type == b1 ? 1 : 8 * ptx::sizeBytes(type);
}

namespace {
/// The modifiers of an instruction, sorted.
struct MmaWords {
  std::vector<ptx::ScalarType> types;
  std::string shape, kind, layout;
  int scales = 0;
  bool hasScales = false;
};
} // namespace

static bool readWords(const std::vector<std::string> &modifiers,
                      MmaShape &shape, MmaWords &words, std::string &why) {
  static constexpr const char *kIgnored[] = {"sync", "aligned", "popc", "and",
                                             "rn"};
  for (const std::string &modifier : modifiers) {
    ptx::ScalarType type;
    if (ptx::parseScalarType(modifier, type))
      words.types.push_back(type);
    else if (modifier == "satfinite")
      shape.isSaturated = true;
    else if (modifier == "xor")
      shape.isExclusive = true;
    else if (modifier == "sp" || modifier == "sp::ordered_metadata")
      shape.isSparse = true;
    else if (modifier == "block_scale")
      words.hasScales = true;
    else if (modifier.starts_with("scale_vec::"))
      words.scales = modifier.at(11) - '0';
    else if (modifier.starts_with("kind::"))
      words.kind = modifier.substr(6);
    else if (modifier == "row" || modifier == "col")
      words.layout += modifier;
    else if (isa::readMatrixSizes(modifier))
      words.shape = modifier;
    else if (std::find(std::begin(kIgnored), std::end(kIgnored), modifier) ==
             std::end(kIgnored)) {
      why = "the modifier ." + modifier;
      return false;
    }
  }
  return true;
}

/// The scales of a kind that has them; not every type has every number.
static bool readScales(const isa::MatrixForm &form, const MmaWords &words,
                       MmaShape &shape, std::string &why) {
  if (form.scales.empty() && !words.hasScales)
    return true;
  if (form.scales.empty() || !words.hasScales || words.types.size() != 5) {
    why = "a kind with block scales takes .block_scale and the type of its "
          "scales, and no other does";
    return false;
  }
  shape.scaleType = words.types[4];
  shape.scales = words.scales ? words.scales : words.kind == "mxf4" ? 2 : 1;
  if (form.hasScales(ptx::name(shape.scaleType), shape.scales))
    return true;
  why = fmt::format("{} scales of type {} for a row; the kind takes {}",
                    shape.scales, ptx::name(shape.scaleType), form.scales);
  return false;
}

bool parseMma(const std::vector<std::string> &modifiers, MmaShape &shape,
              std::string &why) {
  MmaWords words;
  if (!readWords(modifiers, shape, words, why))
    return false;
  if (words.types.size() < 4 || words.layout.size() != 6 ||
      words.types.size() > (words.hasScales ? 5 : 4)) {
    why = "its layouts and types are not of the form .row.col.d.a.b.c";
    return false;
  }
  shape.typeD = words.types[0];
  shape.typeA = words.types[1];
  shape.typeB = words.types[2];
  shape.typeC = words.types[3];
  const isa::MatrixForm *form = isa::findMatrixForm(
      shape.isSparse ? "mma.sp" : "mma", words.kind, ptx::name(shape.typeA),
      ptx::name(shape.typeB));
  if (!form || !form->hasSum(ptx::name(shape.typeC)) ||
      !form->hasSum(ptx::name(shape.typeD))) {
    why = "these types do not go together";
    return false;
  }
  std::optional<isa::MatrixSizes> sizes = isa::readMatrixSizes(words.shape);
  if (!sizes || !form->hasShape(words.shape)) {
    why = fmt::format("its shape is not known for its types; there is {}",
                      form->shapes);
    return false;
  }
  shape.m = sizes->m;
  shape.n = sizes->n;
  shape.k = sizes->k;
  shape.elementBits = bitsOf(shape.typeA, words.kind);
  shape.isQuarters = shape.typeA == f16 && shape.k == 4;
  shape.isARowMajor = words.layout.starts_with("row");
  shape.isBColumnMajor = words.layout.ends_with("col");
  if (!shape.isQuarters && words.layout != "rowcol") {
    why = "A is row-major and B column-major (.row.col)";
    return false;
  }
  return readScales(*form, words, shape, why);
}

/// Which of the four products a lane has part in, and which four of its eight
/// rows or columns.
static MatrixElement inQuarter(int lane, int line, int index) {
  return {line + (lane < 16 ? 0 : 4), index, lane % 16 / 4};
}

static MatrixElement swapped(const MatrixElement &at) {
  return {at.column, at.row, at.quarter};
}

static MatrixElement quarterA(const MmaShape &shape, int lane, int index) {
  return shape.isARowMajor ? inQuarter(lane, lane % 4, index)
                           : inQuarter(lane, index, lane % 4);
}

static MatrixElement quarterB(const MmaShape &shape, int lane, int index) {
  return swapped(shape.isBColumnMajor ? inQuarter(lane, lane % 4, index)
                                      : inQuarter(lane, index, lane % 4));
}

MatrixElement elementA(const MmaShape &shape, int lane, int index) {
  if (shape.isQuarters)
    return quarterA(shape, lane, index);
  int packed = shape.packed(), reg = index / packed;
  int rowBlocks = shape.m / 8;
  return {lane / 4 + 8 * (reg % rowBlocks), packed * (lane % 4) +
                                                index % packed +
                                                4 * packed * (reg / rowBlocks)};
}

MatrixElement elementB(const MmaShape &shape, int lane, int index) {
  if (shape.isQuarters)
    return quarterB(shape, lane, index);
  int packed = shape.packed(), reg = index / packed;
  return {packed * (lane % 4) + index % packed + 4 * packed * reg, lane / 4};
}

MatrixElement elementC(int lane, int index) {
  return {lane / 4 + 8 * (index / 2), 2 * (lane % 4) + index % 2};
}

MatrixElement elementC(const MmaShape &shape, int lane, int index) {
  if (!shape.isQuarters)
    return elementC(lane, index);
  if (shape.typeC == f16)
    return inQuarter(lane, lane % 4, index);
  return inQuarter(lane, (lane & 1) + (index & 2),
                   (index & 4) + (lane & 2) + (index & 1));
}

} // namespace kiln::sim
