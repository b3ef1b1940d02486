// RunKernel: a kernel of a few instructions with two buffers and shared memory,
// run to its end, with what was found.
#pragma once

#include "kiln/base/error.h"
#include "kiln/check/report.h"
#include "sim/launch/Launch.h"

#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln::sim {

class RunKernel {
public:
  static constexpr std::size_t kBufferBytes = 8192;

  /// The instructions see %t (thread), %rank (CTA of the cluster), %s (`tile`,
  /// 4096 bytes of shared memory), %bar (room for an mbarrier), %in and %out,
  /// and may use %r0-%r15, %x0-%x7 (64 bits), %f0-%f7 and %p0-%p7.
  explicit RunKernel(const std::string &instructions,
                     const std::string &target = "sm_90a")
      : module_(ptx::parse(fmt::format(
            R"(.version 8.6
.target {}
.address_size 64
.visible .entry test(.param .u64 in, .param .u64 out,
                     .param .align 64 .b8 map[128])
{{
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 barrier;
.reg .b32 %t, %rank, %s, %bar, %r<16>;
.reg .b64 %in, %out, %map, %x<8>;
.reg .f32 %f<8>;
.reg .pred %p<8>;
mov.u32 %t, %tid.x;
mov.u32 %rank, %cluster_ctarank;
mov.u32 %s, tile;
mov.u32 %bar, barrier;
mov.b64 %map, map;
cvta.param.u64 %map, %map;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
{}
ret;
}}
)",
            target, instructions))),
        input_(memory_.allocate(kBufferBytes, "in")),
        output_(memory_.allocate(kBufferBytes, "out")) {
    config.block = {32, 1, 1};
    config.threads = 1;
    config.params.resize(192);
    std::memcpy(config.params.data(), &input_.base, 8);
    std::memcpy(config.params.data() + 8, &output_.base, 8);
  }

  template <typename T> RunKernel &input(const std::vector<T> &values) {
    return fill(input_, values);
  }
  template <typename T> RunKernel &output(const std::vector<T> &values) {
    return fill(output_, values);
  }
  std::uint64_t inputAddress() const { return input_.base; }
  std::uint64_t outputAddress() const { return output_.base; }

  LaunchResult run() {
    Launch launch(memory_, module_, module_.functions.at(0), config);
    return launch.run();
  }
  /// Run under one order; a finding is a failure.
  RunKernel &runCleanly(Interleaving order) {
    config.interleaving = order;
    for (const Finding &finding : run().findings)
      ADD_FAILURE() << finding.id << ": " << finding.message;
    return *this;
  }
  /// The first finding as "id: message"; empty: none.
  std::string finding() {
    LaunchResult result = run();
    if (result.findings.empty())
      return "";
    return result.findings[0].id + ": " + result.findings[0].message;
  }
  template <typename T> T result(std::size_t index) const {
    T value;
    std::memcpy(&value, output_.data.get() + index * sizeof(T), sizeof(T));
    return value;
  }

  LaunchConfig config;

private:
  template <typename T>
  RunKernel &fill(Region &region, const std::vector<T> &values) {
    std::memcpy(region.data.get(), values.data(), values.size() * sizeof(T));
    region.valid.set(0, values.size() * sizeof(T));
    return *this;
  }

  ptx::Module module_;
  GlobalMemory memory_;
  Region &input_, &output_;
};

/// Every order in which asynchronous work may be done.
inline constexpr Interleaving kOrders[] = {Interleaving::eager, Interleaving::lazy,
                                       Interleaving::random};

/// 0, 1, 2, ... as T.
template <typename T> std::vector<T> counting(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(i);
  return values;
}

/// What a report says of it.
inline std::string jsonOf(const LaunchResult &result) {
  Report report;
  report.add({}, Exploration{.runs = {{.launches = {result}}}});
  return report.to_json();
}

inline void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "expected '" << part << "' in '" << text << "'";
}

} // namespace kiln::sim
