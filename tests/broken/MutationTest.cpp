// Mutation: kernels of other compilers and of kernels/, each instruction that
// synchronises deleted in turn, or told a wrong parity, count or number of
// bytes.
//
// Each such defect is found under some order, but for those in `kRedundant`:
// they change nothing in the launch as it is made here, and why is said. One of
// that list that is found is a failure too.
#include "broken/BrokenKernel.h"
#include "broken/MutationSubjects.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <regex>
#include <set>

namespace kiln {
namespace {

std::vector<Subject> allSubjects() {
  std::vector<Subject> subjects = corpus();
  for (const BrokenKernel &kernel : allKernels())
    subjects.push_back({kernel.name, "", kernel.grid, kernel.block, 0,
                        [](Arguments &a) { a.zeros(8192).zeros(8192); },
                        kernel.cluster});
  return subjects;
}

std::vector<std::string> linesOf(const Subject &subject) {
  std::string path = std::string(KILN_SOURCE_DIR) + "/tests/";
  path += subject.file.empty() ? "broken/kernels/" + subject.name
                               : "corpus/" + subject.file;
  std::ifstream file(path + ".ptx");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

/// An instruction on a line of its own.
struct Instruction {
  std::string before, after; ///< a predicate and a comment, say
  std::string opcode, text;  ///< text: with operands, without ';'
  std::vector<std::string> operands;

  bool is(const char *word) const { return opcode.starts_with(word); }
  bool has(const char *word) const {
    return opcode.find(word) != std::string::npos;
  }
};

std::optional<Instruction> parse(const std::string &line) {
  static const std::regex form(
      R"(^(\s*(?:@!?[%\w]+\s+)?)([a-z][\w.:]*)\s*([^;]*);(.*)$)");
  static const std::regex operand(R"((?:\[[^\]]*\]|[^,\[])+)");
  std::smatch parts;
  if (!std::regex_match(line, parts, form))
    return std::nullopt;
  Instruction found{parts[1], parts[4], parts[2], parts[2]};
  std::string list = parts[3];
  for (std::sregex_iterator at(list.begin(), list.end(), operand), end;
       at != end; ++at)
    found.operands.push_back(trimmed(at->str()));
  if (!found.operands.empty())
    found.text += fmt::format(" {}", fmt::join(found.operands, ", "));
  return found;
}

/// A line with a defect, and its kind. It stays one line, so that the others
/// keep their numbers.
struct Mutant {
  std::string kind, line;
};

/// The instruction with `code` applied to one of its operands, {0}; {1} is the
/// result.
Mutant changed(const Instruction &in, const std::string &kind,
               std::size_t operand, const char *code) {
  std::vector<std::string> operands = in.operands;
  operands.at(operand) = "%changed";
  return {kind,
          fmt::format(
              "{{ .reg .b32 %changed; {} {}{} {}; }}{}",
              fmt::format(fmt::runtime(code), in.operands[operand], "%changed"),
              in.before, in.opcode, fmt::join(operands, ", "), in.after)};
}

/// An atomic, a load or a store that orders nothing any more.
std::optional<Mutant> weakened(const Instruction &in) {
  bool isAccess =
      in.is("atom.") || in.is("red.") || in.is("ld.") || in.is("st.");
  for (const char *order : {".acq_rel", ".acquire", ".release"}) {
    std::size_t at = in.opcode.find(order);
    if (!isAccess || at == std::string::npos)
      continue;
    std::string line = in.before + in.text + ";" + in.after;
    return Mutant{
        "relaxed",
        line.replace(line.find(order), std::string(order).size(), ".relaxed")};
  }
  return std::nullopt;
}

std::vector<Mutant> mutantsOf(const Instruction &in) {
  // A wait in a loop becomes one that is over, or that asks once.
  if (in.is("mbarrier.try_wait") || in.is("mbarrier.test_wait")) {
    std::string isOver = fmt::format("setp.eq.u32 {}, 0, 0;", in.operands[0]);
    return {{"deleted", in.before + isOver + in.after},
            {"asks once",
             fmt::format("{}{}; {}{}", in.before, in.text, isOver, in.after)},
            changed(in, "parity", 2, "xor.b32 {1}, {0}, 1;")};
  }
  if (std::optional<Mutant> weaker = weakened(in))
    return {*weaker};
  for (const char *opcode :
       {"bar.sync", "bar.arrive", "bar.warp.sync", "barrier.", "fence.",
        "membar.", "mbarrier.init", "mbarrier.arrive", "mbarrier.expect_tx",
        "cp.async.commit_group", "cp.async.wait", "cp.async.mbarrier",
        "cp.async.bulk.commit_group", "cp.async.bulk.wait", "wgmma.fence",
        "wgmma.commit_group", "wgmma.wait_group"}) {
    if (!in.is(opcode))
      continue;
    std::vector<Mutant> mutants = {{"deleted", in.after}};
    // A fence for the CTA where others are to see it.
    for (auto [wide, narrow] :
         {std::pair("fence.acq_rel.gpu", "fence.acq_rel.cta"),
          std::pair("fence.sc.gpu", "fence.sc.cta"),
          std::pair("membar.gl", "membar.cta")})
      if (in.opcode == wide)
        mutants.push_back({"narrower", in.before + narrow + ";" + in.after});
    if (in.is("mbarrier.init")) {
      mutants.push_back(changed(in, "one more", 1, "add.u32 {1}, {0}, 1;"));
      mutants.push_back(changed(in, "one fewer", 1, "sub.u32 {1}, {0}, 1;"));
    }
    if (in.has("expect_tx")) {
      std::size_t last = in.operands.size() - 1;
      mutants.push_back(
          changed(in, "more bytes", last, "add.u32 {1}, {0}, 16;"));
      mutants.push_back(
          changed(in, "fewer bytes", last, "sub.u32 {1}, {0}, 16;"));
    }
    if (in.has("wait_group"))
      mutants.push_back({"one group later",
                         fmt::format("{}{} {};{}", in.before, in.opcode,
                                     std::stoi(in.operands[0]) + 1, in.after)});
    return mutants;
  }
  return {};
}

/// The first and the last line of the entry.
std::pair<std::size_t, std::size_t>
rangeOf(const Subject &subject, const std::vector<std::string> &lines) {
  std::size_t first = 0, last = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    bool isEntry = lines[i].find(".entry ") != std::string::npos;
    if (isEntry && last)
      break;
    if (isEntry &&
        (subject.file.empty() ||
         lines[i].find(".entry " + subject.name + "(") != std::string::npos))
      first = last = i + 1;
    if (last)
      last = i;
  }
  return {first, last};
}

/// The ids of what was found under the first order that shows something.
std::set<std::string> findingsOf(const Subject &subject,
                                 const std::string &ptx) {
  for (SimOrder order : {SimOrder::eager, SimOrder::lazy, SimOrder::random}) {
    SimOptions options{
        .device = sim_device_for(ptx), .order = order, .threads = 1};
    // What MLIR is known for is no sign of a defect.
    if (subject.file == "nvgpu_gemm")
      options.allow = {"mbarrier-init-fence-barrier"};
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

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// "NAME: INSTRUCTION: KIND", with the number of the instruction among its
/// likes where it is not the first, and why nothing depends on it.
const std::map<std::string, std::string> kRedundant = {
    {"cluster_multicast: barrier.cluster.wait.aligned: deleted",
     "nobody touches another CTA's memory after it"},
    {"hopper_gemm_hopper_gemm: wgmma.fence.sync.aligned (2): deleted",
     "no register was touched since the product before"},
    {"hopper_gemm_hopper_gemm: wgmma.fence.sync.aligned (3): deleted",
     "no register was touched since the product before"},
    {"hopper_gemm_hopper_gemm: mbarrier.arrive.shared::cta.b64 _, [%r121]: "
     "deleted",
     "the last slot is handed back to nobody"},
    {"nvgpu_gemm_nvgpu_gemm_kernel: bar.sync 0 (2): deleted",
     "wgmma.wait_group covers the products of all four warps"},
    {"tcgen05: fence.proxy.async.shared::cta (2): deleted",
     "what threads wrote was fenced before the first product"},
    {"tcgen05_pair: fence.mbarrier_init.release.cluster: deleted",
     "the proxy fence and the cluster barrier behind it order the init too"},
    {"tcgen05_pair: bar.sync 0: deleted", "a cluster barrier follows"},
    {"tcgen05_pair: bar.sync 0 (2): deleted", "a cluster barrier follows"},
    {"tcgen05_pair: barrier.cluster.wait.acquire.aligned (2): deleted",
     "a pair frees together, each CTA behind its own barrier"},
    {"triton_matmul_matmul: cp.async.commit_group: deleted",
     "its copies join the next group, which is waited for too"},
    {"triton_matmul_matmul: bar.sync 0 (2): deleted",
     "wgmma.wait_group covers the products of all four warps"},
    {"cluster: barrier.cluster.wait.aligned: deleted",
     "nobody touches another CTA's memory after it"},
    {"cluster_exit: mbarrier.init.shared.b64 [done], 1: one more",
     "nobody waits for it"},
    {"cluster_exit: fence.mbarrier_init.release.cluster: deleted",
     "the cluster barrier behind it has release and acquire"},
    {"cluster_exit: mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
     "[%r9]: deleted",
     "nobody waits for it"},
    {"counter_reset: fence.acq_rel.gpu: deleted",
     "nobody reads what was stored before it"},
    {"counter_reset: fence.acq_rel.gpu: narrower",
     "nobody reads what was stored before it"},
    {"counter_reset: fence.acq_rel.gpu (2): deleted",
     "the atomic itself comes before the store, and has seen the others"},
    {"counter_reset: fence.acq_rel.gpu (2): narrower",
     "the atomic itself comes before the store, and has seen the others"},
    {"heeded: bar.warp.sync 0xffffffff: deleted",
     "each lane has waited for the copy itself"},
    {"specialized: mbarrier.arrive.shared.b64 _, [%r10], 1 (2): deleted",
     "the last slot is handed back to nobody"},
    {"specialized: wgmma.wait_group.sync.aligned 0 (2): deleted",
     "the wait in the loop covers every product"},
    {"specialized: wgmma.wait_group.sync.aligned 0 (2): one group later",
     "the wait in the loop covers every product"},
    {"cluster_slot: barrier.cluster.wait.aligned: deleted",
     "each CTA has waited for the other's last access"},
    {"st_async: fence.mbarrier_init.release.cluster: deleted",
     "the cluster barrier behind it has release and acquire"},
    {"st_async: barrier.cluster.wait.aligned (3): deleted",
     "the other CTA has waited for the last store"},
    {"wgmma: bar.sync 0 (2): deleted",
     "wgmma.wait_group covers the products of all four warps"},
    {"wgmma: wgmma.fence.sync.aligned (2): deleted",
     "no register was touched since the product before"}};

class Mutation : public testing::TestWithParam<Subject> {};

TEST_P(Mutation, EachDefectIsFound) {
  const Subject &subject = GetParam();
  std::vector<std::string> lines = linesOf(subject);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(findingsOf(subject, joined(lines)), testing::IsEmpty());
  auto [first, last] = rangeOf(subject, lines);
  std::map<std::string, int> seen;
  std::size_t listed = 0;
  for (std::size_t i = first; i <= last; ++i) {
    std::optional<Instruction> instruction = parse(lines[i]);
    if (!instruction)
      continue;
    std::string name = subject.title() + ": " + instruction->text;
    if (int number = ++seen[name]; number > 1)
      name += fmt::format(" ({})", number);
    for (const Mutant &mutant : mutantsOf(*instruction)) {
      std::vector<std::string> broken = lines;
      broken[i] = mutant.line;
      std::set<std::string> ids = findingsOf(subject, joined(broken));
      std::string key = name + ": " + mutant.kind;
      bool isRedundant = kRedundant.contains(key);
      listed += isRedundant;
      EXPECT_EQ(ids.empty(), isRedundant)
          << key << ", at line " << i + 1 << ", "
          << (isRedundant ? "is on the list and was found: " : "was not found")
          << testing::PrintToString(ids);
    }
  }
  auto isOfSubject = [&](const auto &entry) {
    return entry.first.starts_with(subject.title() + ": ");
  };
  EXPECT_EQ(static_cast<std::size_t>(std::count_if(
                kRedundant.begin(), kRedundant.end(), isOfSubject)),
            listed)
      << "the list names an instruction of " << subject.title()
      << " that is not there";
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation, testing::ValuesIn(allSubjects()),
                         [](const auto &info) { return info.param.title(); });

} // namespace
} // namespace kiln
