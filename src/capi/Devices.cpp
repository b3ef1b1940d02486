// Devices: errors, devices and buffers of the C interface.
#include "capi/Handles.h"
#include "support/Error.h"

#include <charconv>

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

/// A number of a key; throws UserError where it is none.
template <typename Number>
static Number numberOf(std::string_view key, std::string_view text) {
  Number number{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    userError("{} is '{}'; it takes a number from 0 on", key, text);
  return number;
}

static void setOption(SimOptions &options, std::string_view key,
                      std::string_view text) {
  if (key == "order")
    options.interleaving = parse_interleaving(text);
  else if (key == "seed")
    options.seed = numberOf<std::uint64_t>(key, text);
  else if (key == "threads")
    options.threads = numberOf<int>(key, text);
  else if (key == "max_instructions")
    options.max_instructions = numberOf<std::uint64_t>(key, text);
  else if (key == "time_limit")
    options.time_limit_s = numberOf<double>(key, text);
  else if (key == "gpu")
    options.device = DeviceDescription::by_name(text);
  else if (key == "allow")
    options.allow.emplace_back(text);
  else if (key == "warn")
    options.warn.emplace_back(text);
  else if (key == "checks" && (text == "on" || text == "off"))
    options.checks = text == "on";
  else if (key == "checks")
    userError("checks is '{}'; it takes on or off", text);
  else
    userError("'{}' is not an option of a device; use order, seed, checks, "
              "threads, gpu, allow, warn, max_instructions or time_limit",
              key);
}

static SimOptions optionsOf(std::string_view text) {
  SimOptions options;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      userError("'{}' is not an option of a device; write key=value", word);
    setOption(options, word.substr(0, equals), word.substr(equals + 1));
  }
  return options;
}

} // namespace kiln::capi

int kiln_c_version(void) { return KILN_C_VERSION; }

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
    std::shared_ptr<Device> opened =
        open_device(id ? id : "auto", optionsOf(options ? options : ""));
    *device = new kiln_device{opened, opened->name()};
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
