// SimDevice: the simulator behind the device interface.
//
// Everything is done when it is asked for, unless it has to wait (Streams).
#include "kiln/check/sim.h"
#include "sim/launch/LaunchChain.h"
#include "sim/launch/Residency.h"
#include "sim/launch/Snapshot.h"
#include "sim/machine/memory/TensorMapImage.h"
#include "sim/program/EntryRules.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/LaunchShape.h"
#include "support/limits/Budget.h"
#include "support/text/PtxText.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

namespace kiln {

namespace {

using Clock = std::chrono::steady_clock;
using State = sim::Streams::State;

/// Buffers live as long as the memory they are in.
struct Allocation {
  std::shared_ptr<sim::GlobalMemory> memory;
  std::shared_ptr<sim::Streams> streams;
  std::uint64_t base;
  ~Allocation() {
    // What is under way may use it.
    if (streams->isCaller()) {
      streams->put(streams->defaultQueue(),
                   [memory = memory, base = base](bool) {
                     memory->free(base);
                     return State::done;
                   });
      return;
    }
    streams->settle([this] { return streams->areEmpty(); });
    streams->forgetPrevious(nullptr);
    std::lock_guard lock(streams->mutex());
    memory->free(base);
  }
};

/// A point in a stream: how often it was recorded, and how often that happened.
struct SimEvent {
  std::uint64_t recorded = 0, happened = 0;
  Clock::time_point time = {};
  /// The launch whose trigger it tells of; null: it tells of the end.
  std::shared_ptr<const sim::EndedLaunch> primary = nullptr;
};

/// Of what comes before a launch.
Budget budgetOf(const SimOptions &options) {
  return {options.time_limit_s, options.memory_limit_bytes, options.cancel};
}

class SimDevice final : public Device, public Simulation {
public:
  explicit SimDevice(const SimOptions &options)
      : memory_(std::make_shared<sim::GlobalMemory>()),
        streams_(std::make_shared<sim::Streams>()), options_(options),
        description_(options.device) {
    check_sim_options(options);
  }

  const SimOptions &options() const override { return options_; }
  std::unique_ptr<Snapshot> snapshot() override {
    return sim::takeSnapshot(memory_, streams_);
  }
  std::shared_ptr<LoadedModule>
  load_at(std::span<const std::string_view> ptx,
          const sim::VariablePlaces &places) override {
    std::lock_guard lock(streams_->mutex());
    BudgetScope scope(budgetOf(options_), "the reading of the PTX");
    return std::make_shared<sim::SimModule>(memory_, ptx, description_, places);
  }
  void check(const LaunchDescription &description) override {
    std::lock_guard lock(streams_->mutex());
    makeReady(description, true);
  }
  bool can_reorder(const LaunchDescription &description) override;
  bool is_repeatable(const LaunchDescription &description) override;
  bool lets_dependents_begin(const LaunchDescription &description) override;
  void enqueue_chain(std::span<const LaunchDescription> descriptions,
                     const Stream &stream,
                     std::function<void(LaunchResult)> ended) override;
  std::vector<LaunchResult>
  launch_chain(std::span<const LaunchDescription> descriptions,
               const Stream &stream) override;

  bool has(Facility) const override { return true; }
  Simulation *simulation() override { return this; }
  DeviceKind kind() const override { return DeviceKind::sim; }
  std::string name() const override {
    return fmt::format("sim ({})", description_.name);
  }
  const DeviceDescription &description() const override { return description_; }

  Buffer allocate(std::size_t bytes) override {
    std::lock_guard lock(streams_->mutex());
    return fresh(memory_->allocate(bytes, "", sim::Fresh::spoilt));
  }
  Buffer allocate_at(std::uint64_t address, std::size_t bytes) override {
    std::lock_guard lock(streams_->mutex());
    return fresh(memory_->allocateAt(address, bytes, "", sim::Fresh::spoilt));
  }
  std::uint64_t allocate_unheld(std::size_t bytes) override {
    std::lock_guard lock(streams_->mutex());
    checkMemory(bytes);
    return memory_->allocate(bytes, "", sim::Fresh::spoilt).base;
  }
  void allocate_again(std::uint64_t address, std::size_t bytes,
                      const Stream &stream) override {
    std::lock_guard lock(streams_->mutex());
    checkMemory(bytes);
    memory_->revive(address, bytes);
    // Where it is there it may have to be freed first.
    streams_->put(queueOf(stream), [memory = memory_, address, bytes](bool) {
      memory->revive(address, bytes);
      return State::done;
    });
  }
  void free_in_stream(std::uint64_t address, const Stream &stream) override {
    std::lock_guard lock(streams_->mutex());
    streams_->put(queueOf(stream), [memory = memory_, address](bool) {
      memory->retire(address);
      return State::done;
    });
  }
  Place touch(std::uint64_t address, std::size_t bytes, bool isWrite) override {
    std::lock_guard lock(streams_->mutex());
    auto isThere = [](const sim::Region *region, std::uint64_t at) {
      return region && at - region->base < region->bytes;
    };
    sim::Region *region = memory_->find(address);
    if (!region || !sim::isInside(address - region->base, bytes, region->bytes))
      return {.what = memory_->describe(isThere(region, address)
                                            ? address + bytes - 1
                                            : address),
              .is_freed = memory_->isFreed(address)};
    region->touch(address, bytes, isWrite);
    std::size_t offset = address - region->base;
    Place place{.data = reinterpret_cast<std::byte *>(region->at(address))};
    if (isWrite)
      region->valid.set(offset, bytes);
    else if (!region->valid.all(offset, bytes))
      for (std::size_t i = 0; i < bytes && !place.unwritten; ++i)
        if (!region->valid.all(offset + i, 1))
          place.unwritten = i;
    return place;
  }
  Buffer share(void *data, std::size_t bytes) override {
    std::lock_guard lock(streams_->mutex());
    return own(memory_->share(data, bytes, ""));
  }
  void set_name(const Buffer &buffer, std::string_view name) override {
    std::lock_guard lock(streams_->mutex());
    locate(buffer, 0, "set_name").name = name;
  }
  void copy_in(const Buffer &to, const void *from, std::size_t bytes,
               const Stream &stream) override {
    doInTurn(stream, [&] {
      sim::Region &region = locate(to, bytes, "copy_in");
      region.touch(to.address(), bytes, /*isWrite=*/true);
      std::memcpy(region.at(to.address()), from, bytes);
      region.valid.set(to.address() - region.base, bytes);
    });
  }
  void copy_out(void *to, const Buffer &from, std::size_t bytes,
                const Stream &stream) override {
    doInTurn(stream, [&] {
      sim::Region &region = locate(from, bytes, "copy_out");
      std::memcpy(to, region.at(from.address()), bytes);
    });
  }
  void fill(const Buffer &buffer, std::uint8_t byte,
            const Stream &stream) override {
    doInTurn(stream, [&] {
      sim::Region &region = locate(buffer, buffer.bytes(), "fill");
      region.touch(buffer.address(), buffer.bytes(), /*isWrite=*/true);
      std::memset(region.at(buffer.address()), byte, buffer.bytes());
      region.valid.set(buffer.address() - region.base, buffer.bytes());
    });
  }

  Stream create_stream(bool isBlocking) override {
    sim::Streams::Queue &queue = streams_->add(isBlocking);
    return Stream(&queue, std::shared_ptr<void>(&queue, [streams = streams_](
                                                            void *native) {
      streams->remove(*static_cast<sim::Streams::Queue *>(native));
    }));
  }
  Event create_event() override {
    auto event = std::make_shared<SimEvent>();
    return Event(event.get(), event);
  }
  void record(const Event &event, const Stream &stream) override {
    SimEvent &point = of(event);
    std::lock_guard lock(streams_->mutex());
    std::uint64_t number = ++point.recorded;
    // The event may be gone by then.
    streams_->put(queueOf(stream), [event, &point, number](bool) {
      point.happened = std::max(point.happened, number);
      point.time = Clock::now();
      point.primary = nullptr;
      return State::done;
    });
  }
  void record_trigger(const Event &event, const Stream &stream) override {
    SimEvent &point = of(event);
    std::lock_guard lock(streams_->mutex());
    std::uint64_t number = ++point.recorded;
    sim::Streams::Queue &queue = queueOf(stream);
    streams_->put(queue, [event, &point, &queue, number](bool) {
      point.happened = std::max(point.happened, number);
      point.time = Clock::now();
      point.primary = queue.previous;
      // A dependent launch behind it is still directly behind the launch.
      if (queue.previous)
        queue.previous = std::make_shared<sim::EndedLaunch>(*queue.previous);
      return State::done;
    });
  }
  void wait(const Event &event, const Stream &stream) override {
    SimEvent &point = of(event);
    std::lock_guard lock(streams_->mutex());
    std::uint64_t number = point.recorded;
    sim::Streams::Queue &queue = queueOf(stream);
    streams_->put(queue, [event, &point, &queue, number](bool) {
      if (point.happened < number)
        return State::waiting;
      if (point.primary) {
        auto ahead = std::make_shared<sim::EndedLaunch>(*point.primary);
        ahead->isByEvent = true;
        queue.previous = std::move(ahead);
      }
      return State::done;
    });
  }
  bool is_done(const Stream &stream) override {
    return streams_->isEmpty(queueOf(stream));
  }
  bool is_done(const Event &event) override {
    std::lock_guard lock(streams_->mutex());
    return of(event).happened >= of(event).recorded;
  }
  void enqueue_copy(std::uint64_t to, std::uint64_t from, std::size_t bytes,
                    const Stream &stream) override {
    std::lock_guard lock(streams_->mutex());
    memory_->checkCopy(to, from, bytes);
    streams_->put(queueOf(stream), [memory = memory_, to, from, bytes](bool) {
      memory->copy(to, from, bytes);
      return State::done;
    });
  }
  void enqueue_fill(std::uint64_t to, std::uint32_t value, int elementBytes,
                    std::size_t count, const Stream &stream) override {
    std::lock_guard lock(streams_->mutex());
    memory_->checkCopy(to, to, count * static_cast<std::size_t>(elementBytes));
    streams_->put(queueOf(stream),
                  [memory = memory_, to, value, elementBytes, count](bool) {
                    memory->fill(to, value, elementBytes, count);
                    return State::done;
                  });
  }
  void call(std::function<void()> function, const Stream &stream) override {
    streams_->putCall(queueOf(stream), std::move(function));
  }
  double elapsed_us(const Event &from, const Event &to) override {
    streams_->finish([&] { return is_done(from) && is_done(to); });
    return std::chrono::duration<double, std::micro>(of(to).time -
                                                     of(from).time)
        .count();
  }
  void synchronize(const Stream &stream) override {
    // As on a GPU: the default stream waits for the others.
    const auto *queue = stream.native() ? &queueOf(stream) : nullptr;
    streams_->finish(queue);
    streams_->forgetPrevious(queue);
  }

  std::shared_ptr<LoadedModule>
  load(std::span<const std::string_view> ptx) override {
    return load_at(ptx, {});
  }
  int occupancy(const LaunchDescription &description) override;

  using Device::enqueue;
  using Device::launch;
  void enqueue(const LaunchDescription &description,
               const Stream &stream) override {
    LaunchResult result = launch(description, stream);
    if (!result.ok())
      throw FindingError(std::move(result));
  }
  void enqueue(const LaunchDescription &description, const Stream &stream,
               std::function<void(LaunchResult)> finished) override;
  LaunchResult launch(const LaunchDescription &description,
                      const Stream &stream) override;

private:
  static SimEvent &of(const Event &event) {
    if (!event.native())
      userError("an event made by Event() is not a point in a stream; make it "
                "with Device::create_event");
    return *static_cast<SimEvent *>(event.native());
  }
  sim::Streams::Queue &queueOf(const Stream &stream) {
    return stream.native()
               ? *static_cast<sim::Streams::Queue *>(stream.native())
               : streams_->defaultQueue();
  }
  /// What waits leaves its place in the stream when it has been done, no
  /// earlier.
  void checkMayWait() {
    if (streams_->isCaller())
      streams_->finish([] { return false; }); // throws
  }
  /// Behind what is in the stream; it has been done when this returns.
  template <typename Action>
  void doInTurn(const Stream &stream, const Action &action) {
    checkMayWait();
    bool isDone = false;
    streams_->put(queueOf(stream), [&](bool) {
      isDone = true;
      action();
      return State::done;
    });
    streams_->finish([&] { return isDone; });
  }
  /// Fresh memory, where the limit leaves room for it.
  Buffer fresh(sim::Region &region) {
    Buffer owner = own(region);
    checkMemory(region.bytes);
    return owner;
  }
  /// Throws RuntimeError where so many bytes more are beyond the limit.
  void checkMemory(std::size_t bytes) const {
    std::uint64_t limit = options_.memory_limit_bytes;
    std::uint64_t taken = limit ? residentBytes() : 0;
    if (limit && (taken > limit || bytes > limit - taken))
      runtimeError(
          "not enough memory for a buffer of {} bytes: the process has "
          "{} bytes, and the limit is {} bytes (--memory-limit)",
          bytes, taken, limit);
  }
  Buffer own(const sim::Region &region) {
    return Buffer(region.base, region.bytes,
                  std::make_shared<Allocation>(memory_, streams_, region.base));
  }
  sim::Region &locate(const Buffer &buffer, std::size_t bytes,
                      const char *what) {
    sim::Region *region = memory_->find(buffer.address());
    if (!region ||
        !sim::isInside(buffer.address() - region->base, bytes, region->bytes))
      userError("{} of {} bytes at {:#x}: {}", what, bytes, buffer.address(),
                memory_->describe(buffer.address()));
    return *region;
  }
  /// The module of a launch: its own, or that of its text.
  std::shared_ptr<const sim::SimModule> moduleOf(const LaunchDescription &);
  const SimOptions &optionsOf(const LaunchDescription &description) const {
    return description.options ? *description.options : options_;
  }
  /// Of its kernel, which the module keeps.
  const sim::Code &codeOf(const LaunchDescription &description);
  sim::LaunchConfig configOf(const LaunchDescription &description,
                             const ptx::Function &entry,
                             const sim::EntryRegisters &registers);
  std::shared_ptr<sim::PreparedLaunch>
  makeReady(const LaunchDescription &description, bool isAlone);
  /// In its turn; `finished` may be called before this returns.
  void start(std::shared_ptr<sim::PreparedLaunch> prepared,
             const Stream &stream, std::function<void(LaunchResult)> finished);

  std::shared_ptr<sim::GlobalMemory> memory_;
  std::shared_ptr<sim::Streams> streams_;
  const SimOptions options_;
  const DeviceDescription description_;
  /// By the hash of their text.
  std::map<std::string, std::shared_ptr<sim::SimModule>> modules_;
};

} // namespace

std::shared_ptr<const sim::SimModule>
SimDevice::moduleOf(const LaunchDescription &description) {
  if (description.module) {
    auto module =
        std::dynamic_pointer_cast<const sim::SimModule>(description.module);
    if (!module)
      userError("the module of the launch was loaded by another kind of "
                "device; load it with Device::load of this one");
    return module;
  }
  auto &known = modules_[hashHex(description.ptx)];
  if (!known)
    known = std::make_shared<sim::SimModule>(
        memory_, std::span(&description.ptx, 1), description_);
  return known;
}

/// Lay the parameters out as the entry declares them.
static std::vector<std::uint8_t>
packParameters(const ptx::Function &entry,
               const std::vector<LaunchParameter> &parameters,
               const DeviceDescription &device) {
  if (parameters.size() != entry.parameters.size())
    userError("{} takes {} parameters and was given {}", entry.name,
              entry.parameters.size(), parameters.size());
  std::vector<std::uint64_t> offsets = sim::parameterOffsets(entry, device);
  std::vector<std::uint8_t> bytes(offsets.back());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ptx::Variable &declared = entry.parameters[i];
    std::vector<std::uint8_t> value;
    auto take = [&](const void *from, std::size_t size) {
      auto *first = static_cast<const std::uint8_t *>(from);
      value.assign(first, first + size);
    };
    const auto &given = parameters[i].value;
    if (auto *buffer = std::get_if<Buffer>(&given)) {
      std::uint64_t address = buffer->address();
      take(&address, 8);
    } else if (auto *scalar = std::get_if<Scalar>(&given)) {
      take(&scalar->bits, size_bytes(scalar->type));
    } else if (auto *map = std::get_if<TensorMap>(&given)) {
      check(*map, fmt::format("tensor map of parameter {}", i));
      auto image = sim::encode(*map);
      take(image.data(), image.size());
    } else {
      const auto &raw = std::get<std::vector<std::byte>>(given);
      take(raw.data(), raw.size());
    }
    if (value.size() != declared.bytes)
      userError("parameter {} of {} has {} bytes and was given {}", i,
                entry.name, declared.bytes, value.size());
    std::copy(value.begin(), value.end(), bytes.begin() + offsets[i]);
  }
  return bytes;
}

/// Refuse a grid whose CTAs wait for each other and cannot all be there.
static void checkCoResident(const ptx::Function &entry,
                            const sim::LaunchConfig &config,
                            std::uint32_t staticSmemBytes) {
  const DeviceDescription &device = config.device;
  auto count = [](const sim::Dim3 &size) {
    return std::uint64_t(size[0]) * size[1] * size[2];
  };
  sim::Residency residency = sim::residencyOf(config, staticSmemBytes);
  if (count(config.grid) <= residency.ctas)
    return;
  userError("the {} CTAs of {} wait for one another, and {} holds {} at once: "
            "{} on each of {} SMs, limited by {}, with {} threads, {} bytes of "
            "shared memory and {} registers per thread; launch at most so many",
            count(config.grid), entry.name, device.name, residency.ctas,
            residency.perSm, device.sms, residency.limit, count(config.block),
            residency.smemBytes, config.registers_at_entry);
}

sim::LaunchConfig SimDevice::configOf(const LaunchDescription &description,
                                      const ptx::Function &entry,
                                      const sim::EntryRegisters &registers) {
  const SimOptions &options = optionsOf(description);
  sim::LaunchConfig config{options};
  LaunchDescription shape;
  shape.grid = description.grid;
  shape.block = description.block;
  shape.dynamic_smem_bytes = description.dynamic_smem_bytes;
  shape.cluster = sim::clusterOf(entry, description.cluster);
  checkShape(shape, entry.name, description_);
  sim::checkBlock(entry, description.block);
  config.grid = shape.grid;
  config.block = shape.block;
  config.cluster = shape.cluster;
  config.dynamicSmemBytes = description.dynamic_smem_bytes;
  config.params = packParameters(entry, description.parameters, description_);
  config.device = description_;
  config.isCooperative = options.co_resident || description.cooperative;
  config.sharedObjects = description.shared_objects;
  config.registers_at_entry = registers.count;
  return config;
}

std::shared_ptr<sim::PreparedLaunch>
SimDevice::makeReady(const LaunchDescription &description, bool isAlone) {
  const SimOptions &options = optionsOf(description);
  check_sim_options(options);
  BudgetScope scope(budgetOf(options), "the decoding of the PTX");
  auto prepared = std::make_shared<sim::PreparedLaunch>();
  prepared->module = moduleOf(description);
  const sim::SimModule &module = *prepared->module;
  const ptx::Function &entry = module.find(description.name);
  // Launches that follow, and those that were only checked, ask it once.
  auto byPtxas = [&] { return module.ptxasRegisters(entry); };
  prepared->registers = sim::registersAtEntry(entry, options, byPtxas);
  sim::LaunchConfig config = configOf(description, entry, prepared->registers);
  config.isAlone = isAlone;
  if (options.profile) {
    auto profiled = sim::profiledRegisters(prepared->registers, byPtxas);
    config.profiledRegisters = profiled.count;
    config.profiledRegistersFrom = profiled.from;
  }
  if (options.target_check)
    module.checkTarget(entry);
  auto decoded = module.decoded(entry, description.dynamic_smem_bytes);
  if (options.co_resident || description.cooperative)
    checkCoResident(entry, config, decoded->staticSharedBytes);
  // As a GPU launches kernels of Kiln.
  prepared->isDependent = description.dependent ||
                          (!description.module && decoded->code.hasPrimaryWait);
  prepared->launch =
      std::make_unique<sim::Launch>(*memory_, std::move(decoded), config);
  return prepared;
}

void SimDevice::start(std::shared_ptr<sim::PreparedLaunch> prepared,
                      const Stream &stream,
                      std::function<void(LaunchResult)> finished) {
  auto chain = std::make_shared<sim::LaunchChain>(queueOf(stream));
  chain->add(std::move(prepared), std::move(finished));
  streams_->put(queueOf(stream),
                [chain](bool isLast) { return chain->advance(isLast); });
}

std::vector<LaunchResult>
SimDevice::launch_chain(std::span<const LaunchDescription> descriptions,
                        const Stream &stream) {
  checkMayWait();
  std::vector<LaunchResult> results;
  enqueue_chain(descriptions, stream, [&](LaunchResult result) {
    results.push_back(std::move(result));
  });
  streams_->finish([&] { return results.size() == descriptions.size(); });
  return results;
}

void SimDevice::enqueue_chain(std::span<const LaunchDescription> descriptions,
                              const Stream &stream,
                              std::function<void(LaunchResult)> ended) {
  std::lock_guard lock(streams_->mutex());
  auto chain = std::make_shared<sim::LaunchChain>(queueOf(stream));
  for (const LaunchDescription &description : descriptions)
    chain->add(makeReady(description, false), ended);
  streams_->put(queueOf(stream),
                [chain](bool isLast) { return chain->advance(isLast); });
}

void SimDevice::enqueue(const LaunchDescription &description,
                        const Stream &stream,
                        std::function<void(LaunchResult)> finished) {
  std::lock_guard lock(streams_->mutex());
  start(makeReady(description, false), stream, std::move(finished));
}

LaunchResult SimDevice::launch(const LaunchDescription &description,
                               const Stream &stream) {
  checkMayWait();
  std::optional<LaunchResult> result;
  {
    std::lock_guard lock(streams_->mutex());
    start(makeReady(description, streams_->areEmpty()), stream,
          [&](LaunchResult found) { result = std::move(found); });
  }
  streams_->finish([&] { return result.has_value(); });
  streams_->forgetPrevious(&queueOf(stream));
  return std::move(*result);
}

int SimDevice::occupancy(const LaunchDescription &description) {
  std::lock_guard lock(streams_->mutex());
  auto module = moduleOf(description);
  const ptx::Function &entry = module->find(description.name);
  sim::LaunchConfig config;
  config.block = description.block;
  config.cluster = sim::clusterOf(entry, description.cluster);
  config.dynamicSmemBytes = description.dynamic_smem_bytes;
  config.device = description_;
  config.registers_at_entry = module->registers(entry.name);
  return sim::residencyOf(config, module->entry(entry.name).static_smem_bytes)
      .perSm;
}

bool SimDevice::can_reorder(const LaunchDescription &description) {
  return sim::canReorder(codeOf(description));
}

bool SimDevice::is_repeatable(const LaunchDescription &description) {
  return !description.dependent && sim::isRepeatable(codeOf(description));
}

bool SimDevice::lets_dependents_begin(const LaunchDescription &description) {
  return codeOf(description).hasTrigger;
}

const sim::Code &SimDevice::codeOf(const LaunchDescription &description) {
  std::lock_guard lock(streams_->mutex());
  BudgetScope scope(budgetOf(optionsOf(description)),
                    "the decoding of the PTX");
  auto module = moduleOf(description);
  return module
      ->decoded(module->find(description.name), description.dynamic_smem_bytes)
      ->code;
}

Footprint::~Footprint() = default;

Snapshot::~Snapshot() = default;

Simulation::~Simulation() = default;

/// What stands behind .target, up to a comma; empty where there is none.
static std::string targetOf(std::string_view ptx) {
  std::string text = blankCommentsAndStrings(ptx);
  std::size_t begin = findWord(text, ".target");
  if (begin == std::string::npos)
    return "";
  begin = text.find_first_not_of(" \t\r\n", begin + std::strlen(".target"));
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_first_of(", \t\r\n", begin) - begin);
}

const DeviceDescription &sim_device_for(std::string_view ptx) {
  // The text is parsed where it is loaded, once; a target that is none is a
  // mistake at a line.
  std::string target = targetOf(ptx);
  try {
    return target.empty() ? DeviceDescription::h200()
                          : DeviceDescription::to_simulate(target);
  } catch (const UserError &) {
    ptx::parse(std::string(ptx));
    throw;
  }
}

std::shared_ptr<Device> open_sim(const SimOptions &options) {
  return std::make_shared<SimDevice>(options);
}

std::array<std::byte, 128> sim_tensor_map(const TensorMap &map) {
  check(map, "tensor map");
  return std::bit_cast<std::array<std::byte, 128>>(sim::encode(map));
}

} // namespace kiln
