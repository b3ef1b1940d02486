// Wgmma: the accumulator, and the instruction that feeds it.
//
// The instruction is inline assembly whose accumulator registers are tied in
// and out, so that LLVM sees one chain of values and ptxas one set of
// registers. Between the first mma and the wait that covers it LLVM must not
// touch them: every wait takes all of them in and gives them back, and nothing
// that uses an accumulator can be scheduled above it.
#include "kiln/wgmma.h"
#include "dsl/Fragment.h"
#include "dsl/State.h"
#include "kiln/control.h"
#include "kiln/threads.h"
#include "support/Error.h"

namespace kiln {

namespace {
/// What the instruction is called for an operand type.
struct OperandKind {
  Type type;
  const char *ptx;
  Type accumulator;
  bool hasMnMajor; ///< the instruction can transpose it
};
} // namespace

static constexpr OperandKind kOperandKinds[] = {
    {Type::f16, "f16", Type::f32, true},
    {Type::bf16, "bf16", Type::f32, true},
    {Type::tf32, "tf32", Type::f32, false},
    {Type::e4m3, "e4m3", Type::f32, false},
    {Type::e5m2, "e5m2", Type::f32, false},
    {Type::i8, "s8", Type::i32, false},
    {Type::u8, "u8", Type::i32, false},
};

/// Bytes of K that one instruction consumes, for every type.
static constexpr int kInstructionKBytes = 32;
static constexpr int kInstructionRows = 64;

static const OperandKind &kindOf(Type type, const std::source_location &where) {
  for (const OperandKind &kind : kOperandKinds)
    if (kind.type == type)
      return kind;
  userErrorAt(where,
              "wgmma has no operands of type {}; it takes f16, bf16, "
              "tf32, e4m3, e5m2, i8 and u8",
              name(type));
}

namespace {
/// One operand in shared memory, as the instruction's descriptor says it.
///
/// K-major (the K extent is contiguous): rows of one swizzle width, eight rows
/// form an atom, `stride` bytes from one atom to the next.
/// MN-major: the M or N extent is contiguous; an atom is one swizzle width of
/// it by eight k; `stride` bytes to the next eight k, `leading` bytes to the
/// next width.
struct Operand {
  const SharedTile &tile;
  bool isKMajor;

  const TileLayout &layout() const { return tile.layout(); }
  int leadingBytes() const { return isKMajor ? 16 : layout().panel_bytes(); }
  int strideBytes() const { return 8 * layout().row_bytes(); }

  /// Bytes from the start of the tile to element (mn, k), both multiples of
  /// what an instruction covers.
  int offsetBytes(int mn, int k) const {
    const TileLayout &tile = layout();
    int row = isKMajor ? mn : k, column = isKMajor ? k : mn;
    int panel = column / tile.panel_columns();
    return panel * tile.panel_bytes() + row * tile.row_bytes() +
           column % tile.panel_columns() * size_bytes(tile.type);
  }

  /// All fields but the address (PTX, "Matrix Descriptor Format").
  std::uint64_t constantFields() const {
    auto field = [](int bytes) { return std::uint64_t(bytes & 0x3ffff) >> 4; };
    std::uint64_t mode = 0;
    switch (layout().swizzle) {
    case Swizzle::b128:
      mode = 1;
      break;
    case Swizzle::b64:
      mode = 2;
      break;
    case Swizzle::b32:
      mode = 3;
      break;
    case Swizzle::none:
      break;
    }
    return field(leadingBytes()) << 16 | field(strideBytes()) << 32 |
           mode << 62;
  }
};
} // namespace

/// The descriptor of an operand's first element.
static mlir::Value descriptorOf(KernelBuilder::State &state,
                                const Operand &operand,
                                const std::source_location &where) {
  mlir::Location loc = state.at(where);
  mlir::OpBuilder &b = state.builder;
  mlir::Value address = mlir::LLVM::PtrToIntOp::create(
      b, loc, b.getI64Type(), state.use(operand.tile.address(), where));
  mlir::Value low = mlir::arith::AndIOp::create(
      b, loc, address, state.constant(Type::i64, 0x3ffff, where));
  low = mlir::arith::ShRUIOp::create(b, loc, low,
                                     state.constant(Type::i64, 4, where));
  return mlir::arith::OrIOp::create(
      b, loc, low,
      state.constant(Type::i64,
                     static_cast<std::int64_t>(operand.constantFields()),
                     where));
}

/// "{$0, $1, ...}" for `count` registers.
static std::string registerList(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}${}", i ? ", " : "", i);
  return text + "}";
}

/// "=f,=f,...,0,1,...": `count` registers that go in and come out.
static std::string tiedConstraints(int count, char letter) {
  std::string outputs, inputs;
  for (int i = 0; i < count; ++i) {
    outputs += fmt::format("={},", letter);
    inputs += fmt::format("{},", i);
  }
  return outputs + inputs;
}

/// Inline assembly over tied registers: `registers` is replaced by what comes
/// out.
static void tiedAsm(KernelBuilder::State &state, const std::string &text,
                    Type type, const std::string &moreConstraints,
                    llvm::MutableArrayRef<mlir::Value> registers,
                    llvm::ArrayRef<mlir::Value> moreOperands,
                    const std::source_location &where) {
  int count = static_cast<int>(registers.size());
  llvm::SmallVector<mlir::Value> operands(registers.begin(), registers.end());
  operands.append(moreOperands.begin(), moreOperands.end());
  llvm::SmallVector<mlir::Type> types(count, state.lower(type));
  mlir::Type result =
      count == 1
          ? types[0]
          : mlir::LLVM::LLVMStructType::getLiteral(state.context.get(), types);
  char letter = is_float(type) ? 'f' : 'r';
  mlir::Value out =
      state.inlineAsm(text, tiedConstraints(count, letter) + moreConstraints,
                      operands, result, where);
  for (int i = 0; i < count; ++i)
    registers[i] = mlir::LLVM::ExtractValueOp::create(
        state.builder, state.at(where), out, llvm::ArrayRef<std::int64_t>{i});
}

/// A word of the wgmma protocol without operands.
static void plainAsm(KernelBuilder::State &state, const char *text,
                     const std::source_location &where) {
  state.inlineAsm(text, "~{memory}", {}, nullptr, where);
}

Accumulator::Accumulator(Type type, int rows, int columns,
                         std::source_location where)
    : type_(type), rows_(rows), columns_(columns) {
  auto &state = KernelBuilder::State::current(where);
  kernel_ = state.token;
  if (state.contract.threads() % 128 != 0)
    userErrorAt(where,
                "an accumulator belongs to a warpgroup of 128 threads, "
                "and kernel {} has {}",
                state.name, state.contract.threads());
  if (type != Type::f32 && type != Type::i32)
    userErrorAt(where, "an accumulator holds f32 or i32, not {}", name(type));
  if (rows < kInstructionRows || rows % kInstructionRows != 0)
    userErrorAt(where,
                "an accumulator of {} rows is not a multiple of the "
                "instruction's {}",
                rows, kInstructionRows);
  if (columns < 8 || columns > 256 || columns % 8 != 0)
    userErrorAt(where,
                "an accumulator of {} columns; wgmma takes multiples of "
                "8 from 8 to 256",
                columns);
  int limit = state.device.max_registers_per_thread;
  if (registers() >= limit)
    userErrorAt(where,
                "an accumulator of {}x{} takes {} registers of each "
                "thread, and a thread has {}; split it among warpgroups",
                rows, columns, registers(), limit);
  for (int i = 0; i < registers(); ++i)
    slots_.push_back(state.slot(state.lower(type), where).getAsOpaquePointer());
  added_ = state.slot(state.builder.getI1Type(), where).getAsOpaquePointer();
  reset(where);
}

/// Write whether the next mma adds.
static void setAdded(KernelBuilder::State &state, void *slot, bool isAdded,
                     const std::source_location &where) {
  mlir::LLVM::StoreOp::create(state.builder, state.at(where),
                              state.constant(Type::i1, isAdded, where),
                              mlir::Value::getFromOpaquePointer(slot));
}

/// Refuse an accumulator of another kernel.
static void checkOwner(const KernelBuilder::State &state, const void *kernel,
                       const std::source_location &where) {
  if (kernel != state.token)
    userErrorAt(where, "this Accumulator belongs to another kernel than {}",
                state.name);
}

void Accumulator::reset(std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  checkOwner(state, kernel_, where);
  setAdded(state, added_, false, where);
}

/// Read the variables of an accumulator.
static llvm::SmallVector<mlir::Value>
loadAll(KernelBuilder::State &state, const std::vector<void *> &slots,
        Type type, const std::source_location &where) {
  llvm::SmallVector<mlir::Value> values;
  for (void *slot : slots)
    values.push_back(mlir::LLVM::LoadOp::create(
        state.builder, state.at(where), state.lower(type),
        mlir::Value::getFromOpaquePointer(slot)));
  return values;
}

static void storeAll(KernelBuilder::State &state,
                     const std::vector<void *> &slots,
                     llvm::ArrayRef<mlir::Value> values,
                     const std::source_location &where) {
  for (auto [slot, value] : llvm::zip_equal(slots, values))
    mlir::LLVM::StoreOp::create(state.builder, state.at(where), value,
                                mlir::Value::getFromOpaquePointer(slot));
}

/// Refuse operands the instruction cannot take.
static void checkOperands(const Accumulator &accumulator, const SharedTile &a,
                          const SharedTile &b, const Operand &operandA,
                          const Operand &operandB,
                          const std::source_location &where) {
  const OperandKind &kindA = kindOf(a.layout().type, where);
  const OperandKind &kindB = kindOf(b.layout().type, where);
  bool isEightBitFloat = kindA.type == Type::e4m3 || kindA.type == Type::e5m2;
  bool isMixable =
      isEightBitFloat ? kindB.type == Type::e4m3 || kindB.type == Type::e5m2
      : kindA.accumulator == Type::i32 ? kindB.accumulator == Type::i32
                                       : kindA.type == kindB.type;
  if (!isMixable)
    userErrorAt(where, "wgmma cannot multiply {} by {}", name(kindA.type),
                name(kindB.type));
  if (kindA.accumulator != accumulator.type())
    userErrorAt(where, "wgmma of {} accumulates in {}, not in {}",
                name(kindA.type), name(kindA.accumulator),
                name(accumulator.type()));
  if (a.rows() != accumulator.rows() || b.columns() != accumulator.columns() ||
      a.columns() != b.rows())
    userErrorAt(where, "{}x{} times {}x{} does not give {}x{}", a.rows(),
                a.columns(), b.rows(), b.columns(), accumulator.rows(),
                accumulator.columns());
  int instructionK = kInstructionKBytes / size_bytes(kindA.type);
  if (a.columns() % instructionK != 0)
    userErrorAt(where,
                "a K of {} is not a multiple of the instruction's {} "
                "for {}",
                a.columns(), instructionK, name(kindA.type));
  for (const auto *operand : {&operandA, &operandB}) {
    const OperandKind &kind = operand == &operandA ? kindA : kindB;
    const char *which = operand == &operandA ? "a" : "b";
    if (!operand->isKMajor && !kind.hasMnMajor)
      userErrorAt(where,
                  "operand {} of type {} is not K-major; on sm_90 only "
                  "f16 and bf16 can be: store it with K contiguous",
                  which, name(kind.type));
    if (operand->layout().swizzle == Swizzle::none)
      userErrorAt(where,
                  "operand {} lies in shared memory without a swizzle "
                  "({}); give its tile swizzle 32, 64 or 128",
                  which, operand->layout().to_string());
  }
}

void Accumulator::mma(const SharedTile &a, const SharedTile &b,
                      std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  checkOwner(state, kernel_, where);
  Operand operandA{a, !a.is_transposed()}, operandB{b, b.is_transposed()};
  checkOperands(*this, a, b, operandA, operandB, where);
  if (state.isOneThread)
    userErrorAt(where, "mma stands inside one_thread; all 128 threads of a "
                       "warpgroup issue it together");
  const OperandKind &kindA = kindOf(a.layout().type, where);
  const OperandKind &kindB = kindOf(b.layout().type, where);
  int instructionK = kInstructionKBytes / size_bytes(kindA.type);
  int perBlock = columns_ / 2; // registers of 64 rows
  bool isInteger = type_ == Type::i32;

  // Transposition exists for the 16-bit types only; integers have no signs.
  std::string tail = isInteger ? ";" : ", 1, 1";
  if (kindA.hasMnMajor)
    tail += fmt::format(", {}, {}", operandA.isKMajor ? 0 : 1,
                        operandB.isKMajor ? 0 : 1);
  if (!isInteger)
    tail += ";";
  std::string text =
      fmt::format("{{\n.reg .pred added;\nsetp.ne.b32 added, ${}, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}, ${}, "
                  "${}, added{}\n}}",
                  2 * perBlock + 2, columns_, instructionK,
                  isInteger ? "s32" : "f32", kindA.ptx, kindB.ptx,
                  registerList(perBlock), 2 * perBlock, 2 * perBlock + 1, tail);

  // Whether there is something to add to is a variable of the kernel; where
  // it is known, as after a peeled first step, LLVM makes a constant of it.
  mlir::Value one = state.constant(Type::i32, 1, where);
  mlir::Value flag = mlir::LLVM::LoadOp::create(
      state.builder, state.at(where), state.builder.getI1Type(),
      mlir::Value::getFromOpaquePointer(added_));
  mlir::Value firstAdds = mlir::arith::ExtUIOp::create(
      state.builder, state.at(where), state.builder.getI32Type(), flag);
  setAdded(state, added_, true, where);
  state.largestInstruction = std::max(state.largestInstruction, perBlock);

  llvm::SmallVector<mlir::Value> registers =
      loadAll(state, slots_, type_, where);
  mlir::Value baseA = descriptorOf(state, operandA, where);
  mlir::Value baseB = descriptorOf(state, operandB, where);
  auto stepped = [&](mlir::Value base, int bytes) -> mlir::Value {
    if (bytes == 0)
      return base;
    return mlir::arith::AddIOp::create(
        state.builder, state.at(where), base,
        state.constant(Type::i64, bytes >> 4, where));
  };
  plainAsm(state, "wgmma.fence.sync.aligned;", where);
  for (int row = 0; row < rows_; row += kInstructionRows)
    for (int k = 0; k < a.columns(); k += instructionK)
      tiedAsm(state, text, type_, "l,l,r",
              llvm::MutableArrayRef(registers).slice(
                  row / kInstructionRows * perBlock, perBlock),
              {stepped(baseA, operandA.offsetBytes(row, k)),
               stepped(baseB, operandB.offsetBytes(0, k)),
               k == 0 ? firstAdds : one},
              where);
  plainAsm(state, "wgmma.commit_group.sync.aligned;", where);
  storeAll(state, slots_, registers, where);
  is_in_flight_ = true;
}

void Accumulator::wait(int groups, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  checkOwner(state, kernel_, where);
  if (groups < 0 || groups > 7)
    userErrorAt(where, "wgmma.wait_group takes 0 to 7 groups, not {}", groups);
  llvm::SmallVector<mlir::Value> registers =
      loadAll(state, slots_, type_, where);
  tiedAsm(state, fmt::format("wgmma.wait_group.sync.aligned {};", groups),
          type_, "~{memory}", registers, {}, where);
  storeAll(state, slots_, registers, where);
  if (groups == 0)
    is_in_flight_ = false;
}

/// Refuse a register the accumulator does not have.
static void checkRegister(const Accumulator &accumulator, int index,
                          const std::source_location &where) {
  if (index < 0 || index >= accumulator.registers())
    userErrorAt(where,
                "there is no register {} in an accumulator of {}x{}, of "
                "which a thread holds {}",
                index, accumulator.rows(), accumulator.columns(),
                accumulator.registers());
}

void Accumulator::store(const Tensor &tensor, const std::vector<At> &origin,
                        const StoreOptions &options,
                        std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  if (tensor.shape().size() != 2 || origin.size() != 2)
    userErrorAt(where,
                "an accumulator is stored to a tensor of 2 dimensions "
                "at an origin of 2; found {} and {}",
                tensor.shape().size(), origin.size());
  checkOwner(state, kernel_, where);
  if (is_in_flight_)
    wait(0, where);
  LocationScope scope(where);
  llvm::SmallVector<mlir::Value> registers =
      loadAll(state, slots_, type_, where);
  auto valueOf = [&](int i) {
    return cast(state.wrap(registers[i], type_), tensor.type());
  };
  // Two neighbours go out in one store where every pair begins on an even
  // element.
  auto *literal = std::get_if<std::int64_t>(&origin[1].operand());
  bool isEven = literal ? *literal % 2 == 0 : options.column_multiple % 2 == 0;
  const Dim &width = tensor.shape()[1];
  const Dim &stride = tensor.strides()[0];
  bool isPaired = isEven && tensor.strides()[1] == Dim(1) &&
                  width.is_constant() && width.constant() % 2 == 0 &&
                  stride.is_constant() && stride.constant() % 2 == 0;
  Value firstRow = value_of(origin[0]), firstColumn = value_of(origin[1]);
  Fragment fragment(rows_, columns_, where);
  auto storePair = [&](const Value &row, const Value &left, int i) {
    auto write = [&](int count, int shift) {
      std::vector<Value> values;
      for (int j = 0; j < count; ++j)
        values.push_back(valueOf(i + shift + j));
      tensor.store_vector({row, left + shift}, values);
    };
    if (isPaired && options.is_inside)
      return write(2, 0);
    if (isPaired)
      return if_(left < width, [&] { write(2, 0); });
    for (int shift : {0, 1}) {
      if (options.is_inside)
        write(1, shift);
      else
        if_(left + shift < width, [&] { write(1, shift); });
    }
  };
  fragment.forEachRow([&](const Value &inTile, int first) {
    Value row = inTile + firstRow;
    auto storeRow = [&] {
      fragment.forEachPair(first, [&](const Value &column, int i) {
        storePair(row, column + firstColumn, i);
      });
    };
    if (options.is_inside)
      storeRow();
    else
      if_(row < tensor.shape()[0], storeRow);
  });
}

Value Accumulator::element(int index, std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  checkOwner(state, kernel_, where);
  checkRegister(*this, index, where);
  if (is_in_flight_)
    wait(0, where);
  mlir::Value value = mlir::LLVM::LoadOp::create(
      state.builder, state.at(where), state.lower(type_),
      mlir::Value::getFromOpaquePointer(slots_[index]));
  return state.wrap(value, type_);
}

Value Accumulator::fragment_row(int index, std::source_location where) const {
  checkRegister(*this, index, where);
  return Fragment(rows_, columns_, where).row(index);
}

Value Accumulator::fragment_column(int index,
                                   std::source_location where) const {
  checkRegister(*this, index, where);
  return Fragment(rows_, columns_, where).column(index);
}

} // namespace kiln
