// saved_kernel: a file of Kernel::save, whose checksum is made right, and the
// launch that follows from its contract.
#include "fuzz/Target.h"
#include "kiln/base/error.h"
#include "kiln/check/launch_file.h"
#include "kiln/check/sim.h"
#include "kiln/run/kernel.h"

namespace kiln::fuzz {

/// Where nothing but the checksum is wrong, the message says what it should be.
static std::string withChecksum(std::string text) {
  try {
    Kernel::deserialize(text, "k");
  } catch (const UserError &error) {
    std::string message = error.message();
    constexpr std::string_view kIs = "its checksum is ",
                               kShould = " and should be ";
    std::size_t is = message.find(kIs), should = message.find(kShould);
    if (is == std::string::npos || should == std::string::npos)
      return text;
    is += kIs.size();
    std::string found = message.substr(is, should - is);
    should += kShould.size();
    std::string written =
        message.substr(should, message.find(';', should) - should);
    std::size_t at = written.empty() ? std::string::npos : text.find(written);
    if (at != std::string::npos)
      text.replace(at, written.size(), found);
  }
  return text;
}

void runSavedKernel(std::string_view input) {
  Kernel kernel = Kernel::deserialize(withChecksum(std::string(input)), "k");
  if (Kernel::deserialize(kernel.serialize(), "again") != kernel)
    throw Misbehaviour{"what was saved again is another kernel"};
  LaunchFile file = launch_file_of(kernel, {});
  file.to_json();
  LaunchJob job = LaunchJob::of(std::move(file), {kernel.ptx}, {"k.ptx"});
  SimOptions options = job.sim_options({.device = job.device(),
                                        .threads = 1,
                                        .max_instructions = 6000,
                                        .print = [](const std::string &) {}});
  PreparedJob prepared(std::move(job), open_sim(options));
  ExploreOptions explore;
  explore.sim = options;
  explore.interleavings.count = 1;
  checkReport(check_job(prepared, explore).report.to_json());
}

} // namespace kiln::fuzz
