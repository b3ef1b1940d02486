// litmus_test: litmus tests: a few threads of PTX, and what may come of them.
//
//     LitmusTest test = LitmusTest::load("tests/litmus/mp.litmus");
//     LitmusResult seen = run_litmus(*open_sim(), test, {});
//     seen.verdict(test);
//
// The format is described in docs/litmus.md. A test becomes one kernel; on the
// simulator it runs in as many interleavings as explore() is asked for, on a
// GPU many instances of it run at once, again and again.
#pragma once

#include <kiln/check/explore.h>
#include <kiln/run/device.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// What a test's condition is about.
enum class LitmusExpectation : std::uint8_t {
  allowed,   ///< it may come true
  forbidden, ///< it may not
  undefined, ///< the test has a data race or breaks a rule: any value may come
};
const char *name(LitmusExpectation expectation);

struct LitmusTest {
  /// A variable of the global or shared memory of the test.
  struct Variable {
    enum class Kind : std::uint8_t { global, shared, mbarrier };
    Kind kind = Kind::global;
    std::string name;
    std::uint32_t bytes = 4;
    std::uint32_t value = 0; ///< of each 32-bit word; of an mbarrier, its count
  };
  /// Lane 0 of a warp, or the whole warp.
  struct Thread {
    std::string name; ///< "P0"
    int cta = 0, warp = 0;
    bool is_whole_warp = false;
    std::string code;
    int line = 0;
  };
  /// A register of a thread, or the first word of a variable when all have
  /// ended.
  struct Observed {
    int thread = -1; ///< -1: a variable
    std::string name;
    bool operator==(const Observed &) const = default;
  };
  /// A condition in reverse Polish notation.
  struct Term {
    enum class Kind : std::uint8_t { equal, different, both, either, negation };
    Kind kind = Kind::equal;
    int observed = -1;
    std::uint32_t value = 0;
  };

  std::string name, file;
  std::string target = "sm_90a";
  std::string rule; ///< the sentence of the PTX ISA behind the expectation
  LitmusExpectation expectation = LitmusExpectation::allowed;
  /// Ids of findings, one of which the simulator has to report; empty: no
  /// error.
  std::vector<std::string> findings;
  /// "NVIDIA H200: 0 of 1000000"
  std::vector<std::string> observed_on;
  int ctas = 1;
  bool is_cluster = false; ///< its CTAs are one cluster
  std::vector<Variable> variables;
  std::vector<Thread> threads;
  std::vector<Observed> observed;
  std::vector<Term> condition;

  /// Throws UserError with the line and what would be accepted.
  static LitmusTest parse(std::string_view text, const std::string &file);
  static LitmusTest load(const std::string &path);

  int warps() const; ///< of each CTA
  bool holds(const std::vector<std::uint32_t> &values) const;
  /// "P1:r0=1 P1:r1=0"
  std::string to_string(const std::vector<std::uint32_t> &values) const;
  /// The kernel. Of many instances at once, each begins with its threads at a
  /// meeting and at moments of its own (a GPU).
  std::string ptx(bool is_stress) const;
  /// Bytes of the global variables of an instance.
  std::uint32_t global_bytes() const;
};

/// What came of a test.
struct LitmusResult {
  std::map<std::vector<std::uint32_t>, std::uint64_t> outcomes;
  std::vector<Finding> findings; ///< of all interleavings, each once
  std::uint64_t runs = 0;
  std::string single_because; ///< why there was one interleaving alone

  /// How often the condition came true.
  std::uint64_t count(const LitmusTest &test) const;
};

enum class LitmusVerdict : std::uint8_t {
  agrees,
  stronger,           ///< allowed, and never seen
  forbidden_seen,     ///< a defect of the machine, or of the expectation
  finding_missing,    ///< none of those that the test names
  finding_unexpected, ///< an error that the test does not name
};
const char *name(LitmusVerdict verdict);
/// What the simulator's run says of a test.
LitmusVerdict judge(const LitmusTest &test, const LitmusResult &result);
/// What a GPU's says: findings have no part in it.
LitmusVerdict judge_outcomes(const LitmusTest &test,
                             const LitmusResult &result);

/// On the simulator, in the interleavings of the options.
LitmusResult run_litmus(Device &device, const LitmusTest &test,
                        const ExploreOptions &options);

struct LitmusStress {
  int launches = 200;
  int instances = 256; ///< of a launch
  std::uint32_t seed = 1;
};
/// On a GPU.
LitmusResult stress_litmus(Device &device, const LitmusTest &test,
                           const LitmusStress &stress);

} // namespace kiln::cli
