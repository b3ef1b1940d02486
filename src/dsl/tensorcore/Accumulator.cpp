// Accumulator: the tile that wgmma adds to.
#include "dsl/tensorcore/AccumulatorState.h"
#include "dsl/tile/TileWalk.h"
#include "dsl/tensorcore/WarpProduct.h"
#include "dsl/tensorcore/WgmmaInstruction.h"
#include "kiln/language/value/control.h"
#include "kiln/language/value/math.h"
#include "kiln/language/threads/threads.h"
#include "support/Error.h"

namespace kiln {

/// Count an accumulator's registers against those its threads have.
static void takeRegisters(KernelBuilder::State &state,
                          const Accumulator &accumulator, const Where &where) {
  int limit = state.device.max_registers_per_thread;
  std::string owner = "a thread";
  int taken = accumulator.registers();
  if (state.currentRole) {
    Role &role = state.roles[*state.currentRole];
    role.accumulatorRegisters += taken;
    taken = role.accumulatorRegisters;
    if (role.registers) {
      limit = *role.registers;
      owner = fmt::format("a thread of warpgroup {}", role.first);
    }
  }
  if (taken < limit)
    return;
  std::string others;
  if (taken != accumulator.registers())
    others = fmt::format(" ({} with those before it)", taken);
  userErrorAt(where,
              "an accumulator of {}x{} takes {} registers of each "
              "thread{}, and {} has {}; split it among warpgroups",
              accumulator.rows(), accumulator.columns(),
              accumulator.registers(), others, owner, limit);
}

Accumulator::Accumulator(Type type, int rows, int columns, int instruction_n,
                         Where where)
    : state_(std::make_shared<State>(type, rows, columns,
                                     instruction_n ? instruction_n : columns)) {
  auto &state = KernelBuilder::State::current(where);
  state_->kernel = state.token;
  if (!state.multipliesByWarps())
    state.requireTensorCore(TensorCore::wgmma, "an accumulator in registers",
                            where);
  if (state.contract.threads() % 128 != 0)
    userErrorAt(where,
                "an accumulator belongs to a warpgroup of 128 threads, "
                "and kernel {} has {}",
                state.name, state.contract.threads());
  if (type != Type::f32 && type != Type::f16 && type != Type::i32)
    userErrorAt(where, "an accumulator holds f32, f16 or i32, not {}",
                name(type));
  if (rows < kInstructionRows || rows % kInstructionRows != 0)
    userErrorAt(where,
                "an accumulator of {} rows is not a multiple of the "
                "instruction's {}",
                rows, kInstructionRows);
  if (state.multipliesByWarps())
    checkWarpColumns(columns, where);
  else
    checkWgmmaColumns(type, state_->instructionN, where);
  if (columns % state_->instructionN != 0)
    userErrorAt(where,
                "an accumulator of {} columns is not covered by instructions "
                "of {}; use a multiple",
                columns, state_->instructionN);
  takeRegisters(state, *this, where);
  state_->layout = RegisterLayout::accumulator(rows, columns);
  mlir::Type word =
      type == Type::f16 ? state.builder.getI32Type() : state.lower(type);
  for (int i = 0; i < registers(); ++i)
    state_->slots.push_back(state.slot(word, where).getAsOpaquePointer());
  state_->added =
      state.slot(state.builder.getI1Type(), where).getAsOpaquePointer();
  state_->id = state.wgmma.add();
  state.accumulators.push_back(state_);
  reset(where);
}

Accumulator::~Accumulator() = default;

bool Accumulator::is_in_flight(Where where) const {
  return kernelOf(*state_, where).wgmma.isInFlight(state_->id);
}
Type Accumulator::type() const { return state_->type; }
int Accumulator::rows() const { return state_->rows; }
int Accumulator::columns() const { return state_->columns; }
int Accumulator::instruction_n() const { return state_->instructionN; }

/// Write whether the next mma adds.
static void setAdded(KernelBuilder::State &state, void *slot, bool isAdded,
                     const Where &where) {
  mlir::LLVM::StoreOp::create(state.builder, state.at(where),
                              state.constant(Type::i1, isAdded, where),
                              mlir::Value::getFromOpaquePointer(slot));
}

void Accumulator::reset(Where where) {
  auto &state = kernelOf(*state_, where);
  // mma.sync always adds.
  if (state.multipliesByWarps())
    storeRegisters(state, *state_, zeroRegisters(state, *state_, where), where);
  setAdded(state, state_->added, state.multipliesByWarps(), where);
}

/// Refuse operands that do not give the accumulator's shape.
static void checkShapes(const Accumulator &accumulator, int rowsA, int columnsA,
                        const SharedTile &b, int instructionK, Type type,
                        const Where &where) {
  if (rowsA != accumulator.rows() || b.columns() != accumulator.columns() ||
      columnsA != b.rows())
    userErrorAt(where, "{}x{} times {}x{} does not give {}x{}", rowsA, columnsA,
                b.rows(), b.columns(), accumulator.rows(),
                accumulator.columns());
  if (columnsA % instructionK != 0)
    userErrorAt(where,
                "a K of {} is not a multiple of the instruction's {} "
                "for {}",
                columnsA, instructionK, name(type));
}

/// Whether the first instruction adds, as an i32.
///
/// Whether there is something to add to is a variable of the kernel; where it
/// is known, as after a peeled first step, LLVM makes a constant of it.
static mlir::Value firstAdds(KernelBuilder::State &state,
                             const Accumulator::State &accumulator,
                             const MmaOptions &options, const Where &where) {
  mlir::Value flag;
  if (options.add) {
    if (options.add->type() != Type::i1)
      userErrorAt(where, "MmaOptions::add is an i1, not {}",
                  name(options.add->type()));
    flag = state.use(*options.add, where);
  } else {
    flag = mlir::LLVM::LoadOp::create(
        state.builder, state.at(where), state.builder.getI1Type(),
        mlir::Value::getFromOpaquePointer(accumulator.added));
  }
  setAdded(state, accumulator.added, true, where);
  return mlir::arith::ExtUIOp::create(state.builder, state.at(where),
                                      state.builder.getI32Type(), flag);
}

/// The operands of A of one instruction, at (row, k) of its tile.
using OperandAt =
    llvm::function_ref<llvm::SmallVector<mlir::Value, 4>(int row, int k)>;

/// So many steps along K are one piece of assembly: LLVM carries the registers
/// of an accumulator through fewer of them, and ptxas gives the same code. The
/// operands of more steps would be alive at once, and cost registers.
static constexpr int kStepsOfOneAsm = 4;

/// One instruction per 64 rows, instruction_n columns and 32 bytes of K.
static void issueAll(Accumulator::State &accumulator, const WgmmaShape &shape,
                     OperandAt operandA, const SharedTile &b,
                     const Where &where) {
  auto &state = kernelOf(accumulator, where);
  if (state.isOneThread)
    userErrorAt(where, "mma stands inside one_thread; all 128 threads of a "
                       "warpgroup issue it together");
  SharedOperand operandB{b, b.is_transposed()};
  checkOperand(operandB, "b", where);
  int perInstruction = shape.accumulatorRegisters();
  state.largestInstruction = std::max(state.largestInstruction, perInstruction);
  mlir::Value first = firstAdds(state, accumulator, shape.options, where);
  mlir::Value one = state.constant(Type::i32, 1, where);
  mlir::Value baseB =
      descriptorOf(state, operandB, operandB.wgmmaFields(), where);
  llvm::SmallVector<mlir::Value> registers =
      loadRegisters(state, accumulator, where);
  int done = 0; // registers of the accumulator
  for (int row = 0; row < accumulator.rows; row += kInstructionRows)
    for (int column = 0; column < accumulator.columns;
         column += accumulator.instructionN, done += perInstruction)
      for (int k = 0; k < b.rows(); k += kStepsOfOneAsm * shape.k()) {
        int steps = std::min(kStepsOfOneAsm, (b.rows() - k) / shape.k());
        llvm::SmallVector<mlir::Value> operands;
        for (int step = 0; step < steps; ++step) {
          int at = k + step * shape.k();
          operands.append(operandA(row, at));
          operands.push_back(
              stepped(state, baseB, operandB.offsetBytes(column, at), where));
        }
        operands.push_back(k == 0 ? first : one);
        if (steps > 1)
          operands.push_back(one);
        tiedAsm(state, shape.text(steps), shape.constraints(steps),
                llvm::MutableArrayRef(registers).slice(done, perInstruction),
                operands, where);
      }
  storeRegisters(state, accumulator, registers, where);
  state.wgmma.issue(accumulator.id, collectiveLine.value_or(where));
}

void Accumulator::mma(const SharedTile &a, const SharedTile &b,
                      const MmaOptions &options, Where where) {
  wgmma_fence(where);
  issue(a, b, options, where);
  wgmma_commit(where);
}

void Accumulator::issue(const SharedTile &a, const SharedTile &b,
                        const MmaOptions &options, Where where) {
  SharedOperand operandA{a, !a.is_transposed()};
  auto &state = kernelOf(*state_, where);
  if (state.multipliesByWarps()) {
    WarpProduct product(state, *state_, a.layout().type, b, options, where);
    checkShapes(*this, a.rows(), a.columns(), b, product.k(), a.layout().type,
                where);
    return product.issue(operandA);
  }
  WgmmaShape shape{.accumulator = type(),
                   .a = a.layout().type,
                   .b = b.layout().type,
                   .columns = instruction_n(),
                   .isAKMajor = operandA.isKMajor,
                   .isBKMajor = b.is_transposed(),
                   .options = options};
  checkWgmma(shape, where);
  checkShapes(*this, a.rows(), a.columns(), b, shape.k(), shape.a, where);
  checkOperand(operandA, "a", where);
  mlir::Value base =
      descriptorOf(state, operandA, operandA.wgmmaFields(), where);
  auto at = [&](int row, int k) {
    return llvm::SmallVector<mlir::Value, 4>{
        stepped(state, base, operandA.offsetBytes(row, k), where)};
  };
  issueAll(*state_, shape, at, b, where);
}

void Accumulator::mma(const RegisterTile &a, const SharedTile &b,
                      const MmaOptions &options, Where where) {
  issue(a, b, options, where);
  wgmma_commit(where);
}

void Accumulator::issue(const RegisterTile &a, const SharedTile &b,
                        const MmaOptions &options, Where where) {
  auto &state = kernelOf(*state_, where);
  WgmmaShape shape{.accumulator = type(),
                   .a = a.type(),
                   .b = b.layout().type,
                   .columns = instruction_n(),
                   .isAInRegisters = true,
                   .isBKMajor = b.is_transposed(),
                   .options = options};
  if (!state.multipliesByWarps())
    checkWgmma(shape, where);
  checkShapes(*this, a.rows(), a.columns(), b, shape.k(), shape.a, where);
  auto wanted = RegisterLayout::wgmma_operand(a.type(), a.rows(), a.columns());
  if (!(a.layout() == wanted))
    userErrorAt(where, "operand a lies in registers as {}; wgmma takes {}",
                a.layout().to_string(), wanted.to_string());
  llvm::SmallVector<mlir::Value> words = wordsOf(state, a, where);
  if (state.multipliesByWarps())
    return WarpProduct(state, *state_, a.type(), b, options, where)
        .issue(words);
  // Through the fence, so that nothing that computes them can come after it.
  tiedAsm(state, "wgmma.fence.sync.aligned;", "~{memory}", words, {}, where);
  int perInstruction = 4, perRow = a.columns() / shape.k() * perInstruction;
  auto at = [&](int row, int k) {
    int first =
        row / kInstructionRows * perRow + k / shape.k() * perInstruction;
    return llvm::SmallVector<mlir::Value, 4>(
        llvm::ArrayRef(words).slice(first, perInstruction));
  };
  issueAll(*state_, shape, at, b, where);
}

/// Refuse an element the accumulator does not have.
static void checkElement(const Accumulator &accumulator, int index,
                         const Where &where) {
  if (index < 0 || index >= accumulator.elements())
    userErrorAt(where,
                "there is no element {} in an accumulator of {}x{}, of "
                "which a thread holds {}",
                index, accumulator.rows(), accumulator.columns(),
                accumulator.elements());
}

/// The elements in `count` registers of the thread.
static std::vector<Value> elementsOf(const Accumulator::State &accumulator,
                                     int first, int count, const Where &where) {
  auto &state = kernelOf(accumulator, where);
  std::vector<Value> elements;
  for (mlir::Value word :
       loadRegisters(state, accumulator, first, count, where)) {
    if (accumulator.type != Type::f16) {
      elements.push_back(state.wrap(word, accumulator.type));
      continue;
    }
    for (const Value &half :
         unpack(At(state.wrap(word, Type::u32), where), Type::f16))
      elements.push_back(half);
  }
  return elements;
}

void Accumulator::store(const Tensor &tensor, const std::vector<At> &origin,
                        const StoreOptions &options, const ElementMap &map,
                        Where where) {
  if (tensor.shape().size() != 2 || origin.size() != 2)
    userErrorAt(where,
                "an accumulator is stored to a tensor of 2 dimensions "
                "at an origin of 2; found {} and {}",
                tensor.shape().size(), origin.size());
  auto outside = collectiveLine;
  LocationScope scope(where);
  if (is_in_flight(where))
    wait(0, {}, where);
  RegisterTile result = tile(where);
  Values elements = result.values(where);
  if (map) {
    Value row = value_of(origin[0]), column = value_of(origin[1]);
    for (std::size_t i = 0; i < elements.size(); i += 2) {
      Value r = row + At(result.row(i, where), where);
      Value c = column + At(result.column(i, where), where);
      UserCode user(outside);
      Values pair = map({elements[i], elements[i + 1]}, r, c);
      std::copy(pair.begin(), pair.end(), elements.begin() + i);
    }
  }
  RegisterTile(result.layout(), cast(elements, tensor.type(), where), where)
      .store(tensor, origin, options, where);
}

RegisterLayout Accumulator::layout() const { return *state_->layout; }

RegisterTile Accumulator::tile(Where where) const {
  checkLanded(*state_, where);
  return RegisterTile(layout(), elementsOf(*state_, 0, registers(), where),
                      where);
}

void Accumulator::start_from(const RegisterTile &tile, Where where) {
  auto &state = kernelOf(*state_, where);
  if (tile.type() != type() || !(tile.layout() == layout()))
    userErrorAt(where,
                "an accumulator of {} {} cannot start from a tile of {} {}",
                name(type()), layout().to_string(), name(tile.type()),
                tile.layout().to_string());
  checkLanded(*state_, where);
  llvm::SmallVector<mlir::Value> registers;
  Values values = tile.values(where);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type() != Type::f16)
      registers.push_back(state.use(values[i], where));
    else if (i % 2 == 0)
      registers.push_back(
          state.use(pack({values[i], values[i + 1]}, where), where));
  }
  // Nothing that computes them can move below this, and so behind the fence of
  // the multiplication.
  tiedAsm(state, "", "~{memory}", registers, {}, where);
  storeRegisters(state, *state_, registers, where);
  setAdded(state, state_->added, true, where);
}

Value Accumulator::element(int index, Where where) {
  checkElement(*this, index, where);
  checkLanded(*state_, where);
  return elementsOf(*state_, index * registers() / elements(), 1,
                    where)[type() == Type::f16 ? index % 2 : 0];
}

/// The walk over an accumulator, computed once in each block: whoever stores
/// one asks for the place of every element.
static TileWalk walkOf(Accumulator::State &accumulator, const Where &where) {
  mlir::Block *block = kernelOf(accumulator, where).builder.getInsertionBlock();
  if (accumulator.walked != block) {
    accumulator.walk.emplace(*accumulator.layout, where);
    accumulator.walked = block;
  }
  return accumulator.walk->at(where);
}

Value Accumulator::fragment_row(int index, Where where) const {
  checkElement(*this, index, where);
  return walkOf(*state_, where).row(index);
}

Value Accumulator::fragment_column(int index, Where where) const {
  checkElement(*this, index, where);
  return walkOf(*state_, where).column(index);
}

} // namespace kiln
