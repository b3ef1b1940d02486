// kernel_command: from a module to a verdict.
#include "kernel_command.h"
#include "console/run_watch.h"
#include "console/say.h"
#include "console/show_findings.h"

#include <kiln/run/open_device.h>

namespace kiln::cli {

void KernelCommand::add_to(Command command) {
  command.add_option("--device", device, "auto, sim, cuda, cuda:N or none")
      .value_name("NAME")
      .capture_default_str();
  check.add_to(command, door_launches);
  command.add_option("--data-seed", data_seed, "of the numbers")
      .capture_default_str();
  command.add_flag("--no-verify", is_unverified,
                   "do not compare with the reference");
  command.add_flag("--no-cache", is_without_cache,
                   "compile again, keep nothing");
  command
      .add_option("--save-kernel", save_kernel_path,
                  "write the kernel to this file")
      .value_name("FILE");
}

ExitStatus run(const KernelCommand &command, const KernelRun &kernel_run) {
  check_output("--save-kernel", command.save_kernel_path);
  CheckSettings settings = command.check.settings();
  command.check.check_outputs();
  Outputs outputs;
  std::shared_ptr<Device> device =
      choose_device(command.device, settings.sim_options());
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
  if (device && !kernel_run.launch(*device, kernel, settings, outputs)) {
    show_failure(RunWatch::signal());
    return outputs.conclude(ExitStatus::finding);
  }
  if (device && !command.is_unverified)
    return outputs.conclude(kernel_run.verify());
  say("DONE (not verified)\n");
  return outputs.conclude(ExitStatus::ok);
}

std::shared_ptr<Device> choose_device(const std::string &id,
                                      const SimOptions &options) {
  if (id == "none")
    return nullptr;
  try {
    check_device_id(id);
  } catch (const UserError &) {
    throw UserError(fmt::format("'{}' is not a valid device; --device takes "
                                "auto, sim, cuda, cuda:N or none",
                                id));
  }
  return open_device(id, options);
}

Buffer copied(Device &device, const void *data, std::size_t bytes) {
  Buffer buffer = device.allocate(bytes);
  device.copy_in(buffer, data, bytes);
  return buffer;
}

} // namespace kiln::cli
