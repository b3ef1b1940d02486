// Contract: from a launch contract and the arguments at hand to a launch.
//
// The one place that knows how grids, tensor maps and parameters follow from
// the arguments, for every device. Whatever does not fit is refused here, with
// the argument's name, before the device sees it.
#include "kiln/run/device.h"

#include "isa/Target.h"
#include "support/Error.h"

#include <fmt/ranges.h>

#include <cmath>
#include <string_view>
#include <unordered_map>

namespace kiln {

static constexpr std::array<char, 3> kAxes = {'x', 'y', 'z'};

/// Wide enough for every i64 and every u64.
using WideInteger = __int128;

static bool isInteger(Type type) { return !is_float(type); }

/// The number an integer scalar stands for; bits beyond its type do not count.
static WideInteger integerValue(const Scalar &scalar) {
  int unused = 64 - size_bits(scalar.type);
  if (is_signed_integer(scalar.type))
    return static_cast<std::int64_t>(scalar.bits << unused) >> unused;
  return scalar.bits << unused >> unused;
}

/// Whether an integer of `type` can hold `value`.
static bool fits(WideInteger value, Type type) {
  int bits = size_bits(type);
  bool isSigned = is_signed_integer(type);
  WideInteger limit = WideInteger{1} << (isSigned ? bits - 1 : bits);
  return value >= (isSigned ? -limit : WideInteger{0}) && value < limit;
}

/// Every value of an integer type as text.
static std::string toText(WideInteger value) {
  return value < 0 ? fmt::format("{}", static_cast<std::int64_t>(value))
                   : fmt::format("{}", static_cast<std::uint64_t>(value));
}

namespace {

/// One resolution: the kernel, what was given, and what became of it.
class Resolver {
public:
  Resolver(const Kernel &kernel, std::span<const LaunchArgument> arguments,
           const DeviceDescription &device)
      : kernel_(kernel), contract_(kernel.contract), arguments_(arguments),
        device_(device) {}

  LaunchDescription resolve() {
    checkTarget();
    checkCount();
    convertScalars();
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (contract_.arguments[i].kind == ArgumentSpec::Kind::buffer)
        checkBuffer(i);
    LaunchDescription launch;
    launch.name = kernel_.name;
    launch.ptx = kernel_.ptx;
    resolveGrid(launch);
    resolveBlock(launch);
    resolveSmem(launch);
    launch.shared_objects = contract_.shared_objects;
    launch.cooperative = contract_.is_cooperative;
    for (const ParameterSpec &parameter : contract_.parameters)
      launch.parameters.push_back(makeParameter(parameter));
    return launch;
  }

private:
  void checkTarget() const {
    if (isa::findTarget(kernel_.target) && !device_.runs(kernel_.target))
      userError("kernel \"{}\" was built for {}; {} runs {}", kernel_.name,
                kernel_.target, device_.name, device_.target());
  }

  void checkCount() const {
    if (arguments_.size() == contract_.arguments.size())
      return;
    std::vector<std::string> names;
    for (const ArgumentSpec &spec : contract_.arguments)
      names.push_back(spec.name);
    userError("kernel \"{}\" takes {} arguments ({}); {} were given",
              kernel_.name, names.size(), fmt::join(names, ", "),
              arguments_.size());
  }

  /// `argument 2 "x" of kernel "saxpy"`, counted from 1.
  std::string describe(std::size_t i) const {
    return fmt::format("argument {} \"{}\" of kernel \"{}\"", i + 1,
                       contract_.arguments[i].name, kernel_.name);
  }

  void convertScalars() {
    scalars_.resize(arguments_.size());
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const ArgumentSpec &spec = contract_.arguments[i];
      const auto *scalar = std::get_if<Scalar>(&arguments_[i]);
      bool wantsScalar = spec.kind == ArgumentSpec::Kind::scalar;
      if (wantsScalar && !scalar)
        userError("{} is a scalar {}; a buffer was given", describe(i),
                  name(spec.type));
      if (!wantsScalar && scalar)
        userError("{} is a buffer of {}; a scalar {} was given", describe(i),
                  name(spec.type), name(scalar->type));
      if (wantsScalar)
        scalars_[i] = convert(i, *scalar);
      index_.try_emplace(spec.name, i);
    }
  }

  /// The scalar in the type the kernel declared.
  Scalar convert(std::size_t i, const Scalar &given) const {
    Type wanted = contract_.arguments[i].type;
    if (given.type == wanted)
      return given;
    if (isInteger(given.type) && isInteger(wanted)) {
      WideInteger value = integerValue(given);
      if (!fits(value, wanted))
        userError("{} is a scalar {}; {} of type {} does not fit it",
                  describe(i), name(wanted), toText(value), name(given.type));
      std::uint64_t unused = 64 - size_bits(wanted);
      return Scalar(wanted,
                    static_cast<std::uint64_t>(value) << unused >> unused);
    }
    bool isHostFloat = given.type == Type::f32 || given.type == Type::f64;
    bool takesFloat = wanted == Type::f16 || wanted == Type::bf16 ||
                      wanted == Type::f32 || wanted == Type::f64;
    if (isHostFloat && takesFloat) {
      Scalar result(wanted, to_bits(wanted, given.value()));
      if (std::isfinite(given.value()) && !std::isfinite(result.value()))
        userError("{} is a scalar {}; {} of type {} does not fit it",
                  describe(i), name(wanted), given.value(), name(given.type));
      return result;
    }
    userError("{} is a scalar {}; a scalar {} was given: pass {}", describe(i),
              name(wanted), name(given.type), acceptedFor(wanted));
  }

  /// What a caller can pass for a scalar of that type.
  static std::string acceptedFor(Type wanted) {
    if (isInteger(wanted))
      return "an integer";
    if (wanted == Type::tf32 || size_bits(wanted) == 8)
      return fmt::format("Scalar(Type::{}, bits)", name(wanted));
    return "a float or a double";
  }

  /// The value of a name in a dimension.
  std::int64_t lookUp(const std::string &wanted) const {
    if (auto found = index_.find(wanted); found != index_.end()) {
      std::size_t i = found->second;
      const ArgumentSpec &spec = contract_.arguments[i];
      if (spec.kind != ArgumentSpec::Kind::scalar || !isInteger(spec.type))
        userError("{} is used as a dimension; only an integer scalar can be",
                  describe(i));
      WideInteger value = integerValue(scalars_[i]);
      if (!fits(value, Type::i64))
        userError("{} is used as a dimension and is {}; at most 2^63 - 1 is "
                  "possible",
                  describe(i), toText(value));
      return static_cast<std::int64_t>(value);
    }
    if (wanted == "sms")
      return device_.sms;
    userError(
        "the contract of kernel \"{}\" speaks of \"{}\", which is neither "
        "a scalar argument nor \"sms\"",
        kernel_.name, wanted);
  }

  std::int64_t evaluate(const Dim &dim) const {
    return dim.evaluate(
        [this](const std::string &wanted) { return lookUp(wanted); });
  }

  /// A dimension that counts elements or bytes of something named `what`.
  std::uint64_t evaluateSize(const Dim &dim, const std::string &what) const {
    std::int64_t value = evaluate(dim);
    if (value < 0)
      userError("{} has a dimension {} = {}; it must not be negative", what,
                dim.to_string(), value);
    return static_cast<std::uint64_t>(value);
  }

  /// The buffer holds its shape, and lies where its elements can be accessed.
  void checkBuffer(std::size_t i) const {
    const ArgumentSpec &spec = contract_.arguments[i];
    const Buffer &buffer = std::get<Buffer>(arguments_[i]);
    std::uint64_t elementBytes = size_bytes(spec.type);
    std::uint64_t alignment =
        std::max<std::uint64_t>(elementBytes, spec.alignment_bytes);
    if (buffer.address() % alignment != 0)
      userError("{} begins at address {:#x}; for {} it must be a multiple of "
                "{} bytes",
                describe(i), buffer.address(), name(spec.type), alignment);
    if (spec.shape.empty())
      return;
    std::vector<std::uint64_t> shape;
    std::uint64_t needed = elementBytes;
    bool isTooLarge = false;
    for (const Dim &dim : spec.shape) {
      shape.push_back(evaluateSize(dim, describe(i)));
      isTooLarge |= __builtin_mul_overflow(needed, shape.back(), &needed);
    }
    if (is_subbyte(spec.type) && needed < INT64_MAX) // elements so far
      needed = static_cast<std::uint64_t>(
          bytes_of(spec.type, static_cast<std::int64_t>(needed)));
    if (isTooLarge)
      userError("{} has the shape {} of {}, more than 2^64 bytes", describe(i),
                fmt::join(shape, " x "), name(spec.type));
    if (buffer.bytes() < needed)
      userError("{} needs {} bytes for {} of {}; the buffer has {}",
                describe(i), needed, fmt::join(shape, " x "), name(spec.type),
                buffer.bytes());
  }

  void resolveGrid(LaunchDescription &launch) const {
    for (int axis = 0; axis < 3; ++axis) {
      const Dim &dim = contract_.grid[axis];
      std::int64_t ctas = evaluate(dim);
      if (ctas < 1 || ctas > device_.max_grid[axis])
        userError("the grid of kernel \"{}\" has {} CTAs in {} ({}); 1 to {} "
                  "are possible",
                  kernel_.name, ctas, kAxes[axis], dim.to_string(),
                  device_.max_grid[axis]);
      int cluster = contract_.cluster[axis];
      if (cluster < 1)
        userError("the cluster of kernel \"{}\" has {} CTAs in {}; it must "
                  "have at least 1",
                  kernel_.name, cluster, kAxes[axis]);
      if (ctas % cluster != 0)
        userError("the grid of kernel \"{}\" has {} CTAs in {} ({}); with "
                  "clusters of {} it must be a multiple of {}",
                  kernel_.name, ctas, kAxes[axis], dim.to_string(), cluster,
                  cluster);
      launch.grid[axis] = static_cast<std::uint32_t>(ctas);
      launch.cluster[axis] = static_cast<std::uint32_t>(cluster);
    }
  }

  void resolveBlock(LaunchDescription &launch) const {
    std::int64_t threads = 1;
    bool isPossible = true;
    for (int axis = 0; axis < 3; ++axis) {
      int extent = contract_.block[axis];
      isPossible &= extent >= 1 && extent <= device_.max_threads_per_cta;
      threads *= isPossible ? extent : 1;
      launch.block[axis] = static_cast<std::uint32_t>(extent);
    }
    if (isPossible && threads <= device_.max_threads_per_cta)
      return;
    userError("kernel \"{}\" has CTAs of {} threads; {} allows 1 to {} in all",
              kernel_.name, fmt::join(contract_.block, " x "), device_.name,
              device_.max_threads_per_cta);
  }

  void resolveSmem(LaunchDescription &launch) const {
    int bytes = contract_.dynamic_smem_bytes;
    if (bytes < 0 || bytes > device_.max_smem_per_cta_bytes)
      userError("kernel \"{}\" needs {} bytes of dynamic shared memory; {} has "
                "{} for a CTA",
                kernel_.name, bytes, device_.name,
                device_.max_smem_per_cta_bytes);
    launch.dynamic_smem_bytes = static_cast<std::uint32_t>(bytes);
  }

  LaunchParameter makeParameter(const ParameterSpec &parameter) const {
    std::size_t i = static_cast<std::size_t>(parameter.argument);
    if (i >= arguments_.size())
      userError("the contract of kernel \"{}\" makes a parameter from argument "
                "number {}; it has {}, counted from 0",
                kernel_.name, parameter.argument, arguments_.size());
    bool isScalar = contract_.arguments[i].kind == ArgumentSpec::Kind::scalar;
    if (isScalar != (parameter.kind == ParameterSpec::Kind::scalar))
      userError("the contract of kernel \"{}\" makes a {} from {}, which is a "
                "{}",
                kernel_.name, isScalar ? "buffer or tensor map" : "scalar",
                describe(i), isScalar ? "scalar" : "buffer");
    if (isScalar)
      return {scalars_[i]};
    if (parameter.kind == ParameterSpec::Kind::buffer)
      return {std::get<Buffer>(arguments_[i])};
    if (!parameter.tensor_map)
      userError("the contract of kernel \"{}\" makes a tensor map from {} and "
                "does not say which",
                kernel_.name, describe(i));
    return {makeTensorMap(*parameter.tensor_map, i)};
  }

  TensorMap makeTensorMap(const TensorMapSpec &spec, std::size_t i) const {
    std::string what = "the tensor map of " + describe(i);
    TensorMap map;
    map.type = spec.type;
    map.address = std::get<Buffer>(arguments_[i]).address();
    for (const Dim &dim : spec.dims)
      map.dims.push_back(evaluateSize(dim, what));
    for (const Dim &stride : spec.strides_bytes)
      map.strides_bytes.push_back(evaluateSize(stride, what));
    map.box.assign(spec.box.begin(), spec.box.end());
    map.element_strides.assign(spec.element_strides.begin(),
                               spec.element_strides.end());
    if (map.element_strides.empty())
      map.element_strides.assign(map.dims.size(), 1);
    map.swizzle = spec.swizzle;
    map.interleave = spec.interleave;
    map.l2 = spec.l2;
    map.oob = spec.oob;
    check(map, what);
    checkExtent(map, i);
    return map;
  }

  /// TMA reads whatever the map says is there, so the map must end within the
  /// buffer. `check` has bounded the numbers: nothing overflows here.
  void checkExtent(const TensorMap &map, std::size_t i) const {
    auto end = WideInteger{static_cast<std::uint64_t>(
        bytes_of(map.type, static_cast<std::int64_t>(map.dims[0])))};
    for (std::size_t d = 1; d < map.dims.size(); ++d)
      end += WideInteger{map.dims[d] - 1} * map.strides_bytes[d - 1];
    std::size_t bytes = std::get<Buffer>(arguments_[i]).bytes();
    if (end <= WideInteger{bytes})
      return;
    userError("the tensor map of {} covers {} bytes ({} elements of {}, "
              "innermost first, strides of {} bytes); the buffer has {}",
              describe(i),
              fits(end, Type::u64) ? toText(end) : "more than 2^64",
              fmt::join(map.dims, " x "), name(map.type),
              fmt::join(map.strides_bytes, ", "), bytes);
  }

  const Kernel &kernel_;
  const LaunchContract &contract_;
  std::span<const LaunchArgument> arguments_;
  const DeviceDescription &device_;
  std::vector<Scalar> scalars_; ///< by argument; those of buffers are unused
  std::unordered_map<std::string_view, std::size_t> index_; ///< of a name
};

} // namespace

std::vector<LaunchArgument> with_workspaces(
    const Kernel &kernel, std::span<const LaunchArgument> arguments,
    const std::function<Buffer(const ArgumentSpec &, std::size_t)> &allocate) {
  std::vector<LaunchArgument> all(arguments.begin(), arguments.end());
  const std::vector<ArgumentSpec> &specs = kernel.contract.arguments;
  for (std::size_t i = all.size(); i < specs.size(); ++i) {
    if (!specs[i].is_workspace) // resolve says what is missing
      break;
    std::int64_t elements = 1;
    for (const Dim &dim : specs[i].shape)
      elements *= dim.constant();
    all.emplace_back(allocate(
        specs[i], static_cast<std::size_t>(bytes_of(specs[i].type, elements))));
  }
  return all;
}

LaunchDescription resolve(const Kernel &kernel,
                          std::span<const LaunchArgument> arguments,
                          const DeviceDescription &device) {
  return Resolver(kernel, arguments, device).resolve();
}

} // namespace kiln
