// CudaLoadedModule: what PTX text says of its entries.
#include "runtime/CudaLoadedModule.h"

#include "support/Error.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace kiln {

/// Parameters lie one behind the other, each aligned to its own size.
static EntryInfo infoOf(const ScannedEntry &entry) {
  EntryInfo info;
  info.name = entry.name;
  constexpr int kMostThreads = 1024;
  info.max_threads = kMostThreads;
  std::uint32_t end = 0;
  for (const ScannedParameter &parameter : entry.parameters) {
    auto bytes = static_cast<std::uint32_t>(parameter.bytes);
    std::uint32_t align = std::clamp(bytes, 1u, 8u);
    end = (end + align - 1) / align * align;
    info.parameter_bytes.push_back(bytes);
    info.parameter_offsets.push_back(end);
    end += bytes;
  }
  info.parameter_offsets.push_back(end);
  return info;
}

CudaLoadedModule::CudaLoadedModule(std::span<const std::string_view> ptx) {
  if (ptx.size() != 1)
    userError("{} PTX texts cannot be linked on the GPU; the simulator does "
              "(open_sim)",
              ptx.size());
  ptx_ = ptx.front();
  for (const ScannedEntry &entry : scanPtxEntries(ptx_))
    entries_.push_back(infoOf(entry));
}

std::vector<std::string> CudaLoadedModule::entries() const {
  std::vector<std::string> names;
  for (const EntryInfo &info : entries_)
    names.push_back(info.name);
  return names;
}

const EntryInfo &CudaLoadedModule::entry(std::string_view name) const {
  for (const EntryInfo &info : entries_)
    if (info.name == name)
      return info;
  userError("the PTX has no entry '{}'; it has: {}", name,
            fmt::join(entries(), ", "));
}

int CudaLoadedModule::registers(std::string_view) const {
  userError("registers of an entry are not counted on the GPU; the simulator "
            "does (open_sim)");
}

Buffer CudaLoadedModule::variable(std::string_view name) const {
  userError("the variable '{}' cannot be reached on the GPU; the simulator can "
            "(open_sim)",
            name);
}

} // namespace kiln
