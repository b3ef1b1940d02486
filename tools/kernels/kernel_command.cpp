// kernel_command: from a module to a verdict.
#include "kernel_command.h"
#include "console/say.h"

#include <kiln/check/sim.h>

namespace kiln::cli {

void KernelCommand::add_to(Command command) {
  command.add_option("--device", device, "auto, sim, cuda or none")
      .capture_default_str();
  sim.add_to(command);
  command.add_option("--allow", sim.allow, "ids of findings not to report");
  command.add_option("--data-seed", data_seed, "of the numbers")
      .capture_default_str();
  command.add_flag("--no-verify", is_unverified,
                   "do not compare with the reference");
  command.add_flag("--no-cache", is_without_cache,
                   "compile again, keep nothing");
  command.add_option("--save-kernel", save_kernel_path,
                     "write the kernel to this file");
}

ExitStatus run(const KernelCommand &command, const KernelRun &kernel_run) {
  check_output("--save-kernel", command.save_kernel_path);
  if (command.sim.timeline_path != "-")
    check_output("--timeline", command.sim.timeline_path);
  Outputs outputs;
  SimOptions options = command.sim.options();
  RunWatch::attach(options);
  std::shared_ptr<Device> device;
  if (command.device != "none")
    device = open_device(command.device, options);
  report(kernel_run.what, "{}", kernel_run.problem);
  Kernel kernel =
      compile(kernel_run.build(), {.use_cache = !command.is_without_cache});
  report("compiled", "{}", kernel.name);
  if (!command.save_kernel_path.empty())
    outputs.attempt([&] {
      kernel.save(command.save_kernel_path);
      report("saved", "{}", command.save_kernel_path);
    });
  report("device", "{}", device ? device->name() : "none, as asked");
  if (device && !kernel_run.launch(*device, kernel, outputs)) {
    show_failure();
    return outputs.conclude(ExitStatus::finding);
  }
  if (device && !command.is_unverified)
    return outputs.conclude(kernel_run.verify());
  say("DONE (not verified)\n");
  return outputs.conclude(ExitStatus::ok);
}

Buffer copied(Device &device, const void *data, std::size_t bytes) {
  Buffer buffer = device.allocate(bytes);
  device.copy_in(buffer, data, bytes);
  return buffer;
}

} // namespace kiln::cli
