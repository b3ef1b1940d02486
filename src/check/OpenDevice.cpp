// OpenDevice: a device by its name.
#include "kiln/check/sim.h"
#include "kiln/run/open_device.h"
#include "support/Error.h"

#include <charconv>
#include <optional>

namespace kiln {

/// The number of "cuda" and "cuda:N"; nothing: it is none of a GPU.
static std::optional<int> gpuOf(std::string_view id) {
  if (id == "cuda")
    return 0;
  if (!id.starts_with("cuda:"))
    return std::nullopt;
  id.remove_prefix(5);
  int ordinal = -1;
  auto [end, error] =
      std::from_chars(id.data(), id.data() + id.size(), ordinal);
  if (error != std::errc() || end != id.data() + id.size() || ordinal < 0)
    return std::nullopt;
  return ordinal;
}

void check_device_id(std::string_view id) {
  if (id != "auto" && id != "sim" && !gpuOf(id))
    userError("'{}' is not a valid device; use auto, sim, cuda or cuda:N", id);
}

std::shared_ptr<Device> open_device(std::string_view id,
                                    const SimOptions &options) {
  check_device_id(id);
  if (id == "auto")
    id = list_devices().devices.empty() ? "sim" : "cuda";
  return id == "sim" ? open_sim(options) : open_cuda(*gpuOf(id));
}

} // namespace kiln
