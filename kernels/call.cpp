// call: kernels by problem, and launches by problem and buffers.
#include <kiln/kernels/call.h>
#include <kiln/run/arguments.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <unordered_map>

namespace kiln {

namespace {

/// Two launches are the same where their arguments are.
bool is_same(const LaunchArgument &x, const LaunchArgument &y) {
  if (x.index() != y.index())
    return false;
  if (const auto *buffer = std::get_if<Buffer>(&x)) {
    const Buffer &other = std::get<Buffer>(y);
    return buffer->address() == other.address() &&
           buffer->bytes() == other.bytes();
  }
  const Scalar &number = std::get<Scalar>(x), &other = std::get<Scalar>(y);
  return number.type == other.type && number.bits == other.bits;
}

/// Buffers are the caller's: what is packed must not keep them.
LaunchArgument without_owner(const LaunchArgument &argument) {
  if (const auto *buffer = std::get_if<Buffer>(&argument))
    return Buffer(buffer->address(), buffer->bytes());
  return argument;
}

/// Workspaces by device, stream and name: launches in a stream follow one
/// another and share them, those in others may not.
class Workspaces {
public:
  Buffer get(const std::shared_ptr<Device> &device, const Stream &stream,
             const std::string &name, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    std::erase_if(kept_, [](const Entry &one) { return one.life.expired(); });
    auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const Entry &one) {
          return one.device == device.get() && one.stream == stream.native() &&
                 one.name == name;
        });
    if (found == kept_.end())
      found = kept_.insert(found,
                           {device.get(), device, stream.native(), name, {}});
    // Launches that have a smaller one keep it.
    if (found->buffer.bytes() < bytes) {
      found->buffer = device->allocate(bytes);
      device->fill(found->buffer, 0, stream);
    }
    return found->buffer;
  }

private:
  struct Entry {
    const Device *device;
    std::weak_ptr<Device> life;
    const void *stream;
    std::string name;
    Buffer buffer;
  };
  std::mutex mutex_;
  std::vector<Entry> kept_;
};

/// What was compiled and packed for problems of one kind.
template <typename Problem> class Calls {
public:
  using Build = std::function<Module(const Problem &, const Device &)>;

  explicit Calls(Build build) : build_(std::move(build)) {}

  void operator()(const std::shared_ptr<Device> &device, const Stream &stream,
                  const Problem &problem,
                  std::span<const NamedArgument> given) {
    if (!device)
      throw UserError("a call without a device; open_cuda and open_sim give "
                      "one");
    std::size_t hash = hash_of(device.get(), given);
    std::shared_ptr<const Launch> launch =
        find(hash, device, stream, problem, given);
    if (!launch)
      launch = pack(hash, device, stream, problem, given);
    launch->submit(stream);
  }

private:
  struct Entry {
    const Device *device;
    std::weak_ptr<Device> life;
    Problem problem;
    std::shared_ptr<const Kernel> kernel;

    bool is_of(const std::shared_ptr<Device> &other,
               const Problem &wanted) const {
      return device == other.get() && !life.expired() && problem == wanted;
    }
  };
  struct Launch : Entry {
    std::vector<LaunchArgument> given;
    std::function<void(const Stream &)> submit;
    /// Of the one stream it goes to; none: it goes to every stream.
    std::vector<LaunchArgument> workspaces = {};
    const void *stream = nullptr;

    bool goes_to(const Stream &other) const {
      return workspaces.empty() || stream == other.native();
    }
  };
  /// Launches that are kept; then all are dropped.
  static constexpr std::size_t kMostLaunches = 4096;

  static std::size_t hash_of(const Device *device,
                             std::span<const NamedArgument> given) {
    std::size_t hash = std::hash<const void *>{}(device);
    for (const NamedArgument &one : given) {
      const auto *buffer = std::get_if<Buffer>(&one.value);
      std::size_t bits =
          buffer ? buffer->address() : std::get<Scalar>(one.value).bits;
      hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
    }
    return hash;
  }

  std::shared_ptr<const Launch> find(std::size_t hash,
                                     const std::shared_ptr<Device> &device,
                                     const Stream &stream,
                                     const Problem &problem,
                                     std::span<const NamedArgument> given) {
    std::lock_guard lock(mutex_);
    auto [first, last] = launches_.equal_range(hash);
    for (; first != last; ++first) {
      const Launch &launch = *first->second;
      if (launch.is_of(device, problem) && launch.goes_to(stream) &&
          std::equal(given.begin(), given.end(), launch.given.begin(),
                     launch.given.end(),
                     [](const NamedArgument &x, const LaunchArgument &y) {
                       return is_same(x.value, y);
                     }))
        return first->second;
    }
    return nullptr;
  }

  /// Nobody waits for a compilation but who asked for it.
  std::shared_ptr<const Launch> pack(std::size_t hash,
                                     const std::shared_ptr<Device> &device,
                                     const Stream &stream,
                                     const Problem &problem,
                                     std::span<const NamedArgument> given) {
    auto launch = std::make_shared<Launch>(Launch{
        {device.get(), device, problem, compiled(device, problem)}, {}, {}});
    const Kernel &kernel = *launch->kernel;
    std::vector<LaunchArgument> arguments = arguments_by_name(kernel, given);
    for (LaunchArgument &argument : arguments)
      argument = without_owner(argument);
    std::vector<LaunchArgument> all = with_workspaces(
        kernel, arguments, [&](const ArgumentSpec &spec, std::size_t bytes) {
          return workspaces_.get(device, stream, spec.name, bytes);
        });
    launch->workspaces.assign(
        all.begin() + static_cast<std::ptrdiff_t>(arguments.size()), all.end());
    launch->stream = stream.native();
    launch->submit =
        device->prepare(resolve(kernel, all, device->description()));
    for (const NamedArgument &one : given)
      launch->given.push_back(without_owner(one.value));
    std::lock_guard lock(mutex_);
    std::erase_if(launches_,
                  [](const auto &kept) { return kept.second->life.expired(); });
    if (launches_.size() >= kMostLaunches)
      launches_.clear();
    launches_.emplace(hash, launch);
    return launch;
  }

  std::shared_ptr<const Kernel> compiled(const std::shared_ptr<Device> &device,
                                         const Problem &problem) {
    {
      std::lock_guard lock(mutex_);
      std::erase_if(kernels_,
                    [](const Entry &kept) { return kept.life.expired(); });
      for (const Entry &kept : kernels_)
        if (kept.is_of(device, problem))
          return kept.kernel;
    }
    auto kernel =
        std::make_shared<const Kernel>(compile(build_(problem, *device)));
    std::lock_guard lock(mutex_);
    kernels_.push_back({device.get(), device, problem, kernel});
    return kernel;
  }

  Build build_;
  Workspaces workspaces_;
  std::mutex mutex_;
  std::vector<Entry> kernels_;
  std::unordered_multimap<std::size_t, std::shared_ptr<const Launch>> launches_;
};

} // namespace

void gemm(const std::shared_ptr<Device> &device, const Stream &stream,
          const GemmProblem &problem, const GemmArguments &arguments) {
  // Never destroyed: what they hold may outlive the driver.
  static auto &calls =
      *new Calls<GemmProblem>([](const GemmProblem &wanted, const Device &on) {
        const DeviceDescription &device = on.description();
        return build_gemm(wanted, pick_schedule(wanted, device), {}, device);
      });
  std::array<NamedArgument, 9> given = {{{"a", arguments.a},
                                         {"b", arguments.b},
                                         {"a_scales", arguments.a_scales},
                                         {"b_scales", arguments.b_scales},
                                         {"c", arguments.c},
                                         {"bias", arguments.bias},
                                         {"d", arguments.d},
                                         {"alpha", Scalar(arguments.alpha)},
                                         {"beta", Scalar(arguments.beta)}}};
  calls(device, stream, problem, given);
}

void attention(const std::shared_ptr<Device> &device, const Stream &stream,
               const AttentionProblem &problem,
               const AttentionArguments &arguments) {
  static auto &calls = *new Calls<AttentionProblem>(
      [](const AttentionProblem &wanted, const Device &) {
        return build_attention(wanted);
      });
  std::array<NamedArgument, 7> given = {
      {{"q", arguments.q},
       {"k", arguments.k},
       {"v", arguments.v},
       {"o", arguments.o},
       {"lse", arguments.lse},
       {"query_offsets", arguments.query_offsets},
       {"key_offsets", arguments.key_offsets}}};
  calls(device, stream, problem, given);
}

void grouped_gemm(const std::shared_ptr<Device> &device, const Stream &stream,
                  const GroupedGemmProblem &problem,
                  const GroupedGemmArguments &arguments) {
  static auto &calls = *new Calls<GroupedGemmProblem>(
      [](const GroupedGemmProblem &wanted, const Device &) {
        return build_grouped_gemm(wanted);
      });
  std::array<NamedArgument, 7> given = {{{"a", arguments.a},
                                         {"b", arguments.b},
                                         {"d", arguments.d},
                                         {"offsets", arguments.rows},
                                         {"counts", arguments.rows},
                                         {"a_scales", arguments.a_scales},
                                         {"b_scales", arguments.b_scales}}};
  calls(device, stream, problem, given);
}

} // namespace kiln
