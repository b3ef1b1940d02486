// sim_run: give buffers memory, launch, and fetch what is asked for.
#include "sim_run.h"

#include "launch_memory.h"
#include "npy.h"
#include "support/text/JsonNode.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>
#include <kiln/run/host_memory.h>

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace kiln::cli {

Kernel read_kernel(const std::string &path) {
  std::string text = read_file(path);
  // A saved kernel is JSON.
  std::size_t first = text.find_first_not_of(" \t\r\n");
  bool is_saved = first != std::string::npos && text[first] == '{';
  return is_saved ? Kernel::deserialize(text, path) : Kernel{.ptx = text};
}

bool names_its_ptx(const std::string &path) {
  std::string text = read_file(path);
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{')
    return false;
  nlohmann::json root = readJson(path);
  return root.contains("ptx") && root["ptx"].is_array();
}

SimJob load_job(const std::string &ptx_path, const std::string &launch_path) {
  SimJob job;
  job.file = LaunchFile::load(launch_path);
  job.ptx_paths = ptx_path.empty() ? job.file.ptx_paths
                                   : std::vector<std::string>{ptx_path};
  for (const std::string &path : job.ptx_paths)
    job.ptx.push_back(read_kernel(path).ptx);
  // Each is on the device, and here with what it begins with and should be.
  HostMemory together;
  for (const BufferSpec &buffer : job.file.buffers)
    for (int copy = 0; copy < 2; ++copy)
      together.take(buffer.bytes(), describe(buffer));
  for (const BufferSpec &buffer : job.file.buffers) {
    job.initial.push_back(initial_bytes(buffer));
    job.written.emplace_back();
    if (!buffer.written_path.empty())
      job.written.back() =
          read_npy(buffer.written_path, Type::u8, {(buffer.bytes() + 7) / 8},
                   buffer.where + ".written");
    job.expected.emplace_back();
    if (!buffer.expected_path.empty())
      job.expected.back() = read_npy(buffer.expected_path, buffer.type,
                                     buffer.shape, buffer.where + ".expected");
  }
  return job;
}

namespace {
/// What launches work on.
struct Memory {
  std::vector<Buffer> buffers;
  std::shared_ptr<const LoadedModule> module;
};
} // namespace

static LaunchDescription describe(const SimJob &job, const LaunchSpec &launch,
                                  const Memory &memory) {
  return {.name = launch.kernel,
          .ptx = {},
          .grid = launch.grid,
          .block = launch.block,
          .cluster = launch.cluster,
          .dynamic_smem_bytes = launch.dynamic_smem_bytes,
          .parameters = bind(launch, memory.buffers),
          .module = memory.module,
          .shared_objects = job.file.shared_objects};
}

/// The file that the simulator knows by a number, or by none.
static std::string path_of(const SimJob &job, const std::string &file) {
  for (std::size_t i = 0; i < job.ptx_paths.size(); ++i)
    if (file == (job.ptx.size() == 1 ? "PTX" : fmt::format("PTX {}", i + 1)))
      return job.ptx_paths[i];
  return file;
}

/// What is refused names its place in the PTX, or in the launch file.
[[noreturn]] static void refuse(const UserError &error, const SimJob &job,
                                const std::string &where) {
  if (std::string path = path_of(job, error.where().file);
      path != error.where().file)
    throw UserError(SourceLine(path, error.where().line), error.message());
  throw UserError(fmt::format("{}: {}", where, error.what()));
}

DeviceDescription device_for(const SimJob &job) {
  try {
    return sim_device_for(job.ptx.front());
  } catch (const UserError &error) {
    refuse(error, job, job.ptx_paths.front());
  }
}

/// Places in PTX, by the names of its files.
static void rename_places(const SimJob &job, Finding &finding) {
  auto rename = [&](SourceLine &where) {
    where.file = path_of(job, where.file);
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

std::vector<std::string> sorted_lines(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Load the PTX, with its variables where the file says.
static std::shared_ptr<LoadedModule> load(Device &device, const SimJob &job) {
  std::map<std::string, std::uint64_t> places;
  for (const BufferSpec &buffer : job.file.buffers)
    if (buffer.is_variable && buffer.address)
      places[buffer.name] = *buffer.address;
  std::vector<std::string_view> texts(job.ptx.begin(), job.ptx.end());
  try {
    return device.simulation()->load_at(texts, places);
  } catch (const UserError &error) {
    refuse(error, job, job.ptx_paths.front());
  }
}

/// A variable of the module, of the size that the file says.
static Buffer find_variable(const LoadedModule &module,
                            const BufferSpec &buffer) {
  Buffer variable = module.variable(buffer.name);
  if (variable.bytes() != buffer.bytes())
    throw UserError(fmt::format("the variable '{}' has {} bytes, not {}",
                                buffer.name, variable.bytes(), buffer.bytes()));
  return variable;
}

/// Memory for each: first for those that must lie somewhere, then for the
/// module and its variables, then for the others.
static Memory allocate(Device &device, const SimJob &job) {
  const std::vector<BufferSpec> &buffers = job.file.buffers;
  Memory memory;
  memory.buffers.resize(buffers.size());
  auto allocate_all = [&](auto &&is_wanted, auto &&make) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const BufferSpec &buffer = buffers[i];
      if (!is_wanted(buffer))
        continue;
      try {
        memory.buffers[i] = make(buffer);
      } catch (const UserError &error) {
        throw UserError(fmt::format("{}.{}: {}", buffer.where,
                                    buffer.is_variable ? "variable" : "address",
                                    error.message()));
      }
      device.set_name(memory.buffers[i], buffer.name);
    }
  };
  allocate_all([](const BufferSpec &b) { return !b.is_variable && b.address; },
               [&](const BufferSpec &b) {
                 return device.simulation()->allocate_at(*b.address,
                                                         b.bytes());
               });
  memory.module = load(device, job);
  allocate_all(
      [](const BufferSpec &b) { return b.is_variable; },
      [&](const BufferSpec &b) { return find_variable(*memory.module, b); });
  allocate_all([](const BufferSpec &b) { return !b.is_variable && !b.address; },
               [&](const BufferSpec &b) { return device.allocate(b.bytes()); });
  return memory;
}

/// Copy in what is written, in runs.
static void copy_written(Device &device, const Buffer &to,
                         const std::vector<std::byte> &data,
                         const std::vector<std::byte> &written) {
  auto is_written = [&](std::size_t i) {
    return (written[i / 8] >> (i % 8) & std::byte(1)) != std::byte(0);
  };
  for (std::size_t i = 0; i < data.size();) {
    std::size_t end = i + 1;
    while (end < data.size() && is_written(end) == is_written(i))
      ++end;
    if (is_written(i))
      device.copy_in(Buffer(to.address() + i, end - i), data.data() + i,
                     end - i);
    i = end;
  }
}

/// Give each buffer what it begins with.
static void fill(Device &device, const SimJob &job, const Memory &memory) {
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    const auto &initial = job.initial[i];
    if (!initial || initial->empty())
      continue;
    if (job.written[i])
      copy_written(device, memory.buffers[i], *initial, *job.written[i]);
    else
      device.copy_in(memory.buffers[i], initial->data(), initial->size());
  }
  for (const BufferField &field : job.file.fields) {
    std::vector<std::byte> bytes = field_bytes(field.value, memory.buffers);
    Buffer place(memory.buffers[field.index].address() + field.offset,
                 bytes.size());
    device.copy_in(place, bytes.data(), bytes.size());
  }
}

PreparedJob::PreparedJob(const SimJob &job, const SimOptions &options)
    : job_(job), device_(open_sim(options)) {
  Memory memory = allocate(*device_, job);
  fill(*device_, job, memory);
  buffers_ = memory.buffers;
  module_ = memory.module;
  auto checked = std::make_shared<SimOptions>(options);
  for (const LaunchSpec &spec : job.file.launches) {
    try {
      launches_.push_back(describe(job, spec, memory));
      launches_.back().options = checked;
      device_->simulation()->check(launches_.back());
    } catch (const UserError &error) {
      refuse(error, job, spec.where);
    }
  }
}

Exploration PreparedJob::explore(const ExploreOptions &options,
                                 const AfterRun &after) {
  return kiln::explore(*device_, launches_, options, [&](ExploredRun &run) {
    for (LaunchResult &result : run.launches)
      for (Finding &finding : result.findings)
        rename_places(job_, finding);
    after(run);
  });
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

std::vector<std::vector<std::byte>> PreparedJob::memory() const {
  std::vector<std::vector<std::byte>> all;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    all.emplace_back();
    const BufferSpec &spec = job_.file.buffers[i];
    if (!spec.is_output && !job_.expected[i])
      continue;
    all[i] = host_bytes(describe(spec), buffers_[i].bytes());
    if (!all[i].empty())
      device_->copy_out(all[i].data(), buffers_[i], buffers_[i].bytes());
  }
  return all;
}

} // namespace kiln::cli
