// runner: launch, time, compare.
#include "runner.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

namespace scalar {

void Sample::keep_best(const Sample &other) {
  if (!instructions && !wall_us) {
    *this = other;
    return;
  }
  cpu_us = std::min(cpu_us, other.cpu_us);
  wall_us = std::min(wall_us, other.wall_us);
}

/// Time the work, by the processor's clock and by that on the wall.
template <typename Work> static Sample timed(const Work &work) {
  auto cpu = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 +
           static_cast<double>(time.tv_nsec) * 1e-3;
  };
  double cpu_before = cpu();
  auto before = std::chrono::steady_clock::now();
  work();
  Sample sample;
  sample.wall_us = std::chrono::duration<double, std::micro>(
                       std::chrono::steady_clock::now() - before)
                       .count();
  sample.cpu_us = cpu() - cpu_before;
  return sample;
}

Runner::Opened &Runner::open(const Setting &setting) {
  Opened &opened = opened_[setting];
  if (!opened.device)
    opened.device = kiln::open_sim(
        {.checks = setting.has_checks, .threads = setting.threads});
  return opened;
}

/// Throw where the simulator and the host do not agree.
static void compare(const std::string &name, const Array &array,
                    std::vector<std::uint32_t> of_device) {
  std::vector<std::uint32_t> of_host = array.of_host;
  if (array.result == Array::Result::set) {
    std::sort(of_device.begin(), of_device.end());
    std::sort(of_host.begin(), of_host.end());
  }
  for (std::size_t i = 0; i < of_host.size(); ++i) {
    bool is_equal = of_device[i] == of_host[i];
    if (array.result == Array::Result::floats) {
      float one = std::bit_cast<float>(of_device[i]);
      float other = std::bit_cast<float>(of_host[i]);
      is_equal = std::fabs(one - other) <=
                 array.tolerance * std::max(1.0f, std::fabs(other));
    }
    if (!is_equal)
      throw kiln::RuntimeError(name + ": element " + std::to_string(i) +
                               " differs between the simulator and the host");
  }
}

Sample Runner::simulate(Case &one, const Setting &setting) {
  Opened &opened = open(setting);
  kiln::Device &device = *opened.device;
  if (one.allocated_bytes)
    return timed([&] { device.allocate(one.allocated_bytes); });
  auto &module = opened.modules[one.file];
  if (!module) {
    std::string ptx = kiln::read_file(KILN_SOURCE_DIR "/bench/scalar/kernels/" +
                                      one.file + ".ptx");
    std::string_view text = ptx;
    module = device.load({&text, 1});
  }
  kiln::LaunchDescription launch{.name =
                                     one.entry.empty() ? one.file : one.entry,
                                 .grid = one.grid,
                                 .block = one.block,
                                 .module = module};
  std::vector<std::pair<const Array *, kiln::Buffer>> arrays;
  for (const Parameter &parameter : one.parameters) {
    if (const auto *array = std::get_if<Array>(&parameter)) {
      kiln::Buffer buffer = device.allocate(array->bytes());
      device.copy_in(buffer, array->initial.data(), array->bytes());
      launch.parameters.push_back({buffer});
      arrays.emplace_back(array, buffer);
    } else {
      std::visit(
          [&](auto value) {
            launch.parameters.push_back({kiln::Scalar(value)});
          },
          std::get<Number>(parameter));
    }
  }
  double instructions = 0;
  Sample sample = timed([&] {
    for (int i = 0; i < one.launches; ++i) {
      kiln::LaunchResult result = device.launch(launch);
      if (!result.ok())
        throw kiln::RuntimeError(one.name + ": " + result.to_string());
      instructions += static_cast<double>(result.instructions);
    }
  });
  sample.instructions = instructions;
  if (!one.on_host || std::exchange(opened.compared[one.name], true))
    return sample;
  on_host(one);
  for (auto &[array, buffer] : arrays) {
    std::vector<std::uint32_t> words(array->initial.size());
    device.copy_out(words.data(), buffer, array->bytes());
    if (array->result != Array::Result::none)
      compare(one.name, *array, std::move(words));
  }
  return sample;
}

Sample Runner::on_host(Case &one) {
  one.reset_host();
  return timed([&] { one.on_host(one); });
}

} // namespace scalar
