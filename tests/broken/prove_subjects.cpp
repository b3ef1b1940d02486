// prove_subjects: the kernels of the mutation tests in every interleaving, and
// each of their defects: one that is called proved, though nobody says that it
// changes nothing, is a false proof.
//
//     prove_subjects                      every kernel as it is
//     prove_subjects --only specialized --mutants --seconds 10
#include "broken/MutationRedundant.h"
#include "broken/MutationSubjects.h"
#include "kiln/check/prove.h"

#include <cstdio>

namespace kiln {
namespace {

struct Options {
  std::string only; ///< part of a title
  bool hasMutants = false;
  double seconds = 5;
  std::uint64_t most = 20000;
};

Proof proveSubject(const Subject &subject, const std::string &ptx,
                   const Options &options) {
  SimOptions sim{.device = sim_device_for(ptx), .threads = 1};
  // What a compiler is known for is no sign of a defect.
  if (subject.file == "nvgpu_gemm")
    sim.allow = {"mbarrier-init-fence-barrier"};
  if (subject.file.starts_with("triton_sm100"))
    sim.allow = {"tcgen05-fence"};
  if (subject.file == "tilelang_sm100")
    sim.allow = {"tcgen05-lanes"};
  auto device = open_sim(sim);
  Arguments arguments{*device};
  subject.fill(arguments);
  std::string_view text = ptx;
  LaunchDescription launch{
      .name = subject.file.empty() ? "" : subject.name,
      .ptx = ptx,
      .grid = subject.grid,
      .block = subject.block,
      .cluster = subject.cluster,
      .dynamic_smem_bytes = subject.smemBytes,
      .parameters = arguments.list,
  };
  launch.module = device->load({&text, 1});
  if (launch.name.empty())
    launch.name = launch.module->entries().front();
  ProveOptions prove;
  prove.sim = sim;
  prove.sim.max_instructions = 1'000'000;
  prove.time_limit_s = options.seconds;
  prove.max_interleavings = options.most;
  return kiln::prove(*device, launch, prove);
}

struct Counts {
  int proved = 0, refuted = 0, gaveUp = 0, redundant = 0, wrong = 0;
};

void show(const std::string &title, const Proof &proof) {
  std::printf("%-34s %s\n", title.c_str(),
              fmt::format("{:<14} {:>8} executed {:>8} known {:>6} steps "
                          "{:>8} instructions {:7.2f} s {} states{}{}",
                          name(proof.verdict), proof.executed, proof.redundant,
                          proof.steps, proof.instructions, proof.time_s,
                          proof.final_states.size(),
                          proof.findings.empty() ? "" : " ",
                          fmt::join(proof.findings, " "))
                  .c_str());
  if (!proof.reason.empty())
    std::printf("    gave up %s\n", proof.reason.c_str());
  std::fflush(stdout);
}

bool isListed(const std::string &title, const std::vector<std::string> &names,
              const std::string &kind) {
  Redundant redundant = allRedundant();
  return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
    return redundant.contains(fmt::format("{}: {}: {}", title, name, kind));
  });
}

void proveMutants(const Subject &subject, const Options &options,
                  Counts &counts) {
  std::vector<std::string> lines = linesOf(subject);
  auto [first, last] = rangeOf(subject, lines);
  std::map<std::string, int> all, seen;
  for (std::size_t i = first; i <= last; ++i)
    if (auto instruction = parse(lines[i]))
      ++all[instruction->text];
  for (std::size_t i = first; i <= last; ++i) {
    auto instruction = parse(lines[i]);
    if (!instruction)
      continue;
    const std::string &text = instruction->text;
    auto names = namesOf(text, ++seen[text], all[text]);
    for (const Mutant &mutant : mutantsOf(*instruction)) {
      std::vector<std::string> broken = lines;
      broken[i] = mutant.line;
      Proof proof = proveSubject(subject, joined(broken), options);
      bool isClean =
          proof.verdict == ProofVerdict::proved && proof.findings.empty();
      bool isKnown = isListed(subject.title(), names, mutant.kind);
      counts.gaveUp += proof.verdict == ProofVerdict::gave_up;
      counts.refuted += !isClean && proof.verdict != ProofVerdict::gave_up;
      counts.redundant += isClean && isKnown;
      if (isClean && !isKnown)
        ++counts.wrong;
      else if (proof.verdict != ProofVerdict::gave_up && !(isKnown && !isClean))
        continue;
      show(fmt::format("{}: {}: {}{}", subject.title(), names[0], mutant.kind,
                       isClean                                  ? " FALSE PROOF"
                       : proof.verdict == ProofVerdict::gave_up ? ""
                                                                : " (listed)"),
           proof);
    }
  }
}

int run(const Options &options) {
  Counts counts;
  for (const Subject &subject : allSubjects()) {
    if (subject.title().find(options.only) == std::string::npos)
      continue;
    try {
      Proof proof = proveSubject(subject, joined(linesOf(subject)), options);
      show(subject.title(), proof);
      counts.proved += proof.verdict == ProofVerdict::proved;
      if (proof.verdict == ProofVerdict::counterexample) {
        ++counts.wrong;
        std::printf("%s", proof.to_string().c_str());
      }
      if (options.hasMutants && proof.verdict == ProofVerdict::proved)
        proveMutants(subject, options, counts);
    } catch (const Error &error) {
      std::printf("%-34s refused: %s\n", subject.title().c_str(), error.what());
      ++counts.wrong;
    }
  }
  std::printf("%s\n",
              fmt::format("{} kernels proved; mutants: {} refuted, {} change "
                          "nothing as listed, {} gave up; {} wrong",
                          counts.proved, counts.refuted, counts.redundant,
                          counts.gaveUp, counts.wrong)
                  .c_str());
  return counts.wrong ? 1 : 0;
}

} // namespace
} // namespace kiln

int main(int argc, char **argv) {
  kiln::Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool hasNext = i + 1 < argc;
    if (word == "--mutants")
      options.hasMutants = true;
    else if (word == "--only" && hasNext)
      options.only = argv[++i];
    else if (word == "--seconds" && hasNext)
      options.seconds = std::atof(argv[++i]);
    else if (word == "--most" && hasNext)
      options.most = std::strtoull(argv[++i], nullptr, 10);
    else {
      std::fprintf(stderr, "prove_subjects: no option %s\n", word.c_str());
      return 3;
    }
  }
  return kiln::run(options);
}
