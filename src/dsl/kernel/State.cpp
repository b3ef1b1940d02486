// State: values, locations and memory of the kernel under construction.
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include <atomic>

namespace kiln {

/// The kernels of this thread; the newest one is under construction.
static thread_local std::vector<KernelBuilder::State *> openStates;

/// A pointer no other kernel ever has; nothing lies behind it.
static const void *freshToken() {
  static std::atomic<std::uintptr_t> count{0};
  return reinterpret_cast<const void *>(++count);
}

static constexpr const char *kSmemSymbol = "kiln_smem";
static constexpr int kSmemAlignment = 1024;

/// PTX identifiers: what an entry may be called.
static bool isIdentifier(const std::string &name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])))
    return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  });
}

/// The number of threads the options ask for.
static int threadsOf(const KernelOptions &options, const std::string &name,
                     const DeviceDescription &device, const SourceLine &where) {
  if (options.threads < 0 || options.warpgroups < 0)
    userErrorAt(where,
                "kernel {} has {} threads and {} warpgroups; neither "
                "may be negative",
                name, options.threads, options.warpgroups);
  int fromGroups = options.warpgroups * 128;
  if (options.threads && fromGroups && options.threads != fromGroups)
    userErrorAt(where,
                "kernel {} has {} threads and {} warpgroups, which are "
                "{} threads; give one of the two",
                name, options.threads, options.warpgroups, fromGroups);
  int threads = options.threads ? options.threads : fromGroups;
  if (threads < 1 || threads > device.max_threads_per_cta)
    userErrorAt(where,
                "kernel {} has {} threads per CTA; {} takes 1 to {} "
                "(KernelOptions::threads or warpgroups)",
                name, threads, options.target, device.max_threads_per_cta);
  return threads;
}

KernelBuilder::State::State(std::string kernelName,
                            const KernelOptions &kernelOptions,
                            const Where &location)
    : token(freshToken()), context(makeContext()), builder(context.get()),
      name(std::move(kernelName)), options(kernelOptions),
      device(DeviceDescription::for_target(kernelOptions.target)),
      where(location) {
  if (!isIdentifier(name))
    userErrorAt(where,
                "'{}' cannot name a kernel; use letters, digits and _, not "
                "beginning with a digit",
                name);
  contract.block = {threadsOf(options, name, device, where), 1, 1};
  contract.ctas_per_sm = options.ctas_per_sm;
  if (options.ctas_per_sm < 1 || options.ctas_per_sm > device.max_ctas_per_sm)
    userErrorAt(where, "kernel {} asks for {} CTAs per SM; {} holds 1 to {}",
                name, options.ctas_per_sm, options.target,
                device.max_ctas_per_sm);
  setCluster();

  mlir::Location loc = at(location);
  module = mlir::ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  gpuModule = mlir::gpu::GPUModuleOp::create(builder, loc, "kernels");
  builder.setInsertionPointToStart(gpuModule.getBody());
  auto bytes = mlir::LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  mlir::LLVM::GlobalOp::create(builder, loc, bytes, /*isConstant=*/false,
                               mlir::LLVM::Linkage::External, kSmemSymbol,
                               mlir::Attribute(), kSmemAlignment,
                               /*addrSpace=*/3);
  auto type = mlir::LLVM::LLVMFunctionType::get(
      mlir::LLVM::LLVMVoidType::get(context.get()), {});
  function = mlir::LLVM::LLVMFuncOp::create(builder, loc, name, type);
  entry = function.addEntryBlock(builder);
  builder.setInsertionPointToEnd(entry);
  openStates.push_back(this);
}

KernelBuilder::State::~State() { std::erase(openStates, this); }

KernelBuilder::State &KernelBuilder::State::current(const Where &where) {
  if (openStates.empty())
    userErrorAt(where, "there is no kernel under construction in this thread; "
                       "make a KernelBuilder first");
  openStates.back()->checkOpen(where);
  return *openStates.back();
}

void KernelBuilder::State::checkOpen(const Where &at) const {
  if (isBuilt)
    userErrorAt(at,
                "kernel {} has been built already; a KernelBuilder builds "
                "one kernel, once",
                name);
}

void KernelBuilder::State::requireTensorCore(TensorCore core, const char *what,
                                             const Where &at) const {
  if (device.tensor_core != core)
    userErrorAt(at,
                "{} needs {}, and kernel {} is for {}, which has {}; build it "
                "for {} (KernelOptions::target)",
                what, kiln::name(core), name, options.target,
                kiln::name(device.tensor_core),
                DeviceDescription::with(core).target());
}

mlir::Location KernelBuilder::State::at(const Where &own) {
  const Where &line = collectiveLine ? *collectiveLine : own;
  return mlir::FileLineColLoc::get(context.get(), line.file, line.line,
                                   line.column);
}

mlir::Type KernelBuilder::State::lower(Type type) {
  switch (type) {
  case Type::f16:
    return builder.getF16Type();
  case Type::bf16:
    return builder.getBF16Type();
  case Type::f32:
  case Type::tf32:
    return builder.getF32Type();
  case Type::f64:
    return builder.getF64Type();
  default:
    // Eight-bit floats travel as their bits.
    return builder.getIntegerType(size_bits(type));
  }
}

mlir::Type KernelBuilder::State::pointer(int addressSpace) {
  return mlir::LLVM::LLVMPointerType::get(context.get(), addressSpace);
}

/// "gemm.cpp:12" of an MLIR location.
static std::string describe(mlir::Location location) {
  if (auto line = location->findInstanceOf<mlir::FileLineColLoc>())
    return fmt::format("{}:{}", line.getFilename().str(), line.getLine());
  return "an unknown line";
}

mlir::Value KernelBuilder::State::use(const Value &value, const Where &at) {
  if (!value.is_valid())
    userErrorAt(at, "this Value was never given one; assign it before use");
  if (value.kernel() != token)
    userErrorAt(at, "this Value belongs to another kernel than {}", name);
  auto result = mlir::Value::getFromOpaquePointer(value.impl());
  mlir::Region *home = result.getParentRegion();
  if (home->isAncestor(builder.getInsertionBlock()->getParent()))
    return result;
  userErrorAt(at,
              "a value made at {} is used outside its region, the body begun "
              "at {}; carry it out with a Var declared before that body",
              describe(result.getLoc()),
              describe(home->getParentOp()->getLoc()));
}

mlir::Value KernelBuilder::State::constant(Type type, std::int64_t value,
                                           const Where &at_) {
  mlir::Type lowered = lower(type);
  mlir::TypedAttr attribute =
      is_float(type) ? mlir::TypedAttr(builder.getFloatAttr(
                           lowered, static_cast<double>(value)))
                     : mlir::TypedAttr(builder.getIntegerAttr(lowered, value));
  return constant(attribute, at_);
}

mlir::Value KernelBuilder::State::constant(mlir::TypedAttr value,
                                           const Where &where_) {
  mlir::Value &known = constants[value];
  if (!known) {
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    known = mlir::arith::ConstantOp::create(builder, at(where_), value);
  }
  return known;
}

mlir::Value KernelBuilder::State::dimValue(const Dim &dim, Type type,
                                           const Where &where_) {
  if (dim.is_constant())
    return constant(type, dim.constant(), where_);
  if (dim.op() == Dim::Op::argument) {
    auto found = dimArguments.find(dim.argument_name());
    if (found == dimArguments.end())
      userErrorAt(where_,
                  "'{}' is not a dimension of kernel {}; declare it with "
                  "KernelBuilder::dim",
                  dim.argument_name(), name);
    if (size_bits(type) == 32)
      return found->second;
    return mlir::arith::ExtSIOp::create(builder, at(where_), lower(type),
                                        found->second);
  }
  mlir::Value lhs = dimValue(dim.lhs(), type, where_);
  mlir::Value rhs = dimValue(dim.rhs(), type, where_);
  mlir::Location loc = at(where_);
  // Dimensions are not negative, so unsigned division is theirs.
  switch (dim.op()) {
  case Dim::Op::add:
    return mlir::arith::AddIOp::create(builder, loc, lhs, rhs);
  case Dim::Op::sub:
    return mlir::arith::SubIOp::create(builder, loc, lhs, rhs);
  case Dim::Op::mul:
    return mlir::arith::MulIOp::create(builder, loc, lhs, rhs);
  case Dim::Op::div:
    return mlir::arith::DivUIOp::create(builder, loc, lhs, rhs);
  case Dim::Op::ceil_div: {
    mlir::Value one = constant(type, 1, where_);
    mlir::Value less = mlir::arith::SubIOp::create(builder, loc, rhs, one);
    mlir::Value sum = mlir::arith::AddIOp::create(builder, loc, lhs, less);
    return mlir::arith::DivUIOp::create(builder, loc, sum, rhs);
  }
  case Dim::Op::mod:
    return mlir::arith::RemUIOp::create(builder, loc, lhs, rhs);
  case Dim::Op::min:
    return mlir::arith::MinSIOp::create(builder, loc, lhs, rhs);
  default:
    return mlir::arith::MaxSIOp::create(builder, loc, lhs, rhs);
  }
}

/// Refuse an integer literal that its type cannot hold; both the signed and the
/// unsigned reading of its bits are accepted.
static void checkFits(std::int64_t value, Type type, const Where &where) {
  int bits = size_bits(type);
  if (is_float(type) || bits == 64)
    return;
  std::int64_t least = type == Type::i1 ? 0 : -(std::int64_t(1) << (bits - 1));
  std::int64_t most = (std::int64_t(1) << bits) - 1;
  if (value < least || value > most)
    userErrorAt(where, "the literal {} does not fit into {}", value,
                kiln::name(type));
}

Value KernelBuilder::State::resolve(const At &operand, Type fallback) {
  if (auto *value = std::get_if<Value>(&operand.operand())) {
    use(*value, operand.where());
    return *value;
  }
  if (auto *dim = std::get_if<Dim>(&operand.operand())) {
    if (is_float(fallback) || size_bits(fallback) < 32)
      userErrorAt(operand.where(),
                  "the dimension {} is an integer of 32 bits or more; cast it "
                  "to use it as {}",
                  dim->to_string(), kiln::name(fallback));
    return wrap(dimValue(*dim, fallback, operand.where()), fallback);
  }
  if (isEightBitFloat(fallback))
    userErrorAt(operand.where(), "there are no literals of type {}",
                kiln::name(fallback));
  if (auto *integer = std::get_if<std::int64_t>(&operand.operand())) {
    checkFits(*integer, fallback, operand.where());
    return wrap(constant(fallback, *integer, operand.where()), fallback);
  }
  double number = std::get<double>(operand.operand());
  if (!is_float(fallback))
    userErrorAt(operand.where(),
                "the literal {} is not a valid {}; cast one of the operands",
                number, kiln::name(fallback));
  mlir::Value value =
      constant(builder.getFloatAttr(lower(fallback), number), operand.where());
  return wrap(value, fallback);
}

mlir::Value KernelBuilder::State::use(const At &operand, Type type) {
  Value value = resolve(operand, type);
  if (value.type() != type)
    userErrorAt(operand.where(),
                "expected a value of type {}, found {}; "
                "`cast` converts",
                kiln::name(type), kiln::name(value.type()));
  return use(value, operand.where());
}

mlir::Value KernelBuilder::State::slot(mlir::Type type, const Where &where_) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  mlir::Value one = constant(Type::i32, 1, where_);
  builder.setInsertionPointAfterValue(one);
  return mlir::LLVM::AllocaOp::create(builder, at(where_), pointer(0), type,
                                      one);
}

mlir::Value KernelBuilder::State::offset(mlir::Value address, mlir::Value bytes,
                                         const Where &where_) {
  return mlir::LLVM::GEPOp::create(builder, at(where_), address.getType(),
                                   builder.getI8Type(), address, bytes);
}

/// PTX text as an operation; `result` null: it gives nothing.
static mlir::Value addAsm(mlir::OpBuilder &builder, mlir::Location loc,
                          const std::string &text,
                          const std::string &constraints,
                          mlir::ValueRange operands, mlir::Type result,
                          bool hasSideEffects) {
  auto op = mlir::LLVM::InlineAsmOp::create(
      builder, loc, result ? mlir::TypeRange(result) : mlir::TypeRange(),
      operands, text, constraints, hasSideEffects,
      /*is_align_stack=*/false, mlir::LLVM::TailCallKind::None, nullptr,
      nullptr);
  return result ? op.getRes() : mlir::Value();
}

mlir::Value KernelBuilder::State::inlineAsm(const std::string &text,
                                            const std::string &constraints,
                                            mlir::ValueRange operands,
                                            mlir::Type result,
                                            const Where &where_) {
  if (!predicate)
    return addAsm(builder, at(where_), text, constraints, operands, result,
                  /*hasSideEffects=*/true);
  GuardedAsm guarded =
      guardAsm(*this, text, constraints, operands, result, where_);
  return addAsm(builder, at(where_), guarded.text, guarded.constraints,
                guarded.operands, result, /*hasSideEffects=*/true);
}

mlir::Value KernelBuilder::State::pureAsm(const std::string &text,
                                          const std::string &constraints,
                                          mlir::ValueRange operands,
                                          mlir::Type result,
                                          const Where &where_) {
  return addAsm(builder, at(where_), text, constraints, operands, result,
                /*hasSideEffects=*/false);
}

mlir::Value KernelBuilder::State::globalPointer(const At &address,
                                                const Where &where_) {
  mlir::Value value = use(address, Type::u64);
  if (!mlir::isa<mlir::LLVM::LLVMPointerType>(value.getType()))
    return mlir::LLVM::IntToPtrOp::create(builder, at(where_), pointer(1),
                                          value);
  if (value.getType() != pointer(1)) // Element::address gives one
    userErrorAt(where_, "a tensor map's address; a tensor lies in global "
                        "memory");
  return value;
}

void KernelBuilder::State::markWritten(int argument) {
  if (argument >= 0)
    contract.arguments[argument].is_output = true;
}

void KernelBuilder::State::needAlignment(int argument, int bytes) {
  if (argument < 0)
    return;
  int &alignment = contract.arguments[argument].alignment_bytes;
  alignment = std::max(alignment, bytes);
}

std::string KernelBuilder::State::bufferName(int argument) const {
  return argument < 0 ? "a tensor at an address"
                      : "'" + contract.arguments[argument].name + "'";
}

int KernelBuilder::State::placeSmem(const SmemAllocation &piece, int alignment,
                                    const SharedOptions &options,
                                    const Where &where_) const {
  if (options.offset && options.over)
    userErrorAt(where_, "a tile is placed at an offset or over another one, "
                        "not both");
  if (!options.offset && !options.over)
    return (smemBytes + alignment - 1) / alignment * alignment;
  int start = options.offset.value_or(-1);
  if (options.over) {
    auto below = llvm::find_if(smem, [&](const SmemAllocation &other) {
      return other.address == options.over->address().impl();
    });
    if (below == smem.end())
      userErrorAt(where_,
                  "a tile is placed over {}, which is no tile this kernel "
                  "allocated; name the tile or array itself, not a part of it",
                  options.over->layout().to_string());
    start = below->offset;
  }
  if (start < 0 || start % alignment != 0)
    userErrorAt(where_,
                "{} at byte {} of shared memory; it must begin at a multiple "
                "of {}",
                piece.what, start, alignment);
  for (const SmemAllocation &other : smem)
    if (other.overlaps(start, piece.bytes()) &&
        (other.isBarriers || options.offset))
      userErrorAt(where_,
                  "{}, bytes {} to {} of shared memory, lies over {} at {} "
                  "({}:{}); {}",
                  piece.what, start, start + piece.bytes() - 1, other.what,
                  other.offset, other.where.file, other.where.line,
                  other.isBarriers ? "barriers keep their place"
                                   : "say so with SharedOptions::over");
  return start;
}

mlir::Value KernelBuilder::State::allocateSmem(SmemAllocation piece,
                                               int alignment,
                                               const SharedOptions &options_,
                                               const Where &where_) {
  piece.where = where_;
  piece.offset = placeSmem(piece, alignment, options_, where_);
  smemBytes = std::max(smemBytes, piece.offset + piece.bytes());
  mlir::Value base = mlir::LLVM::AddressOfOp::create(builder, at(where_),
                                                     pointer(3), kSmemSymbol);
  // Also where it is 0: each piece has an address value of its own.
  mlir::Value address =
      offset(base, constant(Type::i32, piece.offset, where_), where_);
  piece.address = address.getAsOpaquePointer();
  contract.shared_objects.push_back(
      {.name = piece.name,
       .offset = piece.offset,
       .element_bytes = piece.elementBytes,
       .count = piece.count,
       .file = piece.where.file,
       .line = static_cast<int>(piece.where.line)});
  smem.push_back(std::move(piece));
  return address;
}

int KernelBuilder::State::addArgument(ArgumentSpec spec, const Where &where_) {
  for (const ArgumentSpec &other : contract.arguments)
    if (other.name == spec.name)
      userErrorAt(where_, "kernel {} has an argument called '{}' already", name,
                  spec.name);
  if (!contract.arguments.empty() && contract.arguments.back().is_workspace &&
      !spec.is_workspace)
    userErrorAt(where_,
                "kernel {} has the workspace '{}', and '{}' comes after it; "
                "declare what the caller passes first",
                name, contract.arguments.back().name, spec.name);
  if (!isIdentifier(spec.name))
    userErrorAt(where_,
                "'{}' cannot name an argument; use letters, digits and "
                "_, not beginning with a digit",
                spec.name);
  contract.arguments.push_back(std::move(spec));
  return static_cast<int>(contract.arguments.size()) - 1;
}

mlir::Value KernelBuilder::State::addParameter(ParameterSpec spec,
                                               mlir::Type type,
                                               const Where &where_) {
  isTensorMap.push_back(spec.kind == ParameterSpec::Kind::tensor_map);
  contract.parameters.push_back(std::move(spec));
  return entry->addArgument(type, at(where_));
}

} // namespace kiln
