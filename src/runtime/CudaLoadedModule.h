// CudaLoadedModule: PTX that a program has loaded to launch its entries later.
//
// The driver sees it with the first launch, through the modules that its
// context keeps by content; until then it is text, and what the text says of
// its entries.
#pragma once

#include "kiln/run/device.h"
#include "runtime/CudaModule.h"

namespace kiln {

class CudaLoadedModule final : public LoadedModule {
public:
  /// Throws UserError where there are several texts: only the simulator links.
  explicit CudaLoadedModule(std::span<const std::string_view> ptx);

  const std::string &ptx() const { return ptx_; }
  std::vector<std::string> entries() const override;
  const EntryInfo &entry(std::string_view name) const override;
  int registers(std::string_view name) const override;
  Buffer variable(std::string_view name) const override;

private:
  std::string ptx_;
  std::vector<EntryInfo> entries_;
};

} // namespace kiln
