// Builder: KernelBuilder, the arguments of a kernel and its end.
#include "kiln/language/builder.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln {

KernelBuilder::KernelBuilder(std::string name, const KernelOptions &options,
                             Where where)
    : state_(std::make_unique<State>(std::move(name), options, where)) {}
KernelBuilder::~KernelBuilder() = default;

Dim KernelBuilder::dim(const std::string &name, Where where) {
  Value value = scalar(name, Type::i32, where);
  state_->dimArguments[name] = state_->use(value, where);
  return Dim::argument(name);
}

Value KernelBuilder::scalar(const std::string &name, Type type, Where where) {
  State &state = *state_;
  state.checkOpen(where);
  int argument = state.addArgument(
      {.name = name, .kind = ArgumentSpec::Kind::scalar, .type = type}, where);
  mlir::Value value = state.addParameter(
      {.kind = ParameterSpec::Kind::scalar, .argument = argument},
      state.lower(type), where);
  return state.wrap(value, type);
}

/// Strides of a row-major tensor where none are given.
static std::vector<Dim> stridesOf(const std::string &name,
                                  const std::vector<Dim> &shape,
                                  std::vector<Dim> strides,
                                  const Where &where) {
  if (shape.empty() || shape.size() > 5)
    userErrorAt(where, "tensor '{}' has {} dimensions; 1 to 5 are possible",
                name, shape.size());
  for (const Dim &dim : shape)
    if (dim.is_constant() && dim.constant() < 1)
      userErrorAt(where,
                  "tensor '{}' has a dimension of {}; every one must be "
                  "at least 1",
                  name, dim.constant());
  if (strides.empty()) {
    strides.assign(shape.size(), Dim(1));
    for (std::size_t i = shape.size() - 1; i-- > 0;)
      strides[i] = strides[i + 1] * shape[i + 1];
  }
  if (strides.size() != shape.size())
    userErrorAt(where, "tensor '{}' has {} dimensions and {} strides", name,
                shape.size(), strides.size());
  return strides;
}

/// The elements a tensor reaches over, as a shape: rows times their stride.
static std::vector<Dim> extent(const std::vector<Dim> &shape,
                               const std::vector<Dim> &strides) {
  Dim last = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    last = last + (shape[i] - 1) * strides[i];
  return {last};
}

/// Declare a buffer argument; `strides` become what they are by default.
static int addBuffer(KernelBuilder::State &state, const std::string &name,
                     Type type, const std::vector<Dim> &shape,
                     std::vector<Dim> &strides, const Where &where,
                     bool isWorkspace = false) {
  state.checkOpen(where);
  bool isDense = strides.empty();
  strides = stridesOf(name, shape, std::move(strides), where);
  return state.addArgument({.name = name,
                            .kind = ArgumentSpec::Kind::buffer,
                            .type = type,
                            .shape = isDense ? shape : extent(shape, strides),
                            .is_workspace = isWorkspace},
                           where);
}

/// Refuse elements that a thread cannot access.
static void checkAddressable(const std::string &name, Type type,
                             const Where &where) {
  if (is_subbyte(type))
    userErrorAt(where,
                "tensor {} of {}, whose elements have less than a byte and "
                "no address; declare a tensor map, which TMA copies",
                name, kiln::name(type));
}

/// A buffer argument and its pointer.
static Tensor addTensor(KernelBuilder::State &state, const std::string &name,
                        Type type, std::vector<Dim> shape,
                        std::vector<Dim> strides, const Where &where,
                        bool isWorkspace = false) {
  checkAddressable(fmt::format("'{}'", name), type, where);
  int argument =
      addBuffer(state, name, type, shape, strides, where, isWorkspace);
  mlir::Value base = state.addParameter(
      {.kind = ParameterSpec::Kind::buffer, .argument = argument},
      state.pointer(1), where);
  return Make::a<Tensor>(state.wrap(base, Type::u64), type, argument,
                         std::move(shape), std::move(strides));
}

Tensor KernelBuilder::tensor(const std::string &name, Type type,
                             std::vector<Dim> shape, std::vector<Dim> strides,
                             Where where) {
  return addTensor(*state_, name, type, std::move(shape), std::move(strides),
                   where);
}

Tensor KernelBuilder::workspace(const std::string &name, Type type,
                                std::vector<Dim> shape,
                                std::vector<Dim> strides, Where where) {
  for (const std::vector<Dim> *dims : {&shape, &strides})
    for (const Dim &dim : *dims)
      if (!dim.is_constant())
        userErrorAt(where,
                    "workspace '{}' has a dimension or stride {}, which is "
                    "known at launch; it is allocated before, give a number",
                    name, dim.to_string());
  return addTensor(*state_, name, type, std::move(shape), std::move(strides),
                   where, true);
}

Tensor KernelBuilder::tensor_at(At address, Type type, std::vector<Dim> shape,
                                std::vector<Dim> strides, int alignment,
                                Where where) {
  State &state = *state_;
  state.checkOpen(where);
  checkAddressable("at an address", type, where);
  strides = stridesOf("at an address", shape, std::move(strides), where);
  constexpr int kWidest = 16; // bytes of a vector
  if (alignment < size_bytes(type) || alignment > kWidest ||
      !std::has_single_bit(static_cast<unsigned>(alignment)))
    userErrorAt(where,
                "a tensor of {} at an address with an alignment of {}; it "
                "takes a power of two from {} to {} bytes",
                name(type), alignment, size_bytes(type), kWidest);
  auto result = Make::a<Tensor>(
      state.wrap(state.globalPointer(address, where), Type::u64), type,
      Element::at_an_address, std::move(shape), std::move(strides));
  // As a part of a buffer that begins on 16 bytes.
  result.base_multiple_ =
      alignment == kWidest ? 0 : alignment / size_bytes(type);
  return result;
}

/// What the options say per dimension must fit the tensor and the hardware.
static void checkTmaOptions(const std::string &name, std::size_t rank,
                            const TmaOptions &options, const Where &where) {
  if (options.tile.size() != rank)
    userErrorAt(where, "tensor map '{}' has {} dimensions and a tile of {}",
                name, rank, options.tile.size());
  const std::vector<int> &strides = options.element_strides;
  if (!strides.empty() && strides.size() != rank)
    userErrorAt(where,
                "tensor map '{}' has {} dimensions and {} element strides",
                name, rank, strides.size());
  for (std::size_t i = 0; i < strides.size(); ++i) {
    bool isInnermost = i + 1 == rank;
    if (strides[i] < 1 || strides[i] > (isInnermost ? 1 : 8))
      userErrorAt(where,
                  "tensor map '{}' has an element stride of {} in dimension "
                  "{}; TMA takes 1 to 8, and 1 in the innermost",
                  name, strides[i], i);
    if (strides[i] * options.tile[i] > 256)
      userErrorAt(where,
                  "tensor map '{}' takes {} elements of dimension {}, every "
                  "{}th: a box of {}, and a box has at most 256",
                  name, options.tile[i], i, strides[i],
                  strides[i] * options.tile[i]);
  }
  if (options.interleave == Interleave::none)
    return;
  int bytes = static_cast<int>(options.interleave);
  if (rank < 3)
    userErrorAt(where,
                "tensor map '{}' is interleaved by {} bytes and has {} "
                "dimensions; an interleaved tensor has 3 to 5",
                name, bytes, rank);
  if (options.interleave == Interleave::b32 && options.swizzle != Swizzle::b32)
    userErrorAt(where,
                "tensor map '{}' is interleaved by 32 bytes; TMA needs a "
                "swizzle of 32 with it",
                name);
}

/// The tile in shared memory: the innermost dimension is its columns, all
/// others are rows.
static TileLayout tileOf(const std::string &name, Type type,
                         const TmaOptions &options, const Where &where) {
  TileLayout tile{type, 1, options.tile.back(), options.swizzle, options.panel};
  for (std::size_t i = 0; i + 1 < options.tile.size(); ++i) {
    if (options.tile.size() > 2 &&
        (options.tile[i] < 1 || options.tile[i] > 256))
      userErrorAt(where,
                  "tensor map '{}' has a tile of {} elements in dimension {}; "
                  "1 to 256 are possible",
                  name, options.tile[i], i);
    tile.rows *= options.tile[i];
  }
  tile.check(where);
  return tile;
}

/// Bytes of so many elements; of those that share bytes they are whole ones.
static Dim bytesOf(Type type, const Dim &elements) {
  if (elements.is_constant())
    return bytes_of(type, elements.constant());
  return type == Type::e2m1 ? ceil_div(elements, 2)
                            : elements * size_bytes(type);
}

/// A tensor map parameter for an argument that exists. Elements that share
/// bytes are copied as bytes.
static TmaTensor addTensorMap(KernelBuilder::State &state,
                              const std::string &name, Type type, int argument,
                              const std::vector<Dim> &shape,
                              const std::vector<Dim> &strides,
                              const TmaOptions &options, const Where &where) {
  std::size_t rank = shape.size();
  checkTmaOptions(name, rank, options, where);
  if (strides.back() != Dim(1))
    userErrorAt(where,
                "tensor map '{}' has an innermost stride of {}; TMA "
                "reads rows whose elements are adjacent",
                name, strides.back().to_string());
  TileLayout tile = tileOf(name, type, options, where);
  bool isOfBytes = is_subbyte(type);
  TensorMapSpec spec{.type = isOfBytes ? Type::u8 : type,
                     .swizzle = options.swizzle,
                     .interleave = options.interleave,
                     .l2 = options.l2,
                     .oob = options.oob};
  spec.dims = {isOfBytes ? bytesOf(type, shape.back()) : shape.back()};
  spec.box = {isOfBytes ? tile.row_bytes() : tile.panel_columns()};
  // The hardware counts from the innermost dimension.
  for (std::size_t i = rank - 1; i-- > 0;) {
    // A box spans what its elements are taken from.
    int step = options.element_strides.empty() ? 1 : options.element_strides[i];
    Dim stride = bytesOf(type, strides[i]);
    spec.dims.push_back(shape[i]);
    spec.box.push_back(options.tile[i] * step);
    if (stride.is_constant() && stride.constant() % 16 != 0)
      userErrorAt(where,
                  "the {} of tensor map '{}' are {} bytes apart; TMA needs a "
                  "multiple of 16 (a multiple of {} elements of {})",
                  i + 2 == rank ? "rows" : "planes", name, stride.constant(),
                  elements_in(type, 16), kiln::name(type));
    spec.strides_bytes.push_back(std::move(stride));
  }
  spec.element_strides.assign(options.element_strides.rbegin(),
                              options.element_strides.rend());
  mlir::Value map = state.addParameter({.kind = ParameterSpec::Kind::tensor_map,
                                        .argument = argument,
                                        .tensor_map = std::move(spec)},
                                       state.pointer(0), where);
  return Make::a<TmaTensor>(state.wrap(map, Type::u64), tile,
                            static_cast<int>(rank), name, argument);
}

TmaTensor KernelBuilder::tensor_map(const std::string &name, Type type,
                                    const std::vector<Dim> &shape,
                                    const TmaOptions &options,
                                    std::vector<Dim> strides, Where where) {
  State &state = *state_;
  int argument = addBuffer(state, name, type, shape, strides, where);
  return addTensorMap(state, name, type, argument, shape, strides, options,
                      where);
}

TmaTensor KernelBuilder::tensor_map(const Tensor &tensor,
                                    const TmaOptions &options, Where where) {
  State &state = *state_;
  state.checkOpen(where);
  state.use(tensor.base(), where); // of this kernel
  if (tensor.is_view())
    userErrorAt(where,
                "a tensor map of a view of {}; the map is made before the "
                "kernel runs: make it of the tensor itself",
                state.bufferName(tensor.argument()));
  if (tensor.argument() < 0)
    userErrorAt(where, "a tensor map of a tensor at an address that only the "
                       "kernel knows; TmaTensor::at makes one of a map that "
                       "is a parameter");
  return addTensorMap(state, state.contract.arguments[tensor.argument()].name,
                      tensor.type(), tensor.argument(), tensor.shape(),
                      tensor.strides(), options, where);
}

void KernelBuilder::grid(Dim x, Dim y, Dim z) {
  state_->contract.grid = {std::move(x), std::move(y), std::move(z)};
}

SharedTile KernelBuilder::shared(const TileLayout &layout,
                                 const SharedOptions &options, Where where) {
  return shared_array(layout, 1, options, where)[At(0, where)];
}

int KernelBuilder::shared_bytes() const { return state_->smemBytes; }

SharedTileArray KernelBuilder::shared_array(const TileLayout &layout, int count,
                                            const SharedOptions &options,
                                            Where where) {
  State &state = *state_;
  state.checkOpen(where);
  layout.check(where);
  if (count < 1)
    userErrorAt(where, "{} shared tiles were asked for; at least 1 is needed",
                count);
  std::string what =
      count == 1 ? fmt::format("tile {}", layout.to_string())
                 : fmt::format("{} tiles {}", count, layout.to_string());
  mlir::Value address =
      state.allocateSmem({.what = what,
                          .name = options.name.empty() ? "tile" : options.name,
                          .elementBytes = layout.stride_bytes(),
                          .count = count},
                         layout.alignment_bytes(), options, where);
  return Make::a<SharedTileArray>(state.wrap(address, Type::u32), layout,
                                  count);
}

MbarrierArray KernelBuilder::mbarriers(int count, const std::string &name,
                                       Where where) {
  State &state = *state_;
  state.checkOpen(where);
  if (count < 1)
    userErrorAt(where, "{} mbarriers were asked for; at least 1 is needed",
                count);
  mlir::Value address =
      state.allocateSmem({.what = fmt::format("{} mbarriers", count),
                          .name = name.empty() ? "mbarrier" : name,
                          .elementBytes = 8,
                          .count = count,
                          .isBarriers = true},
                         8, {}, where);
  state.barriers.push_back({.where = where});
  return Make::a<MbarrierArray>(state.wrap(address, Type::u32), count,
                                static_cast<int>(state.barriers.size()) - 1);
}

NamedBarrierArray KernelBuilder::named_barriers(int count, int threads,
                                                Where where) {
  State &state = *state_;
  state.checkOpen(where);
  if (count < 1)
    userErrorAt(where, "{} named barriers were asked for; at least 1 is needed",
                count);
  if (threads < 32 || threads % 32 != 0 || threads > state.contract.threads())
    userErrorAt(where,
                "{} threads meet at a named barrier; it takes whole warps: a "
                "multiple of 32 up to the {} of kernel {}",
                threads, state.contract.threads(), state.name);
  int first = state.takeNamedBarriers(count, "named_barriers", where);
  return Make::a<NamedBarrierArray>(first, count, threads);
}

Module KernelBuilder::State::finish(const Where &where_) {
  checkOpen(where_);
  if (tensorMemory)
    tensorMemory->free();
  checkSharedMemory(*this);
  checkBarriers(*this);
  checkDims(*this);
  checkGrid(*this);
  checkCluster(*this);
  checkRegisterPlan(*this); // the last: it settles each role's instruction
  contract.dynamic_smem_bytes = smemBytes;
  isBuilt = true;

  mlir::Location loc = at(where_);
  mlir::LLVM::ReturnOp::create(builder, loc, mlir::ValueRange());
  llvm::SmallVector<mlir::Type> types(entry->getArgumentTypes());
  function.setFunctionType(mlir::LLVM::LLVMFunctionType::get(
      mlir::LLVM::LLVMVoidType::get(context.get()), types));
  auto threads = builder.getDenseI32ArrayAttr(contract.block);
  function->setAttr(mlir::NVVM::NVVMDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  // Without these two ptxas ignores setmaxnreg (C7508).
  function->setAttr(mlir::NVVM::NVVMDialect::getReqntidAttrName(), threads);
  if (options.ftz)
    function.setPassthroughAttr(builder.getArrayAttr({builder.getStrArrayAttr(
        {"denormal-fp-math-f32", "preserve-sign,preserve-sign"})}));
  function->setAttr(mlir::NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(contract.ctas_per_sm));
  if (clusterCtas() > 1)
    function->setAttr(mlir::NVVM::NVVMDialect::getClusterDimAttrName(),
                      builder.getDenseI32ArrayAttr(contract.cluster));
  if (contract.registers_at_entry)
    function->setAttr(mlir::NVVM::NVVMDialect::getMaxnregAttrName(),
                      builder.getI32IntegerAttr(contract.registers_at_entry));
  auto mapType = mlir::LLVM::LLVMArrayType::get(builder.getI64Type(), 16);
  for (unsigned i = 0; i < isTensorMap.size(); ++i) {
    if (!isTensorMap[i])
      continue;
    function.setArgAttr(i, "llvm.byval", mlir::TypeAttr::get(mapType));
    function.setArgAttr(i, "llvm.align", builder.getI64IntegerAttr(64));
    function.setArgAttr(i, mlir::NVVM::NVVMDialect::getGridConstantAttrName(),
                        builder.getUnitAttr());
  }
  DiagnosticCollector diagnostics(*context);
  if (mlir::failed(mlir::verify(*module)))
    diagnostics.raise(fmt::format("kernel {} is not valid", name));

  auto impl = std::make_unique<Module::Impl>();
  impl->name = name;
  impl->target = options.target;
  impl->contract = contract;
  impl->context = std::move(context);
  impl->module = std::move(module);
  return Make::a<Module>(std::move(impl));
}

Module KernelBuilder::module(Where where) { return state_->finish(where); }

Kernel KernelBuilder::build(const CompileOptions &options, Where where) {
  return compile(state_->finish(where), options);
}

} // namespace kiln
