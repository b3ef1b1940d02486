// Mutation: kernels of other compilers and of kernels/, each instruction that
// synchronises deleted in turn, or told a wrong parity, count or number of
// bytes.
//
// Each such defect is found under some order, but for those of
// MutationRedundant.h: they change nothing in the launch as it is made here,
// and why is said. One of that list that is found is a failure too.
#include "broken/BrokenKernel.h"
#include "broken/Mutants.h"
#include "broken/MutationRedundant.h"
#include "broken/MutationSubjects.h"

namespace kiln {
namespace {

/// The ids of what was found under the first order that shows something.
std::set<std::string> findingsOf(const Subject &subject,
                                 const std::string &ptx) {
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
    SimOptions options{
        .device = sim_device_for(ptx), .interleaving = order, .threads = 1};
    // What a compiler is known for is no sign of a defect.
    if (subject.file == "nvgpu_gemm")
      options.allow = {"mbarrier-init-fence-barrier"};
    if (subject.file.starts_with("triton_sm100"))
      options.allow = {"tcgen05-fence"};
    if (subject.file == "tilelang_sm100")
      options.allow = {"tcgen05-lanes"};
    auto device = open_sim(options);
    Arguments arguments{*device};
    subject.fill(arguments);
    LaunchResult result =
        device->launch({.name = subject.file.empty() ? "" : subject.name,
                        .ptx = ptx,
                        .grid = subject.grid,
                        .block = subject.block,
                        .cluster = subject.cluster,
                        .dynamic_smem_bytes = subject.smemBytes,
                        .parameters = arguments.list},
                       Stream());
    std::set<std::string> ids;
    for (const Finding &finding : result.findings)
      ids.insert(finding.id);
    if (!ids.empty())
      return ids;
  }
  return {};
}

class Mutation : public testing::TestWithParam<Subject> {};

TEST_P(Mutation, EachDefectIsFound) {
  const Subject &subject = GetParam();
  expectEachFound(
      {subject.title(), linesOf(subject),
       [&](const std::string &ptx) { return findingsOf(subject, ptx); }},
      rangeOf(subject, linesOf(subject)), allRedundant());
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation, testing::ValuesIn(allSubjects()),
                         [](const auto &info) { return info.param.title(); });

} // namespace
} // namespace kiln
