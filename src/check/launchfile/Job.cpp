// Job: read what a launch file names, give buffers memory, and bind arguments.
#include "check/launchfile/Memory.h"
#include "kiln/base/file.h"
#include "kiln/check/sim.h"
#include "kiln/run/host_memory.h"
#include "support/Error.h"
#include "support/text/JsonNode.h"
#include "support/text/Npy.h"

#include <algorithm>

namespace kiln {

using launchfile::describe;

/// Whether a text is JSON: a launch file or a saved kernel.
static bool isJson(const std::string &text) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

Kernel read_kernel(const std::string &path) {
  std::string text = read_file(path);
  return isJson(text) ? Kernel::deserialize(text, path) : Kernel{.ptx = text};
}

bool names_its_ptx(const std::string &path) {
  std::string text = read_file(path);
  if (!isJson(text))
    return false;
  nlohmann::json root = parseJson(text, path);
  return root.contains("ptx") && root["ptx"].is_array();
}

/// Read what a buffer begins with and should be.
static void readArrays(LaunchJob &job, const BufferSpec &buffer) {
  job.initial.push_back(launchfile::initialBytes(buffer));
  job.written.emplace_back();
  if (!buffer.written_path.empty())
    job.written.back() =
        readNpy(buffer.written_path, Type::u8, {(buffer.bytes() + 7) / 8},
                buffer.where + ".written");
  job.expected.emplace_back();
  if (!buffer.expected_path.empty())
    job.expected.back() = readNpy(buffer.expected_path, buffer.type,
                                  buffer.shape, buffer.where + ".expected");
}

LaunchJob LaunchJob::of(LaunchFile file, std::vector<std::string> ptx,
                        std::vector<std::string> ptx_paths) {
  LaunchJob job{.file = std::move(file),
                .ptx = std::move(ptx),
                .ptx_paths = std::move(ptx_paths)};
  if (job.ptx.empty() || job.ptx.size() != job.ptx_paths.size())
    userError("{} texts of PTX have {} names; each has one, and there is one "
              "text at least",
              job.ptx.size(), job.ptx_paths.size());
  // Each buffer is on the device, and here with what it begins with and should
  // be.
  HostMemory together;
  for (const BufferSpec &buffer : job.file.buffers)
    for (int copy = 0; copy < 2; ++copy)
      together.take(buffer.bytes(), describe(buffer));
  for (const BufferSpec &buffer : job.file.buffers)
    readArrays(job, buffer);
  return job;
}

LaunchJob LaunchJob::load(const std::string &ptx_path,
                          const std::string &launch_path) {
  LaunchFile file = LaunchFile::load(launch_path);
  std::vector<std::string> paths = file.ptx_paths, texts;
  if (!ptx_path.empty())
    paths = {ptx_path};
  if (paths.empty())
    userError("{} names no PTX: name it in 'ptx', or beside the launch file",
              launch_path);
  for (const std::string &path : paths)
    texts.push_back(read_kernel(path).ptx);
  return of(std::move(file), std::move(texts), std::move(paths));
}

/// The file that the simulator knows by a number, or by none.
static const std::string &pathOf(const LaunchJob &job,
                                 const std::string &file) {
  for (std::size_t i = 0; i < job.ptx_paths.size(); ++i)
    if (file == (job.ptx.size() == 1 ? "PTX" : fmt::format("PTX {}", i + 1)))
      return job.ptx_paths[i];
  return file;
}

/// What is refused names its place in the PTX, or in the launch file.
[[noreturn]] static void refuse(const UserError &error, const LaunchJob &job,
                                const std::string &where) {
  const std::string &file = error.where().file;
  if (const std::string &path = pathOf(job, file); path != file)
    throw UserError(SourceLine(path, error.where().line), error.message());
  userError("{}: {}", where, error.what());
}

DeviceDescription LaunchJob::device() const {
  try {
    return sim_device_for(ptx.front());
  } catch (const UserError &error) {
    refuse(error, *this, ptx_paths.front());
  }
}

SimOptions LaunchJob::sim_options(SimOptions chosen) const {
  if (file.registers_at_entry)
    chosen.registers_at_entry = file.registers_at_entry;
  chosen.co_resident |= file.is_co_resident;
  return chosen;
}

SimOptions LaunchJob::sim_options() const {
  return sim_options(SimOptions{.device = device()});
}

PreparedJob::PreparedJob(LaunchJob job, std::shared_ptr<Device> device)
    : job_(std::move(job)), device_(std::move(device)) {
  allocate();
  fill();
  Simulation *simulation = device_->simulation();
  std::shared_ptr<const SimOptions> options;
  if (simulation)
    options =
        std::make_shared<SimOptions>(job_.sim_options(simulation->options()));
  for (const LaunchSpec &spec : job_.file.launches) {
    try {
      launches_.push_back(describe(spec));
      launches_.back().options = options;
      if (simulation)
        simulation->check(launches_.back());
    } catch (const UserError &error) {
      refuse(error, job_, spec.where);
    }
  }
}

/// Load the PTX, with its variables where the file says.
std::shared_ptr<const LoadedModule> PreparedJob::load_module() {
  std::map<std::string, std::uint64_t> places;
  for (const BufferSpec &buffer : job_.file.buffers)
    if (buffer.is_variable && buffer.address)
      places[buffer.name] = *buffer.address;
  std::vector<std::string_view> texts(job_.ptx.begin(), job_.ptx.end());
  try {
    return places.empty() ? device_->load(texts)
                          : device_->simulation()->load_at(texts, places);
  } catch (const UserError &error) {
    refuse(error, job_, job_.ptx_paths.front());
  }
}

/// A variable of the module, of the size that the file says.
static Buffer findVariable(const LoadedModule &module,
                           const BufferSpec &buffer) {
  Buffer variable = module.variable(buffer.name);
  if (variable.bytes() != buffer.bytes())
    userError("the variable '{}' has {} bytes, not {}", buffer.name,
              variable.bytes(), buffer.bytes());
  return variable;
}

/// Refuse what a device that is no simulator cannot do.
static void checkFacilities(const Device &device, const LaunchFile &file) {
  auto refuseMap = [&](const LaunchFileArgument &argument,
                       const std::string &where) {
    if (launchfile::hasMapInside(argument))
      userError("{}: a tensor map inside a struct or a buffer is for the "
                "simulator; {} is none",
                where, device.name());
  };
  for (const BufferSpec &buffer : file.buffers) {
    if (buffer.address)
      userError("{}.address: a given address is for the simulator; {} is none",
                buffer.where, device.name());
    // A field is inside, whatever it is.
    for (const LaunchFileField &field : buffer.fields)
      refuseMap({StructArgument{0, {field}}}, buffer.where + ".fields");
  }
  for (const LaunchSpec &launch : file.launches)
    for (const LaunchFileArgument &argument : launch.arguments)
      refuseMap(argument, launch.where);
}

/// Memory for each: first for those that must lie somewhere, then for the
/// module and its variables, then for the others.
void PreparedJob::allocate() {
  const std::vector<BufferSpec> &specs = job_.file.buffers;
  if (!device_->simulation())
    checkFacilities(*device_, job_.file);
  buffers_.resize(specs.size());
  auto allocateAll = [&](auto &&isWanted, auto &&make) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const BufferSpec &spec = specs[i];
      if (!isWanted(spec))
        continue;
      try {
        buffers_[i] = make(spec);
      } catch (const UserError &error) {
        userError("{}.{}: {}", spec.where,
                  spec.is_variable ? "variable" : "address", error.message());
      }
      device_->set_name(buffers_[i], spec.name);
    }
  };
  allocateAll([](const BufferSpec &b) { return !b.is_variable && b.address; },
              [&](const BufferSpec &b) {
                return device_->simulation()->allocate_at(*b.address,
                                                          b.bytes());
              });
  module_ = load_module();
  allocateAll([](const BufferSpec &b) { return b.is_variable; },
              [&](const BufferSpec &b) { return findVariable(*module_, b); });
  allocateAll(
      [](const BufferSpec &b) { return !b.is_variable && !b.address; },
      [&](const BufferSpec &b) { return device_->allocate(b.bytes()); });
}

/// Copy in what is written, in runs.
static void copyWritten(Device &device, const Buffer &to,
                        const LaunchJob::Bytes &data,
                        const LaunchJob::Bytes &written) {
  auto isWritten = [&](std::size_t i) {
    return (written[i / 8] >> (i % 8) & std::byte(1)) != std::byte(0);
  };
  for (std::size_t i = 0; i < data.size();) {
    std::size_t end = i + 1;
    while (end < data.size() && isWritten(end) == isWritten(i))
      ++end;
    if (isWritten(i))
      device.copy_in(Buffer(to.address() + i, end - i), data.data() + i,
                     end - i);
    i = end;
  }
}

/// Give each buffer what it begins with. Fields may point to any other.
void PreparedJob::fill() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const auto &initial = job_.initial[i];
    if (initial && !initial->empty() && job_.written[i])
      copyWritten(*device_, buffers_[i], *initial, *job_.written[i]);
    else if (initial && !initial->empty())
      device_->copy_in(buffers_[i], initial->data(), initial->size());
    for (const LaunchFileField &field : job_.file.buffers[i].fields) {
      LaunchJob::Bytes bytes = launchfile::bytesOf(field.argument, buffers_);
      Buffer place(buffers_[i].address() + field.offset, bytes.size());
      device_->copy_in(place, bytes.data(), bytes.size());
    }
  }
}

LaunchDescription PreparedJob::describe(const LaunchSpec &launch) const {
  LaunchDescription description{.name = launch.kernel,
                                .ptx = {},
                                .grid = launch.grid,
                                .block = launch.block,
                                .cluster = launch.cluster,
                                .dynamic_smem_bytes =
                                    launch.dynamic_smem_bytes.value_or(0),
                                .parameters = {},
                                .dependent = launch.is_dependent,
                                .module = module_,
                                .shared_objects = job_.file.shared_objects};
  for (const LaunchFileArgument &argument : launch.arguments)
    description.parameters.push_back(launchfile::bind(argument, buffers_));
  return description;
}

void PreparedJob::name_places(Finding &finding) const {
  auto rename = [&](SourceLine &where) {
    where.file = pathOf(job_, where.file);
  };
  rename(finding.where);
  for (Finding::Frame &frame : finding.stack)
    rename(frame.where);
  if (!finding.other)
    return;
  rename(finding.other->where);
  for (Finding::Frame &frame : finding.other->stack)
    rename(frame.where);
}

std::vector<ReportedLaunch> PreparedJob::launches() const {
  std::vector<ReportedLaunch> all;
  for (const LaunchDescription &launch : launches_)
    all.push_back({.kernel = launch.name.empty() ? module_->entries().front()
                                                 : launch.name,
                   .grid = launch.grid,
                   .block = launch.block,
                   .cluster = launch.cluster});
  return all;
}

std::vector<LaunchJob::Bytes> PreparedJob::memory() const {
  std::vector<LaunchJob::Bytes> all;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    all.emplace_back();
    const BufferSpec &spec = job_.file.buffers[i];
    if (!spec.is_output && !job_.expected[i])
      continue;
    all[i] = host_bytes(launchfile::describe(spec), buffers_[i].bytes());
    if (!all[i].empty())
      device_->copy_out(all[i].data(), buffers_[i], buffers_[i].bytes());
  }
  return all;
}

} // namespace kiln
