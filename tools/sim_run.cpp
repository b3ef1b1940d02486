// sim_run: give buffers memory, launch, and fetch what is asked for.
#include "sim_run.h"

#include "launch_memory.h"
#include "npy.h"
#include "sim_options.h"

#include <kiln/error.h>
#include <kiln/file.h>
#include <kiln/host_memory.h>

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

namespace kiln::cli {

std::string SimSchedule::to_string() const {
  if (order == SimOrder::random)
    return fmt::format("random, seed {}", seed);
  return order == SimOrder::eager ? "eager" : "lazy";
}

Timeline SimRun::timeline() const {
  Timeline all;
  std::uint64_t offset = 0;
  for (const LaunchResult &result : results) {
    std::uint64_t end = offset;
    for (Timeline::Event event : result.timeline.events) {
      event.start += offset;
      event.end += offset;
      end = std::max(end, event.end);
      all.events.push_back(std::move(event));
    }
    offset = end;
  }
  return all;
}

void add_numbers(LaunchResult &sum, const LaunchResult &more) {
  sum.instructions += more.instructions;
  sum.time_us += more.time_us;
  sum.registers = more.registers;
  sum.registers_from = more.registers_from;
  sum.resident_ctas = more.resident_ctas;
  sum.stats.shadow_bytes =
      std::max(sum.stats.shadow_bytes, more.stats.shadow_bytes);
  sum.stats.costs.resize(more.stats.costs.size());
  for (std::size_t i = 0; i < more.stats.costs.size(); ++i) {
    const LaunchStats::Cost &cost = more.stats.costs[i];
    sum.stats.costs[i].name = cost.name;
    sum.stats.costs[i].instructions += cost.instructions;
    sum.stats.costs[i].time_us += cost.time_us;
  }
}

Kernel read_kernel(const std::string &path) {
  std::string text = read_file(path);
  // A saved kernel is JSON.
  std::size_t first = text.find_first_not_of(" \t\r\n");
  bool is_saved = first != std::string::npos && text[first] == '{';
  return is_saved ? Kernel::deserialize(text, path) : Kernel{.ptx = text};
}

SimJob load_job(const std::string &ptx_path, const std::string &launch_path) {
  SimJob job{ptx_path,
             read_kernel(ptx_path).ptx,
             LaunchFile::load(launch_path),
             {},
             {}};
  // Each is on the device, and here with what it begins with and should be.
  HostMemory together;
  for (const BufferSpec &buffer : job.file.buffers)
    for (int copy = 0; copy < 2; ++copy)
      together.take(buffer.bytes(), describe(buffer));
  for (const BufferSpec &buffer : job.file.buffers) {
    job.initial.push_back(initial_bytes(buffer));
    job.expected.emplace_back();
    if (!buffer.expected_path.empty())
      job.expected.back() = read_npy(buffer.expected_path, buffer.type,
                                     buffer.shape, buffer.where + ".expected");
  }
  return job;
}

static LaunchDescription describe(const SimJob &job, const LaunchSpec &launch,
                                  const std::vector<Buffer> &memory) {
  return {.name = launch.kernel,
          .ptx = job.ptx,
          .grid = launch.grid,
          .block = launch.block,
          .cluster = launch.cluster,
          .dynamic_smem_bytes = launch.dynamic_smem_bytes,
          .parameters = bind(launch, memory),
          .shared_objects = job.file.shared_objects};
}

/// What is refused names its place in the PTX, or in the launch file.
[[noreturn]] static void refuse(const UserError &error, const SimJob &job,
                                const std::string &where) {
  if (error.where().file == "PTX")
    throw UserError(SourceLine(job.ptx_path, error.where().line),
                    error.message());
  throw UserError(fmt::format("{}: {}", where, error.what()));
}

DeviceDescription device_for(const SimJob &job) {
  try {
    return sim_device_for(job.ptx);
  } catch (const UserError &error) {
    refuse(error, job, job.ptx_path);
  }
}

static LaunchResult launch(Device &device, const SimJob &job,
                           const LaunchSpec &spec,
                           const std::vector<Buffer> &memory) {
  const std::string &ptx_path = job.ptx_path;
  LaunchResult result;
  try {
    RunWatch watch;
    result = device.launch(describe(job, spec, memory));
  } catch (const UserError &error) {
    refuse(error, job, spec.where);
  }
  auto rename = [&](SourceLine &where) {
    if (where.file == "PTX")
      where.file = ptx_path;
  };
  for (Finding &finding : result.findings) {
    rename(finding.where);
    if (finding.other)
      rename(finding.other->where);
    for (Finding::Frame &frame : finding.stack)
      rename(frame.where);
  }
  return result;
}

/// Refuse what cannot be launched before anything is.
static void check_launches(const SimJob &job, SimOptions options,
                           const std::vector<Buffer> &memory) {
  options.check_only = true;
  std::shared_ptr<Device> device = open_sim(options);
  for (const LaunchSpec &spec : job.file.launches)
    launch(*device, job, spec, memory);
}

static std::vector<std::string> sorted_lines(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Memory for each, first for those that must lie somewhere.
static std::vector<Buffer> allocate(Device &device,
                                    const std::vector<BufferSpec> &buffers) {
  std::vector<Buffer> memory(buffers.size());
  for (bool is_placed : {true, false})
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const BufferSpec &buffer = buffers[i];
      if (buffer.address.has_value() != is_placed)
        continue;
      try {
        memory[i] =
            is_placed ? allocate_sim_at(device, *buffer.address, buffer.bytes())
                      : device.allocate(buffer.bytes());
      } catch (const UserError &error) {
        throw UserError(
            fmt::format("{}.address: {}", buffer.where, error.message()));
      }
      device.set_name(memory[i], buffer.name);
    }
  return memory;
}

SimRun run_once(const SimJob &job, SimOptions options,
                const SimSchedule &schedule) {
  std::string printed;
  options.order = schedule.order;
  options.seed = schedule.seed;
  options.registers_at_entry = job.file.registers_at_entry;
  options.co_resident = job.file.is_co_resident;
  options.print = [&](const std::string &text) { printed += text; };
  RunWatch::attach(options);
  std::shared_ptr<Device> device = open_sim(options);
  std::vector<Buffer> memory = allocate(*device, job.file.buffers);
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    if (job.initial[i] && !job.initial[i]->empty())
      device->copy_in(memory[i], job.initial[i]->data(),
                      job.initial[i]->size());
  }
  for (const BufferField &field : job.file.fields) {
    std::vector<std::byte> bytes = field_bytes(field.value, memory);
    Buffer place(memory[field.index].address() + field.offset, bytes.size());
    device->copy_in(place, bytes.data(), bytes.size());
  }
  check_launches(job, options, memory);

  SimRun run{.schedule = schedule};
  for (const LaunchSpec &spec : job.file.launches) {
    run.results.push_back(launch(*device, job, spec, memory));
    run.is_finished = run.results.back().is_finished;
    if (!run.is_finished)
      break;
  }
  for (std::size_t i = 0; i < memory.size(); ++i) {
    run.memory.emplace_back();
    if (!job.file.buffers[i].is_output && !job.expected[i])
      continue;
    run.memory[i] =
        host_bytes(describe(job.file.buffers[i]), memory[i].bytes());
    if (!run.memory[i].empty())
      device->copy_out(run.memory[i].data(), memory[i], memory[i].bytes());
  }
  run.printed = sorted_lines(printed);
  return run;
}

} // namespace kiln::cli
