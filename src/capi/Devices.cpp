// Devices: errors, devices and buffers of the C interface.
#include "capi/Handles.h"
#include "kiln/check/sim.h"
#include "kiln/run/open_device.h"
#include "support/Error.h"
#include "support/limits/MappedMemory.h"

using namespace kiln;
using namespace kiln::capi;

namespace kiln::capi {

static kiln_error &lastResort() {
  static kiln_error error{"there is not enough memory for this",
                          static_cast<int>(ExitStatus::machine)};
  return error;
}

kiln_error *makeError(const std::string &message, ExitStatus status) noexcept {
  try {
    return new kiln_error{message, static_cast<int>(status)};
  } catch (const std::bad_alloc &) {
    return &lastResort();
  }
}

void require(const void *argument, const char *name) {
  if (!argument)
    userError("{} is NULL", name);
}

void refuseSize(const char *what, std::size_t bytes, std::size_t least,
                std::size_t most) {
  userError("the {} has {} bytes; this library knows one of {} to {}", what,
            bytes, least, most);
}

/// What means nothing here.
static void refuseForeign(const CheckSettings &settings) {
  if (!settings.kernel.empty() || !settings.launches.empty() ||
      !settings.capture_folder.empty())
    userError("the options kernel, launch and capture are for programs under "
              "`kiln run`; the C interface launches what it is told to");
  if (settings.timeline_path == "-")
    userError("timeline is '-'; the C interface takes the name of a file, and "
              "gives the table as \"timeline-table\"");
}

CheckSettings settingsOf(const kiln_options *options) {
  CheckSettings settings;
  if (options)
    set_from_structure(settings, options);
  refuseForeign(settings);
  return settings;
}

static kiln_device *handleOf(std::shared_ptr<Device> device,
                             CheckSettings settings) {
  std::string name = device->name();
  return new kiln_device{std::move(device), std::move(name),
                         std::move(settings)};
}

static kiln_device *open(const char *id, CheckSettings settings) {
  std::shared_ptr<Device> device =
      open_device(id ? id : "auto", settings.sim_options());
  return handleOf(std::move(device), std::move(settings));
}

} // namespace kiln::capi

int kiln_c_version(void) { return KILN_C_VERSION; }
const char *kiln_version(void) { return KILN_VERSION; }

const char *kiln_error_message(const kiln_error *error) {
  return error ? error->message.c_str() : "";
}
int kiln_error_code(const kiln_error *error) { return error ? error->code : 0; }
void kiln_error_free(kiln_error *error) {
  if (error != &lastResort())
    delete error;
}

kiln_error *kiln_device_open(const char *id, const char *options,
                             kiln_device **device) {
  return attempt([&] {
    require(device, "device");
    CheckSettings settings;
    set_options(settings, options ? options : "");
    refuseForeign(settings);
    *device = open(id, std::move(settings));
  });
}
kiln_error *kiln_device_open_with(const char *id, const kiln_options *options,
                                  kiln_device **device) {
  return attempt([&] {
    require(device, "device");
    *device = open(id, settingsOf(options));
  });
}
kiln_error *kiln_device_open_for(const char *ptx, const kiln_options *options,
                                 kiln_device **device) {
  return attempt([&] {
    require(ptx, "ptx");
    require(device, "device");
    CheckSettings settings = settingsOf(options);
    const DeviceDescription &fallback = settings.gpu.empty()
                                            ? sim_device_for(ptx)
                                            : DeviceDescription::h200();
    std::shared_ptr<Device> opened = open_sim(settings.sim_options(fallback));
    *device = handleOf(std::move(opened), std::move(settings));
  });
}
const char *kiln_device_name(const kiln_device *device) {
  return device ? device->name.c_str() : "";
}
kiln_error *kiln_device_synchronize(kiln_device *device) {
  return attempt([&] {
    require(device, "device");
    device->device->synchronize();
  });
}
void kiln_device_set_interrupted(kiln_device *device, int is_interrupted) {
  if (device)
    device->isInterrupted = is_interrupted != 0;
}
void kiln_device_set_quiet(kiln_device *device, int is_quiet) {
  if (device)
    device->isQuiet = is_quiet != 0;
}
void kiln_device_progress(const kiln_device *device, uint64_t *done,
                          uint64_t *total) {
  if (done)
    *done = device ? device->ctasDone.load() : 0;
  if (total)
    *total = device ? device->ctasTotal.load() : 0;
}
void kiln_device_free(kiln_device *device) { delete device; }

kiln_error *kiln_buffer_allocate(kiln_device *device, size_t bytes,
                                 kiln_buffer **buffer) {
  return attempt([&] {
    require(device, "device");
    require(buffer, "buffer");
    *buffer = new kiln_buffer{device->device, device->device->allocate(bytes)};
  });
}
kiln_error *kiln_buffer_share(kiln_device *device, void *data, size_t bytes,
                              kiln_buffer **buffer) {
  return attempt([&] {
    require(device, "device");
    require(data, "data");
    require(buffer, "buffer");
    *buffer =
        new kiln_buffer{device->device, device->device->share(data, bytes)};
  });
}
int kiln_memory_is_mapped(const void *data, size_t bytes, int is_written) {
  return mappedBytes(data, bytes,
                     is_written ? MemoryUse::write : MemoryUse::read) == bytes;
}
kiln_error *kiln_buffer_wrap(kiln_device *device, uint64_t address,
                             size_t bytes, kiln_buffer **buffer) {
  return attempt([&] {
    require(device, "device");
    require(buffer, "buffer");
    *buffer = new kiln_buffer{
        device->device,
        device->device->wrap(reinterpret_cast<void *>(address), bytes)};
  });
}
kiln_error *kiln_buffer_slice(const kiln_buffer *buffer, size_t offset,
                              size_t bytes, kiln_buffer **slice) {
  return attempt([&] {
    require(buffer, "buffer");
    require(slice, "slice");
    *slice =
        new kiln_buffer{buffer->device, buffer->buffer.slice(offset, bytes)};
  });
}
uint64_t kiln_buffer_address(const kiln_buffer *buffer) {
  return buffer ? buffer->buffer.address() : 0;
}
size_t kiln_buffer_bytes(const kiln_buffer *buffer) {
  return buffer ? buffer->buffer.bytes() : 0;
}
kiln_error *kiln_buffer_write(kiln_buffer *buffer, size_t offset,
                              const void *data, size_t bytes) {
  return attempt([&] {
    require(buffer, "buffer");
    if (bytes)
      require(data, "data");
    buffer->device->copy_in(buffer->buffer.slice(offset, bytes), data, bytes);
  });
}
kiln_error *kiln_buffer_read(const kiln_buffer *buffer, size_t offset,
                             void *data, size_t bytes) {
  return attempt([&] {
    require(buffer, "buffer");
    if (bytes)
      require(data, "data");
    buffer->device->copy_out(data, buffer->buffer.slice(offset, bytes), bytes);
  });
}
kiln_error *kiln_buffer_set_name(kiln_buffer *buffer, const char *name) {
  return attempt([&] {
    require(buffer, "buffer");
    require(name, "name");
    buffer->device->set_name(buffer->buffer, name);
  });
}
void kiln_buffer_free(kiln_buffer *buffer) { delete buffer; }
