// RunTensor: a kernel of one line or more, with shared memory that is filled
// and tensor memory that is allocated.
#pragma once

#include "sim/launch/Launch.h"
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

inline constexpr std::uint32_t kSharedBytes = 65536;

/// A kernel of 128 threads with shared memory that is filled from `in`, and
/// 128 columns of tensor memory that it may use. `body` sees %t, %warp, %lead
/// (thread 0), %tmem, %mine (the same with the warp's lanes), %s (shared
/// memory), %bar, %in, %out and may use %r0-%r271, %x0-%x7, %p0-%p7.
class RunTensor {
public:
  RunTensor(const std::string &body, std::vector<std::uint8_t> shared,
            std::size_t outWords, int group = 1, std::string target = "sm_100a")
      : module_(ptx::parse(fmt::format(kKernel, target, body, group))),
        input_(memory_.allocate(group * kSharedBytes, "in")),
        output_(memory_.allocate(outWords * 4, "out")) {
    shared.resize(group * kSharedBytes);
    std::memcpy(input_.data.get(), shared.data(), shared.size());
    input_.valid.set(0, shared.size());
    config.block = {128, 1, 1};
    config.grid = config.cluster = {static_cast<std::uint32_t>(group), 1, 1};
    config.threads = 1;
    config.dynamicSmemBytes = kSharedBytes;
    config.params.resize(16);
    std::memcpy(config.params.data(), &input_.base, 8);
    std::memcpy(config.params.data() + 8, &output_.base, 8);
  }

  LaunchResult launch() {
    return Launch(memory_, module_, module_.functions.at(0), config).run();
  }
  /// The first finding as "id: message"; empty: none.
  std::string finding() {
    LaunchResult result = launch();
    if (result.findings.empty())
      return "";
    return result.findings[0].id + ": " + result.findings[0].message;
  }
  std::vector<std::uint32_t> run(Interleaving order = Interleaving::eager) {
    config.interleaving = order;
    EXPECT_EQ(finding(), "");
    std::vector<std::uint32_t> words(output_.bytes / 4);
    std::memcpy(words.data(), output_.data.get(), output_.bytes);
    return words;
  }

  LaunchConfig config;

private:
  static constexpr const char *kKernel = R"(.version 8.7
.target {0}
.address_size 64
.extern .shared .align 1024 .b8 pool[];
.visible .entry test(.param .u64 in, .param .u64 out)
{{
.shared .align 8 .b64 barrier;
.shared .align 4 .b32 slot;
.reg .b32 %t, %warp, %s, %bar, %tmem, %mine, %rank, %r<272>;
.reg .b64 %in, %out, %x<8>;
.reg .pred %lead, %first, %filling, %p<8>;
mov.u32 %t, %tid.x;
mov.u32 %rank, %cluster_ctarank;
shr.u32 %warp, %t, 5;
setp.eq.u32 %lead, %t, 0;
setp.eq.u32 %first, %warp, 0;
mov.u32 %s, pool;
mov.u32 %bar, barrier;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
@%first tcgen05.alloc.cta_group::{2}.sync.aligned.shared::cta.b32 [slot], 128;
@%first tcgen05.relinquish_alloc_permit.cta_group::{2}.sync.aligned;
@%lead mbarrier.init.shared::cta.b64 [barrier], 1;
fence.mbarrier_init.release.cluster;
mul.wide.u32 %x0, %rank, 65536;
add.u64 %x0, %in, %x0;
mul.wide.u32 %x1, %t, 16;
add.u64 %x0, %x0, %x1;
shl.b32 %r0, %t, 4;
add.u32 %r0, %r0, %s;
mov.u32 %r1, 0;
fill:
ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%x0];
st.shared.v4.b32 [%r0], {{%r2, %r3, %r4, %r5}};
add.u64 %x0, %x0, 2048;
add.u32 %r0, %r0, 2048;
add.u32 %r1, %r1, 2048;
setp.lt.u32 %filling, %r1, 65536;
@%filling bra fill;
fence.proxy.async;
bar.sync 0;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ld.shared.b32 %tmem, [slot];
shl.b32 %mine, %warp, 21;
add.u32 %mine, %mine, %tmem;
{1}
tcgen05.fence::before_thread_sync;
bar.sync 0;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
@%first tcgen05.dealloc.cta_group::{2}.sync.aligned.b32 %tmem, 128;
ret;
}}
)";
  ptx::Module module_;
  GlobalMemory memory_;
  Region &input_, &output_;
};

/// "%r4, %r5" of two registers from the fourth on.
inline std::string registerList(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}%r{}", i ? ", " : "", first + i);
  return text;
}

} // namespace kiln::sim
