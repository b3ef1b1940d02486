// State: the kernel under construction, for the files of this room.
//
// Everything the language does ends in a call of the MLIR builder held here.
// User lambdas are run by our own code, never inside an MLIR callback: they may
// throw, and MLIR's frames cannot be unwound.
#pragma once

#include "dsl/kernel/LocationScope.h"
#include "dsl/tensorcore/WgmmaGroups.h"
#include "kiln/language/builder.h"
#include "kiln/run/device_description.h"
#include "kiln/language/threads/threads.h"
#include "kiln/language/tensorcore/wgmma.h"
#include "lower/MemoryNeed.h"
#include "lower/Module.h"
#include "support/Make.h"

#include <functional>
#include <map>
#include <optional>

namespace kiln {

/// The role of one or more warpgroups, with a register budget.
struct Role {
  int first, count;
  std::optional<int> registers;
  SourceLine where;
  mlir::Operation *setRegisters = nullptr; ///< nvvm.setmaxregister
  int accumulatorRegisters = 0; ///< of each thread, for the role's budget
};

/// One piece of shared memory.
struct SmemAllocation {
  std::string what;
  std::string name; ///< that findings say
  int elementBytes; ///< of one of them
  int count;
  int offset = 0;
  SourceLine where = {};
  void *address = nullptr; ///< the value its tile has
  bool isBarriers = false;

  int bytes() const { return elementBytes * count; }
  bool overlaps(int from, int size) const {
    return from < offset + bytes() && offset < from + size;
  }
};

/// What happened to the barriers of one allocation, for the check at the end.
struct BarrierUse {
  SourceLine where;
  SourceLine firstWait;
  bool hasArrive = false;
  bool hasInit = false;
};

/// Named barriers that were handed out together.
struct NamedBarrierUse {
  std::string what;
  int count;
  SourceLine where;
};

/// The tensor memory of the kernel, and what frees it.
struct TensorMemoryUse {
  SourceLine where;
  std::function<void()> free;
};

class KernelBuilder::State {
public:
  State(std::string name, const KernelOptions &options, const Where &where);
  ~State();

  /// The kernel of this thread. Throws UserError where there is none.
  static State &current(const Where &where);
  /// The same, and it must not have been built.
  void checkOpen(const Where &where) const;

  // Locations and values.
  mlir::Location at(const Where &where);
  mlir::Type lower(Type type);
  mlir::Type pointer(int addressSpace);
  Value wrap(mlir::Value value, Type type) {
    return Make::a<Value>(value.getAsOpaquePointer(), token, type);
  }
  /// The MLIR value, checked: of this kernel, and visible here.
  mlir::Value use(const Value &value, const Where &where);
  /// Any operand as a value of `type`; a Value must have it already.
  mlir::Value use(const At &operand, Type type);
  /// Any operand; literals and Dims take `fallback`.
  Value resolve(const At &operand, Type fallback);
  mlir::Value constant(Type type, std::int64_t value, const Where &where);
  /// A constant of the entry block; the same one for the same value.
  mlir::Value constant(mlir::TypedAttr value, const Where &where);
  mlir::Value dimValue(const Dim &dim, Type type, const Where &where);
  /// A variable in registers: an alloca of the entry block.
  mlir::Value slot(mlir::Type type, const Where &where);
  /// A u64 as a pointer into global memory.
  mlir::Value globalPointer(const At &address, const Where &where);
  /// `address` moved by `bytes`.
  mlir::Value offset(mlir::Value address, mlir::Value bytes,
                     const Where &where);

  /// Inline assembly with side effects, guarded inside `predicated`; `result`
  /// null: it gives nothing.
  mlir::Value inlineAsm(const std::string &text, const std::string &constraints,
                        mlir::ValueRange operands, mlir::Type result,
                        const Where &where);
  /// The same for an instruction that only computes `result`.
  mlir::Value pureAsm(const std::string &text, const std::string &constraints,
                      mlir::ValueRange operands, mlir::Type result,
                      const Where &where);

  // Buffers of the contract, by Element::argument; others are nobody's.
  void markWritten(int argument);
  /// It begins on a multiple of so many bytes.
  void needAlignment(int argument, int bytes);
  /// What messages call it.
  std::string bufferName(int argument) const;

  // Shared memory.
  mlir::Value allocateSmem(SmemAllocation piece, int alignment,
                           const SharedOptions &options, const Where &where);
  /// Where a new piece may begin.
  int placeSmem(const SmemAllocation &piece, int alignment,
                const SharedOptions &options, const Where &where) const;

  /// The first of so many named barriers that nobody has; `what` asks for them.
  int takeNamedBarriers(int count, const std::string &what, const Where &where);
  /// That of warpgroup 0; those of the others follow it.
  int warpgroupBarriers(const Where &where);
  /// Whether the kernel's target has an instruction: "elect.sync".
  bool has(std::string_view instruction) const {
    return device.has(instruction);
  }
  /// Whether accumulators are multiplied by the warps of a warpgroup, each for
  /// its rows (mma.sync), and not by all of them together (wgmma).
  bool multipliesByWarps() const {
    return device.tensor_core == TensorCore::mma;
  }
  /// Refuse what only another tensor core has; `what` needs it.
  void requireTensorCore(TensorCore core, const char *what,
                         const Where &where) const;

  // Clusters (Cluster.cpp).
  void setCluster();
  int clusterCtas() const;
  /// CTAs of the cluster as bits, an i16; a literal is checked.
  mlir::Value ctaMask(const At &mask, const Where &where);
  /// The address of the same shared memory in CTA `rank` of the cluster.
  mlir::Value remoteAddress(mlir::Value address, const At &rank,
                            const Where &where);

  // Arguments.
  int addArgument(ArgumentSpec spec, const Where &where);
  mlir::Value addParameter(ParameterSpec spec, mlir::Type type,
                           const Where &where);

  /// Close the kernel: checks, attributes, verification.
  Module finish(const Where &where);

  MemoryNeed memoryNeed; ///< MLIR's frames are all around
  /// Tells this kernel from every other, also from one that is gone.
  const void *token;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::gpu::GPUModuleOp gpuModule;
  mlir::LLVM::LLVMFuncOp function;
  mlir::Block *entry = nullptr;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;

  std::string name;
  KernelOptions options;
  const DeviceDescription &device;
  SourceLine where;
  LaunchContract contract;
  std::map<std::string, mlir::Value> dimArguments;
  std::vector<bool> isTensorMap; ///< per parameter
  std::vector<SmemAllocation> smem;
  int smemBytes = 0;
  std::vector<Role> roles;
  std::vector<BarrierUse> barriers;
  /// Who has the named barriers, from 1 on: how many, what, where.
  std::vector<NamedBarrierUse> namedBarriers;
  int firstWarpgroupBarrier = 0; ///< 0: nobody has asked for them
  std::optional<TensorMemoryUse> tensorMemory;
  std::optional<std::size_t> currentRole; ///< in `roles`
  mlir::Value predicate;                  ///< of `predicated`; null outside
  bool isOneThread = false;
  WgmmaGroups wgmma; ///< the products in flight here
  /// By WgmmaGroups::Id; a C++ variable may be gone before its kernel.
  std::vector<std::weak_ptr<Accumulator::State>> accumulators;
  /// Registers of the largest wgmma: ptxas wants them at entry already.
  int largestInstruction = 0;
  bool isBuilt = false;
};

/// An instruction with its predicate in front (Predicate.cpp).
struct GuardedAsm {
  std::string text, constraints;
  llvm::SmallVector<mlir::Value> operands;
};
GuardedAsm guardAsm(KernelBuilder::State &state, const std::string &text,
                    const std::string &constraints, mlir::ValueRange operands,
                    mlir::Type result, const Where &where);

/// Floats of 8 bits and less, which travel as their bits.
inline bool isEightBitFloat(Type type) {
  return is_float(type) && size_bits(type) <= 8;
}

/// Refuse addresses and eight-bit floats, which are carried and not computed
/// with; `what` is the operation (Values.cpp).
void checkArithmetic(const Value &value, mlir::Value mlirValue,
                     const char *what, const Where &where);

/// Refuse a copy with these operands that every thread here would issue alike;
/// `what` copies (IssuedOnce.cpp).
void requireOneThread(KernelBuilder::State &state, const char *what,
                      mlir::ValueRange operands, const Where &where);

/// Refuse an accumulator that is used in a loop while the product of the turn
/// before may be in flight; at the end of its body (WgmmaProtocol.cpp).
void checkTurns(KernelBuilder::State &state, const WgmmaGroups::Loop &loop);

// Checks of a finished kernel (Checks.cpp); each throws UserError.
void checkRegisterPlan(KernelBuilder::State &state);
void checkSharedMemory(const KernelBuilder::State &state);
void checkBarriers(const KernelBuilder::State &state);
void checkDims(const KernelBuilder::State &state);
void checkGrid(const KernelBuilder::State &state);
/// Whether the grid is whole clusters, where it is known (Cluster.cpp).
void checkCluster(const KernelBuilder::State &state);

} // namespace kiln
