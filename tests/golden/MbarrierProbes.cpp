// MbarrierProbes: random legal lives of one mbarrier, with both parities and
// the last state token tested after every step.
#include "golden/Probes.h"

#include <random>

namespace kiln::golden {

static constexpr int kSteps = 60;

namespace {
/// What the text says an mbarrier is, to choose steps it allows.
struct Model {
  int expected, pending, tx = 0;
  void settle() {
    if (pending == 0 && tx == 0)
      pending = expected;
  }
};
} // namespace

/// One allowed instruction; the model takes it.
static std::string step(Model &model, std::mt19937 &random) {
  auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  for (;;) {
    int bytes = 16 * (1 + below(4));
    switch (below(7)) {
    case 0:
    case 1:
      if (model.pending == 0)
        break;
      --model.pending;
      model.settle();
      return "mbarrier.arrive.shared::cta.b64 %state, [%smem];\n";
    case 2: {
      if (model.pending < 2)
        break;
      int count = 1 + below(model.pending);
      model.pending -= count;
      model.settle();
      return fmt::format("mbarrier.arrive.shared::cta.b64 %state, [%smem], "
                         "{};\n",
                         count);
    }
    case 3:
      if (model.pending == 0)
        break;
      model.tx += bytes;
      --model.pending;
      return fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 %state, "
                         "[%smem], {};\n",
                         bytes);
    case 4:
      if (model.pending == 0)
        break;
      model.tx += bytes;
      return fmt::format("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 "
                         "[%smem], {};\n",
                         bytes);
    case 5:
      if (model.tx == 0)
        break;
      bytes = below(2) ? model.tx : 16;
      model.tx -= bytes;
      model.settle();
      return fmt::format("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 "
                         "[%smem], {};\n",
                         bytes);
    default:
      if (model.pending == 0 || model.expected == 1 || below(3))
        break;
      --model.expected;
      --model.pending;
      model.settle();
      return "mbarrier.arrive_drop.shared::cta.b64 %state, [%smem];\n";
    }
  }
}

void addMbarrierProbes(std::vector<Probe> &list) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    Model model{static_cast<int>(1 + seed % 6), 0};
    model.pending = model.expected;
    std::string body = fmt::format(R"(
.reg .b64 %state;
.reg .b32 %even, %odd, %old, %n;
.reg .pred %p, %q;
setp.ne.u32 %q, %t, 0;
@%q bra done;
mbarrier.init.shared::cta.b64 [%smem], {};
mbarrier.arrive.shared::cta.b64 %state, [%smem];
)",
                                   model.expected);
    --model.pending;
    model.settle();
    for (int i = 0; i < kSteps; ++i) {
      body += step(model, random);
      body += fmt::format(R"(
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 0;
selp.u32 %even, 1, 0, %p;
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 1;
selp.u32 %odd, 2, 0, %p;
mbarrier.test_wait.shared::cta.b64 %p, [%smem], %state;
selp.u32 %old, 4, 0, %p;
or.b32 %n, %even, %odd;
or.b32 %n, %n, %old;
st.global.u8 [%out+{}], %n;
)",
                          i);
    }
    body += "done:\n";
    Probe probe{.group = "mbarrier", .name = fmt::format("life_{}", seed)};
    probe.ptx = moduleText(0, 0, body);
    probe.smemBytes = 1024;
    probe.outputBytes = kSteps;
    list.push_back(probe);
  }
}

} // namespace kiln::golden
