// SimDevice: the simulator behind the device interface.
#include "kiln/assemble.h"
#include "kiln/sim.h"
#include "ptx/Diagnostics.h"
#include "sim/launch/Launch.h"
#include "sim/launch/Residency.h"
#include "sim/machine/TensorMapImage.h"
#include "sim/program/EntryRules.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/LaunchShape.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

namespace kiln {

namespace {

using Clock = std::chrono::steady_clock;

/// Buffers live as long as the memory they are in.
struct Allocation {
  std::shared_ptr<sim::GlobalMemory> memory;
  std::uint64_t base;
  ~Allocation() { memory->free(base); }
};

class SimDevice : public Device {
public:
  explicit SimDevice(const SimOptions &options)
      : options_(options), memory_(std::make_shared<sim::GlobalMemory>()) {
    for (const auto *list : {&options.allow, &options.warn})
      for (const std::string &id : *list)
        explain(id); // throws where there is none
  }

  std::string name() const override {
    return fmt::format("sim ({})", options_.device.name);
  }
  const DeviceDescription &description() const override {
    return options_.device;
  }

  Buffer allocate(std::size_t bytes) override {
    sim::Region &region = memory_->allocate(bytes, "");
    // NaN in every float type: what nobody writes cannot pass for a zero.
    std::memset(region.data.get(), 0xff, bytes);
    return Buffer(region.base, bytes,
                  std::make_shared<Allocation>(memory_, region.base));
  }
  void set_name(const Buffer &buffer, std::string_view name) override {
    locate(buffer, 0, "set_name").name = name;
  }
  void copy_in(const Buffer &to, const void *from, std::size_t bytes,
               const Stream &) override {
    sim::Region &region = locate(to, bytes, "copy_in");
    std::memcpy(region.at(to.address()), from, bytes);
    region.valid.set(to.address() - region.base, bytes);
  }
  void copy_out(void *to, const Buffer &from, std::size_t bytes,
                const Stream &) override {
    sim::Region &region = locate(from, bytes, "copy_out");
    std::memcpy(to, region.at(from.address()), bytes);
  }
  void fill(const Buffer &buffer, std::uint8_t byte, const Stream &) override {
    sim::Region &region = locate(buffer, buffer.bytes(), "fill");
    std::memset(region.at(buffer.address()), byte, buffer.bytes());
    region.valid.set(buffer.address() - region.base, buffer.bytes());
  }

  // Everything is done when it is asked for: streams have nothing to order.
  Stream create_stream() override { return Stream(); }
  Event create_event() override {
    auto time = std::make_shared<Clock::time_point>();
    return Event(time.get(), time);
  }
  void record(const Event &event, const Stream &) override {
    *static_cast<Clock::time_point *>(event.native()) = Clock::now();
  }
  double elapsed_us(const Event &from, const Event &to) override {
    auto at = [](const Event &event) {
      return *static_cast<Clock::time_point *>(event.native());
    };
    return std::chrono::duration<double, std::micro>(at(to) - at(from)).count();
  }
  void synchronize(const Stream &) override {}

  using Device::enqueue;
  using Device::launch;
  void enqueue(const LaunchDescription &description,
               const Stream &stream) override {
    LaunchResult result = launch(description, stream);
    for (const Finding &finding : result.findings)
      if (finding.grade == Finding::Grade::error)
        throw UserError(finding.where, finding.message);
  }
  LaunchResult launch(const LaunchDescription &description,
                      const Stream &) override;

private:
  sim::Region &locate(const Buffer &buffer, std::size_t bytes,
                      const char *what) {
    sim::Region *region = memory_->find(buffer.address());
    if (!region ||
        !sim::isInside(buffer.address() - region->base, bytes, region->bytes))
      userError("{} of {} bytes at {:#x}: {}", what, bytes, buffer.address(),
                memory_->describe(buffer.address()));
    return *region;
  }
  /// A module and its variables, which keep their values between launches.
  struct Loaded {
    Loaded(sim::GlobalMemory &memory, const std::string &text,
           const DeviceDescription &device)
        : module(ptx::parse(text)), variables(memory, module, device) {}
    ptx::Module module;
    sim::ModuleVariables variables;
  };
  const Loaded &load(std::string_view text);

  SimOptions options_;
  std::shared_ptr<sim::GlobalMemory> memory_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Loaded>> modules_; ///< by hash
};

} // namespace

const SimDevice::Loaded &SimDevice::load(std::string_view text) {
  std::string key = hashHex(text);
  std::lock_guard lock(mutex_);
  auto &loaded = modules_[key];
  if (!loaded)
    loaded =
        std::make_unique<Loaded>(*memory_, std::string(text), options_.device);
  return *loaded;
}

/// The entry that is meant, or why none is.
static const ptx::Function &findEntry(const ptx::Module &module,
                                      const std::string &name) {
  auto entries = module.entries();
  std::string known;
  for (const ptx::Function *entry : entries) {
    if (entry->name == name || (name.empty() && entries.size() == 1))
      return *entry;
    known += (known.empty() ? "" : ", ") + entry->name;
  }
  if (name.empty())
    userError("the PTX has {} entries ({}); name one", entries.size(), known);
  userError("the PTX has no entry '{}'; it has {}", name,
            known.empty() ? "none" : known);
}

/// Refuse PTX that the described device does not run. PTX that names no target
/// runs everywhere.
static void checkTarget(const ptx::Module &module,
                        const DeviceDescription &device) {
  if (module.target.empty() || device.runs(module.target))
    return;
  std::string others;
  for (std::string_view name : DeviceDescription::known_names())
    if (DeviceDescription::by_name(name).runs(module.target))
      others += fmt::format("{}{}", others.empty() ? "" : ", ", name);
  userErrorAt({"PTX", static_cast<unsigned>(module.targetLine)},
              "the PTX is for {}, and {} is simulated, which runs {} and older "
              "targets without a letter; {}",
              module.target, device.name, device.target(),
              others.empty() ? "no device that Kiln knows runs it"
                             : fmt::format("it runs on {}", others));
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

namespace {
struct EntryRegisters {
  int count = 0; ///< per thread; 0: nobody says
  const char *from = "";
};
} // namespace

/// As ptxas gives them, where one is found and takes the PTX.
static int registersByPtxas(const LaunchDescription &description,
                            const ptx::Module &module,
                            const ptx::Function &entry) {
  AssembleOptions options;
  options.target = module.target;
  // Slow code has registers too; not so where ptxas ignores setmaxnreg.
  for (const KnownDiagnostic &diagnostic : knownDiagnostics())
    if (std::string_view(diagnostic.instruction) != "setmaxnreg")
      options.allow.push_back(diagnostic.id);
  try {
    if (find_ptxas(options))
      return assemble(description.ptx, entry.name, options).resources.registers;
  } catch (const Error &) {
    // What ptxas says against the PTX is not the simulator's to tell.
  }
  return 0;
}

/// The largest number that a setmaxnreg of the entry names; 0: it has none.
static int mostAskedFor(const ptx::Function &entry) {
  std::uint64_t most = 0;
  for (const ptx::Instruction &instruction : entry.body)
    if (instruction.opcode == "setmaxnreg" && !instruction.operands.empty())
      most = std::max(most, instruction.operands[0].bits);
  return static_cast<int>(
      std::min<std::uint64_t>(most, DeviceDescription::max_role_registers));
}

/// Registers per thread that setmaxnreg starts from; none where ptxas would
/// ignore it.
static EntryRegisters registersAtEntry(const LaunchDescription &description,
                                       const ptx::Module &module,
                                       const ptx::Function &entry,
                                       const SimOptions &options) {
  if (options.registers_at_entry)
    return {options.registers_at_entry, "the launch"};
  auto find = [&](const char *name) -> int {
    auto found = entry.directives.find(name);
    return found == entry.directives.end() || found->second.empty()
               ? 0
               : found->second[0];
  };
  const char *threadsFrom = find("reqntid")   ? "reqntid"
                            : find("maxntid") ? "maxntid"
                                              : nullptr;
  bool isMoving = std::any_of(entry.body.begin(), entry.body.end(),
                              [](const ptx::Instruction &instruction) {
                                return instruction.opcode == "setmaxnreg";
                              });
  if (!find("maxnreg") && !threadsFrom)
    return {};
  // Assembling takes longer than many a launch: only where it matters.
  if (isMoving || options.co_resident)
    if (int count = registersByPtxas(description, module, entry))
      return {count, "ptxas"};
  if (int most = find("maxnreg"))
    return {std::min(most, options.device.max_registers_per_thread),
            ".maxnreg"};
  std::uint64_t threads = sim::threadsOf(entry, threadsFrom);
  int ctas = std::max(find("minnctapersm"), 1);
  auto registers = static_cast<int>(
      static_cast<std::uint64_t>(options.device.registers_per_sm / ctas) /
      threads / 8 * 8);
  // ptxas gives no thread more than the kernel itself will ask for.
  if (int most = mostAskedFor(entry))
    registers = std::min(registers, most);
  bool isRequired = std::string_view(threadsFrom) == "reqntid";
  return {std::min(registers, options.device.max_registers_per_thread / 8 * 8),
          isRequired ? ".reqntid and .minnctapersm"
                     : ".maxntid and .minnctapersm"};
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
            residency.smemBytes, config.registersAtEntry);
}

LaunchResult SimDevice::launch(const LaunchDescription &description,
                               const Stream &) {
  const Loaded &loaded = load(description.ptx);
  const ptx::Module &module = loaded.module;
  checkTarget(module, options_.device);
  const ptx::Function &entry = findEntry(module, description.name);
  sim::LaunchConfig config;
  LaunchDescription shape = description;
  shape.cluster = sim::clusterOf(entry, description.cluster);
  checkShape(shape, entry.name, options_.device);
  sim::checkBlock(entry, description.block);
  config.grid = shape.grid;
  config.block = shape.block;
  config.cluster = shape.cluster;
  config.dynamicSmemBytes = description.dynamic_smem_bytes;
  config.params =
      packParameters(entry, description.parameters, options_.device);
  config.device = options_.device;
  config.order = static_cast<sim::EffectOrder>(options_.order);
  config.seed = options_.seed;
  config.hasChecks = options_.checks;
  config.threads = options_.threads;
  config.maxInstructions = options_.max_instructions;
  config.timeLimitS = options_.time_limit_s;
  EntryRegisters registers =
      registersAtEntry(description, module, entry, options_);
  config.registersAtEntry = registers.count;
  config.allow = options_.allow;
  config.warn = options_.warn;
  config.hasStats = options_.stats;
  config.hasTimeline = options_.timeline;
  config.progress = options_.progress;
  config.cancel = options_.cancel;
  config.print = options_.print;
  sim::Launch launch(*memory_, module, entry, config, &loaded.variables);
  sim::Machine &machine = launch.machine();
  if (options_.co_resident)
    checkCoResident(entry, config, machine.staticSharedBytes());
  LaunchResult result;
  if (!options_.check_only) {
    result = launch.run();
    result.registers = registers.count;
    result.registers_from = registers.from;
  }
  std::optional<Finding> newer = sim::checkVersion(module);
  if (newer && !machine.findings().isAllowed(sim::FindingId::ptxVersion))
    result.findings.insert(result.findings.begin(), std::move(*newer));
  return result;
}

const DeviceDescription &sim_device_for(std::string_view ptx) {
  std::string target = ptx::parse(std::string(ptx)).target;
  return target.empty() ? DeviceDescription::h200()
                        : DeviceDescription::to_simulate(target);
}

std::shared_ptr<Device> open_sim(const SimOptions &options) {
  return std::make_shared<SimDevice>(options);
}

std::shared_ptr<Device> open_device(std::string_view id,
                                    const SimOptions &options) {
  if (id == "auto")
    id = list_devices().devices.empty() ? "sim" : "cuda";
  if (id == "sim")
    return open_sim(options);
  if (id == "cuda")
    return open_cuda();
  int ordinal = -1;
  if (std::sscanf(std::string(id).c_str(), "cuda:%d", &ordinal) == 1 &&
      ordinal >= 0)
    return open_cuda(ordinal);
  userError("'{}' is not a valid device; use auto, sim, cuda or cuda:N", id);
}

std::array<std::byte, 128> sim_tensor_map(const TensorMap &map) {
  check(map, "tensor map");
  return std::bit_cast<std::array<std::byte, 128>>(sim::encode(map));
}

SimOrder parse_sim_order(std::string_view text) {
  if (text == "eager")
    return SimOrder::eager;
  if (text == "lazy")
    return SimOrder::lazy;
  if (text == "random")
    return SimOrder::random;
  userError("'{}' is not a valid order; use eager, lazy or random", text);
}

} // namespace kiln
