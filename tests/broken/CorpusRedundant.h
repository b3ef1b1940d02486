// TritonRedundant: what Triton's kernels for sm_100a synchronise more than
// once.
#pragma once

#include "broken/Mutants.h"

namespace kiln {

inline Redundant tritonRedundant() {
  Redundant all;
  auto add = [&](std::initializer_list<const char *> kernels,
                 std::initializer_list<const char *> instructions,
                 const char *why) {
    for (const char *kernel : kernels)
      for (const char *instruction : instructions)
        all[fmt::format("triton_sm100_{}: {}: deleted", kernel, instruction)] =
            why;
  };
  auto products = {"f16_matmul", "e4m3_matmul", "tf32_matmul"};
  auto scaled = {"mxf8_scaled", "mxf4_scaled", "nvf4_scaled"};
  auto attention = {"attention_attention"}, pair = {"pair_pair"};

  const char *why = "all threads wait for the mbarrier behind it";
  add(products, {"bar.sync 0 (3)"}, why);
  add(scaled, {"bar.sync 0 (3)"}, why);
  add(attention, {"bar.sync 0 (3)", "bar.sync 0 (6)"}, why);
  add(pair, {"bar.sync 0 (3)"}, why);

  why = "the loop has waited for the stores";
  add(products, {"tcgen05.wait::st.sync.aligned (2)"}, why);
  add(scaled, {"tcgen05.wait::st.sync.aligned (3)"}, why);
  add(attention, {"tcgen05.wait::st.sync.aligned (3)"}, why);

  why = "each warp has waited for the products, and touches its own lanes";
  add(products, {"bar.sync 0 (6)"}, why);
  add(scaled, {"bar.sync 0 (11)"}, why);
  add(attention, {"bar.sync 0 (8)", "bar.sync 0 (10)"}, why);

  why = "the warps have met behind their last load";
  add(products, {"barrier.sync 0"}, why);
  add(scaled, {"barrier.sync 0"}, why);
  add(attention, {"barrier.sync 0"}, why);

  add(scaled, {"bar.sync 0 (5)"}, "nobody reads before the next barrier");
  add(scaled, {"tcgen05.wait::st.sync.aligned"},
      "the wait before the products covers the stores before it");
  add(scaled, {"bar.sync 0 (9)"}, "a barrier follows the init");
  add(scaled, {"bar.sync 0 (10)"},
      "there is a barrier before the init's waits, and one before the init");
  add(pair, {"fence.mbarrier_init.release.cluster", "bar.sync 0 (4)"},
      "a cluster barrier of release and acquire stands beside it");
  add(pair, {"barrier.cluster.wait.aligned (5)"},
      "a pair frees together, each CTA behind its own barrier");
  return all;
}

/// TileLang puts the fences of tcgen05 around every barrier. There are three K
/// tiles and two slots: only the first slot is filled again.
inline Redundant tilelangRedundant() {
  Redundant all;
  auto add = [&](std::initializer_list<const char *> instructions,
                 const char *why, const char *kind = "deleted") {
    for (const char *instruction : instructions)
      all[fmt::format("tilelang_sm100_product_kernel: {}: {}", instruction,
                      kind)] = why;
  };
  const char *why = "nobody has touched tensor memory since the one before";
  for (int i : {2, 3, 4, 5, 6}) {
    std::string name = fmt::format("tcgen05.fence::before_thread_sync ({})", i);
    add({name.c_str()}, why);
  }
  for (int i : {2, 3, 4, 5, 7, 8, 9}) {
    std::string name = fmt::format("tcgen05.fence::after_thread_sync ({})", i);
    add({name.c_str()}, why);
  }
  add({"tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"},
      "nobody has touched tensor memory");
  add({"fence.proxy.async.shared::cta", "fence.proxy.async.shared::cta (2)",
       "fence.proxy.async.shared::cta (3)"},
      "copies have filled the tiles, and no thread");
  add({"bar.sync 0"}, "another barrier follows");
  add({"bar.sync 0 (2)"},
      "the warp that allocates loads, and its arrivals tell the others");
  add({"bar.sync 0 (3)"}, "all threads have waited for the products");
  add({"bar.sync %r524, %r525"}, "the tile is stored once");
  add({"mbarrier.init.shared::cta.b64 [%r36], %r37"},
      "nobody waits for the second slot to be free", "one more");
  add({"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
       "[%r182]",
       "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
       "[%r250]"},
      "nobody waits for the slot to be free again");
  for (const char *kind : {"deleted", "asks once"})
    add({"mbarrier.try_wait.parity.shared::cta.b64 P1, [%r257], %r258, %r259",
         "mbarrier.try_wait.parity.shared::cta.b64 P1, [%r280], %r281, %r282"},
        "the slot is free at first", kind);
  return all;
}

} // namespace kiln
