// Session: open the device, and keep what the program has.
#include "cudart/Session.h"
#include "cudart/Fatbin.h"
#include "cudart/Forked.h"
#include "cudart/Handles.h"
#include "cudart/LaunchWatch.h"
#include "cudart/LinkedText.h"
#include "kiln/check/explanation.h"
#include "kiln/check/sim.h"
#include "kiln/check/simulation.h"
#include "kiln/run/open_device.h"
#include "support/Error.h"
#include "support/Knobs.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sys/mman.h>

namespace kiln::cudart {

/// A line of PTX that begins with a word; empty: there is none.
static std::string lineOf(const std::string &ptx, const std::string &word) {
  std::size_t at = ptx.find(word);
  return at == std::string::npos
             ? ""
             : ptx.substr(at, ptx.find('\n', at) - at) + "\n";
}

/// What kernels call of CUDA's device runtime and Kiln has: the value of a
/// conditional node lies where its handle says.
static void addDeviceRuntime(std::vector<std::string> &ptx) {
  for (const std::string &text : ptx)
    if (text.find(".extern .func cudaGraphSetConditional") !=
        std::string::npos) {
      ptx.push_back(lineOf(text, ".version") + lineOf(text, ".target") +
                    R"(.address_size 64
.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
.reg .b64 %handle;
.reg .b32 %value;
ld.param.b64 %handle, [handle];
ld.param.b32 %value, [value];
st.global.b32 [%handle], %value;
ret;
}
)");
      return;
    }
}

std::vector<std::string> ProgramModule::texts() const {
  const DeviceDescription &device = Session::get().description();
  FatbinText text =
      isWrapper_ ? readFatbin(image_, device) : readImage(image_, device);
  if (text.ptx.empty())
    throw NoKernels(
        fmt::format("{}; {}", text.missing, Session::get().advice()));
  if (!isWrapper_ && text.ptx.size() == 1)
    text.ptx = splitTexts(text.ptx.front());
  addDeviceRuntime(text.ptx);
  return std::move(text.ptx);
}

std::shared_ptr<const LoadedModule> ProgramModule::share() {
  Device &device = Session::get().opened();
  std::lock_guard lock(mutex_);
  if (loaded_)
    return loaded_;
  std::vector<std::string> ptx = texts();
  std::vector<std::string_view> parts(ptx.begin(), ptx.end());
  try {
    loaded_ = device.load(parts);
  } catch (const UserError &error) {
    throw InvalidPtx(error.what());
  }
  return loaded_;
}

LoadedModule &ProgramModule::get() {
  share();
  return *loaded_;
}

const EntryInfo &Function::entry() {
  if (!info)
    info = &module->get().entry(name);
  return *info;
}

Session &Session::get() {
  static Session *session = [] {
    auto *made = new Session; // NOLINT: never destroyed
    std::atexit([] { Session::get().conclude(); });
    return made;
  }();
  return *session;
}

/// A knob that is wrong ends the program: nothing after it means anything.
[[noreturn]] static void failToStart(const Error &error) {
  std::fprintf(stderr, "kiln: error: %s\n", error.what());
  std::fflush(stderr);
  std::_Exit(static_cast<int>(error.exit_status()));
}

Session::Session()
    : aside_([this](std::span<const LaunchDescription> launches,
                    const Stream &stream, bool isChosen, Finished finished) {
        explore(launches, stream, isChosen, std::move(finished));
      }) {
  try {
    set_from_environment(settings_, door_programs, readVariable);
    settings_.interleavings.list(); // throws where there are not so many
    if (!settings_.kernel.empty())
      kernels_.emplace("the pattern", settings_.kernel);
    if (!settings_.capture_folder.empty())
      capture_ = std::make_unique<Capture>(settings_.capture_folder);
    findings_.setReport(settings_.report_path);
    findings_.setProfile(settings_.profile_path);
    findings_.setMaxFindings(settings_.sim.max_findings);
    findings_.setStyle(settings_.is_verbose, settings_.has_summary);
  } catch (const Error &error) {
    failToStart(error);
  }
}

void Session::serveMlir() {
  isGpuAllowed_ = true;
  advice_ = "lower it with the option cubin-format=isa of "
            "gpu-lower-to-nvvm-pipeline, which gives PTX";
}

/// The targets of a module's PTX. What is no image is told where it is loaded.
static void addTargets(std::vector<std::string> &targets,
                       const ProgramModule &module) {
  try {
    for (std::string &target : targetsOf(module.image()))
      targets.push_back(std::move(target));
  } catch (const UserError &) {
    return;
  }
}

/// The H200, or who runs the first of the targets that any device runs. PTX for
/// none of them is told where it is loaded.
static const DeviceDescription &
deviceFor(const std::vector<std::string> &targets) {
  const DeviceDescription &usual = DeviceDescription::h200();
  for (const std::string &target : targets)
    if (usual.runs(target))
      return usual;
  for (const std::string &target : targets)
    try {
      return DeviceDescription::to_simulate(target);
    } catch (const UserError &) {
      continue;
    }
  return usual;
}

void Session::open() {
  DeviceDescription device = settings_.device(DeviceDescription::h200());
  if (settings_.gpu.empty()) {
    // The H200, unless the program has no kernel for it.
    std::lock_guard lock(mutex_);
    std::vector<std::string> targets;
    for (const auto &module : modules_)
      addTargets(targets, *module);
    device = settings_.device(deviceFor(targets));
  }
  explore_ = settings_.explore_options(device);
  LaunchWatch::get().attach(explore_.sim, settings_.total_time_limit_s);
  if (findings_.isWatched())
    LaunchWatch::get().catchSignals();
  device_ = isGpuAllowed_ ? open_device(value(Knob::device).value_or("auto"),
                                        explore_.sim)
                          : open_sim(explore_.sim);
  noteDeviceOpened();
}

void Session::conclude() {
  aside_.finish();
  findings_.conclude();
}

Device &Session::device() {
  Device &device = opened();
  aside_.finish();
  return device;
}

Device &Session::opened() {
  std::call_once(opened_, [this] {
    try {
      open();
    } catch (const Error &error) {
      failToStart(error);
    }
  });
  return *device_;
}

ProgramModule *Session::addModule(const void *image, bool isWrapper) {
  std::lock_guard lock(mutex_);
  modules_.push_back(std::make_unique<ProgramModule>(image, isWrapper));
  return modules_.back().get();
}

void Session::removeModule(ProgramModule *module) {
  aside_.finish();
  std::lock_guard lock(mutex_);
  std::erase_if(functions_,
                [&](const auto &row) { return row.second.module == module; });
  std::erase_if(variables_,
                [&](const auto &row) { return row.second.module == module; });
  std::erase_if(byName_,
                [&](const auto &row) { return row.first.first == module; });
  std::erase_if(modules_, [&](const auto &one) { return one.get() == module; });
}

void Session::addFunction(const void *handle, ProgramModule *module,
                          const char *name) {
  std::lock_guard lock(mutex_);
  Function function;
  function.module = module;
  function.name = name;
  functions_[handle] = std::move(function);
}

void Session::addVariable(const void *handle, Variable variable) {
  std::lock_guard lock(mutex_);
  variables_[handle] = std::move(variable);
}

void Session::placeManaged() {
  std::lock_guard lock(mutex_);
  for (auto &[handle, variable] : variables_)
    if (variable.managed)
      *variable.managed = reinterpret_cast<void *>(
          variable.module->get().variable(variable.name).address());
}

Function *Session::findFunction(const void *handle) {
  std::lock_guard lock(mutex_);
  auto found = functions_.find(handle);
  if (found != functions_.end())
    return &found->second;
  // A handle of cudaGetFuncBySymbol and its like is the function itself.
  for (auto &[key, function] : functions_)
    if (&function == handle)
      return &function;
  for (auto &[key, function] : byName_)
    if (&function == handle)
      return &function;
  return nullptr;
}

Variable *Session::findVariable(const void *handle) {
  std::lock_guard lock(mutex_);
  auto found = variables_.find(handle);
  if (found != variables_.end())
    return &found->second;
  // The host knows a managed variable by its address.
  for (auto &[key, variable] : variables_)
    if (variable.managed && *variable.managed == handle)
      return &variable;
  return nullptr;
}

Function *Session::functionOf(ProgramModule *module, const std::string &name) {
  const EntryInfo &entry = module->get().entry(name);
  std::lock_guard lock(mutex_);
  Function &function = byName_[{module, name}];
  function.module = module;
  function.name = name;
  function.info = &entry;
  return &function;
}

std::uint64_t Session::allocate(std::size_t bytes, MemPool *pool) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (pool)
    pool->take(bytes);
  Simulation *simulation = device().simulation();
  Buffer buffer = simulation
                      ? Buffer(simulation->allocate_unheld(bytes), bytes)
                      : device().allocate(bytes);
  std::lock_guard lock(mutex_);
  std::uint64_t address = buffer.address();
  allocations_[address] = {Allocation::Kind::device, std::move(buffer), 0,
                           nullptr, pool};
  return address;
}

void *Session::allocateHost(std::size_t bytes, Allocation::Kind kind,
                            unsigned flags) {
  constexpr std::size_t kPage = 4096;
  std::size_t pages = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage;
  // Zero, as what a driver gets from the system: programs rely on it, and nobody
  // sees the host read what it has not written.
  void *data = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw RuntimeError(
        fmt::format("could not allocate {} bytes of host memory", bytes));
  std::shared_ptr<void> owner(
      data, [size = pages * kPage](void *pointer) { munmap(pointer, size); });
  Buffer buffer = device().share(data, std::max<std::size_t>(bytes, 1));
  std::lock_guard lock(mutex_);
  std::uint64_t address = buffer.address();
  allocations_[address] = {kind, std::move(buffer), flags, std::move(owner)};
  return data;
}

void Session::registerHost(void *data, std::size_t bytes, unsigned flags) {
  Buffer buffer = device().share(data, bytes);
  std::lock_guard lock(mutex_);
  std::uint64_t address = buffer.address();
  allocations_[address] = {Allocation::Kind::registered, std::move(buffer),
                           flags, nullptr};
}

void Session::addMapped(void *data, std::size_t bytes) {
  Buffer buffer = device().share(data, bytes);
  std::lock_guard lock(mutex_);
  std::uint64_t address = buffer.address();
  allocations_[address] = {Allocation::Kind::mapped, std::move(buffer), 0,
                           nullptr};
}

/// It is the pool's again.
static void giveBack(const Allocation &allocation) {
  if (allocation.pool)
    allocation.pool->giveBack(allocation.buffer.bytes());
}

bool Session::free(std::uint64_t address,
                   std::initializer_list<Allocation::Kind> kinds) {
  aside_.finish();  // which may use it
  Allocation freed; // released without the mutex: it waits for launches
  {
    std::lock_guard lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end() ||
        std::find(kinds.begin(), kinds.end(), found->second.kind) ==
            kinds.end())
      return false;
    freed = std::move(found->second);
    allocations_.erase(found);
  }
  giveBack(freed);
  if (Simulation *simulation = device().simulation();
      simulation && freed.kind == Allocation::Kind::device) {
    device().synchronize();
    simulation->free_in_stream(address, {});
  }
  freed.buffer = {}; // before the memory of the host that it lies in
  return true;
}

std::uint64_t Session::holdAddress(std::size_t bytes) {
  Simulation &simulation = *device().simulation();
  std::uint64_t address = simulation.allocate_unheld(bytes);
  simulation.free_in_stream(address, {});
  return address;
}

bool Session::freeAsync(std::uint64_t address, const Stream &stream) {
  {
    std::lock_guard lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end() ||
        found->second.kind != Allocation::Kind::device)
      return false;
    giveBack(found->second);
    allocations_.erase(found);
  }
  device().simulation()->free_in_stream(address, stream);
  return true;
}

void Session::reviveAsync(std::uint64_t address, std::size_t bytes,
                          const Stream &stream) {
  device().simulation()->allocate_again(address, bytes, stream);
  MemPool &pool = MemPool::graphs();
  pool.take(bytes);
  std::lock_guard lock(mutex_);
  allocations_[address] = {Allocation::Kind::device, Buffer(address, bytes), 0,
                           nullptr, &pool};
}

std::optional<Allocation> Session::find(std::uint64_t address) {
  std::lock_guard lock(mutex_);
  auto above = allocations_.upper_bound(address);
  if (above == allocations_.begin())
    return std::nullopt;
  const Allocation &below = std::prev(above)->second;
  if (address - below.buffer.address() >= below.buffer.bytes())
    return std::nullopt;
  return below;
}

void Session::reset() {
  device().synchronize();
  std::vector<std::uint64_t> addresses;
  {
    std::lock_guard lock(mutex_);
    for (const auto &[address, allocation] : allocations_)
      addresses.push_back(address);
    for (auto &[handle, function] : functions_)
      if (function.module->isOfProgram())
        function.info = nullptr;
    for (auto &[key, function] : byName_)
      if (function.module->isOfProgram())
        function.info = nullptr;
    // The host holds the addresses of managed variables.
    std::set<ProgramModule *> kept;
    for (const auto &[handle, variable] : variables_)
      if (variable.managed)
        kept.insert(variable.module);
    for (const auto &module : modules_)
      if (module->isOfProgram() && !kept.contains(module.get()))
        module->unload();
  }
  using Kind = Allocation::Kind;
  for (std::uint64_t address : addresses)
    free(address, {Kind::device, Kind::host, Kind::managed, Kind::registered});
  Handles::get().clear();
}

bool Session::isAllocated(std::uint64_t address) {
  std::lock_guard lock(mutex_);
  return allocations_.contains(address);
}

void Session::tellHost(Finding finding) {
  auto isIn = [&](const std::vector<std::string> &ids) {
    return std::find(ids.begin(), ids.end(), finding.id) != ids.end();
  };
  if (!settings_.sim.checks && !explain(finding.id).ends_launch)
    return;
  if (isIn(settings_.sim.allow))
    return;
  if (isIn(settings_.sim.warn))
    finding.grade = Finding::Grade::warning;
  findings_.tellHost(std::move(finding));
}

int Session::occupancy(Function &function, std::array<std::uint32_t, 3> block,
                       std::uint32_t dynamicSmemBytes) {
  LaunchDescription description;
  description.name = function.name;
  description.module = function.module->share();
  description.block = block;
  description.dynamic_smem_bytes = dynamicSmemBytes;
  return device().occupancy(description);
}

} // namespace kiln::cudart
