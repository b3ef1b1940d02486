// Builder: what is refused of a kernel's options, arguments and end.
#include "Refused.h"

using namespace errors;

TEST(BuilderErrors, KernelName) {
  refused(
      __LINE__, [] { KernelBuilder("7up", {.threads = 1}); },
      "'7up' cannot name a kernel; use letters, digits and _, not "
      "beginning with a digit");
}

TEST(BuilderErrors, Threads) {
  refused(
      __LINE__, [] { KernelBuilder("k", {.threads = -1}); },
      "kernel k has -1 threads and 0 warpgroups; neither may be negative");
  refused(
      __LINE__, [] { KernelBuilder("k", {.threads = 1, .warpgroups = 2}); },
      "kernel k has 1 threads and 2 warpgroups, which are 256 threads; "
      "give one of the two");
  refused(
      __LINE__, [] { KernelBuilder("k", {}); },
      "kernel k has 0 threads per CTA; sm_90a takes 1 to 1024 "
      "(KernelOptions::threads or warpgroups)");
  refused(
      __LINE__, [] { KernelBuilder("k", {.warpgroups = 9}); },
      "kernel k has 1152 threads per CTA; sm_90a takes 1 to 1024 "
      "(KernelOptions::threads or warpgroups)");
}

TEST(BuilderErrors, CtasPerSm) {
  KernelOptions crowded{.threads = 1, .ctas_per_sm = 33};
  refused(
      __LINE__, [&] { KernelBuilder("k", crowded); },
      "kernel k asks for 33 CTAs per SM; sm_90a holds 1 to 32");
}

TEST(BuilderErrors, Target) {
  refused(
      0, [] { KernelBuilder("k", {.threads = 1, .target = "sm_12"}); },
      "there is no target \"sm_12\"; kernels are compiled for sm_80, "
      "sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a");
}

TEST(BuilderErrors, NoKernelUnderConstruction) {
  refused(
      __LINE__, [] { thread_id(); },
      "there is no kernel under construction in this thread; make a "
      "KernelBuilder first");
}

TEST(BuilderErrors, NoKernelIsLeftBehindByARefusal) {
  EXPECT_THROW(KernelBuilder("k", {}), UserError);
  refused(
      __LINE__, [] { thread_id(); },
      "there is no kernel under construction in this thread; make a "
      "KernelBuilder first");
}

TEST(BuilderErrors, BuiltTwice) {
  KernelBuilder kb("k", {.threads = 32});
  kb.module();
  std::string message = "kernel k has been built already; a KernelBuilder "
                        "builds one kernel, once";
  refused(__LINE__, [&] { kb.module(); }, message);
  refused(__LINE__, [&] { kb.build(); }, message);
  refused(__LINE__, [&] { thread_id(); }, message);
  refused(__LINE__, [&] { kb.scalar("n", i32); }, message);
  refused(__LINE__, [&] { kb.tensor("x", f32, {8}); }, message);
  refused(__LINE__, [&] { kb.mbarriers(1); }, message);
}

TEST(BuilderErrors, Arguments) {
  KernelBuilder kb("k", {.threads = 32});
  kb.scalar("n", i32);
  refused(
      __LINE__, [&] { kb.dim("n"); },
      "kernel k has an argument called 'n' already");
  refused(
      __LINE__, [&] { kb.scalar("a b", i32); },
      "'a b' cannot name an argument; use letters, digits and _, not "
      "beginning with a digit");
}

TEST(BuilderErrors, TensorShapes) {
  KernelBuilder kb("k", {.threads = 32});
  refused(
      __LINE__, [&] { kb.tensor("x", f32, {}); },
      "tensor 'x' has 0 dimensions; 1 to 5 are possible");
  refused(
      __LINE__, [&] { kb.tensor("x", f32, {4, 0}); },
      "tensor 'x' has a dimension of 0; every one must be at least 1");
  refused(
      __LINE__, [&] { kb.tensor("x", f32, {4, 4}, {1}); },
      "tensor 'x' has 2 dimensions and 1 strides");
}

TEST(BuilderErrors, TensorMaps) {
  KernelBuilder kb("k", {.threads = 32});
  refused(
      __LINE__, [&] { kb.tensor_map("a", f16, {4, 4, 8}, {}); },
      "tensor map 'a' has 3 dimensions and a tile of 0");
  refused(
      __LINE__, [&] { kb.tensor_map("b", f16, {4, 8}, {.tile = {8}}); },
      "tensor map 'b' has 2 dimensions and a tile of 1");
  Tensor columns = kb.tensor("c", f16, {8, 8}, {1, 8});
  refused(
      __LINE__, [&] { kb.tensor_map(columns, {.tile = {8, 8}}); },
      "tensor map 'c' has an innermost stride of 8; TMA reads rows whose "
      "elements are adjacent");
  refused(
      __LINE__, [&] { kb.tensor_map("d", f16, {8, 9}, {.tile = {8, 8}}); },
      "the rows of tensor map 'd' are 18 bytes apart; TMA needs a multiple "
      "of 16 (a multiple of 8 elements of f16)");
}

TEST(BuilderErrors, UnknownDimension) {
  KernelBuilder kb("k", {.threads = 32});
  Dim n = Dim::argument("n");
  refused(
      __LINE__, [&] { value_of(n); },
      "'n' is not a dimension of kernel k; declare it with "
      "KernelBuilder::dim");
}

TEST(BuilderErrors, SharedCounts) {
  KernelBuilder kb("k", {.threads = 32});
  refused(
      __LINE__, [&] { kb.shared_array({f16, 8, 8}, 0); },
      "0 shared tiles were asked for; at least 1 is needed");
  refused(
      __LINE__, [&] { kb.mbarriers(0); },
      "0 mbarriers were asked for; at least 1 is needed");
}

TEST(BuilderErrors, SharedMemoryListsItsAllocations) {
  unsigned line = __LINE__ + 1;
  KernelBuilder kb("k", {.threads = 32});
  kb.mbarriers(2);
  kb.shared({f16, 128, 64, Swizzle::b128});
  kb.shared_array({f32, 256, 64}, 4);
  refused(
      line, [&] { kb.module(); },
      fmt::format("kernel k needs 279552 bytes of shared memory, 47104 "
                  "more than the 232448 a CTA can have on sm_90a at 1 per "
                  "SM:\n"
                  "  16 bytes at 0: 2 mbarriers ({})\n"
                  "  16384 bytes at 1024: tile 128x64 f16, swizzle 128 "
                  "({})\n"
                  "  262144 bytes at 17408: 4 tiles 256x64 f32 ({})",
                  at(line + 1), at(line + 2), at(line + 3)));
}

TEST(BuilderErrors, SharedMemoryAtTwoPerSm) {
  unsigned line = __LINE__ + 1;
  KernelBuilder kb("k", {.threads = 32, .ctas_per_sm = 2});
  kb.shared_array({f32, 256, 64}, 2);
  refused(
      line, [&] { kb.module(); },
      fmt::format("kernel k needs 131072 bytes of shared memory, 15360 "
                  "more than the 115712 a CTA can have on sm_90a at 2 per "
                  "SM:\n"
                  "  131072 bytes at 0: 2 tiles 256x64 f32 ({})",
                  at(line + 1)));
}

TEST(BuilderErrors, BarrierNobodyArrivesAt) {
  KernelBuilder kb("k", {.threads = 32});
  unsigned declared = __LINE__ + 1;
  MbarrierArray barriers = kb.mbarriers(1);
  barriers[0].init(1);
  unsigned waited = __LINE__ + 1;
  barriers[0].wait(0);
  refused(
      waited, [&] { kb.module(); },
      fmt::format("nobody arrives at the mbarrier declared at {}; this "
                  "wait would never end",
                  at(declared)));
}

TEST(BuilderErrors, BarrierNeverInitialised) {
  KernelBuilder kb("k", {.threads = 32});
  unsigned declared = __LINE__ + 1;
  MbarrierArray barriers = kb.mbarriers(1);
  barriers[0].arrive();
  refused(
      declared, [&] { kb.module(); },
      "the mbarrier declared here is used and never initialised; call init "
      "first");
}

TEST(BuilderErrors, BuiltInsideABody) {
  KernelBuilder kb("k", {.threads = 32});
  EXPECT_THROW(if_(thread_id() == 0, [&] { kb.module(); }), UserError);
}

TEST(BuilderErrors, Workspaces) {
  KernelBuilder kb("k", {.threads = 1});
  Dim m = kb.dim("m");
  refused(
      __LINE__, [&] { kb.workspace("w", f32, {4, m}); },
      "workspace 'w' has a dimension or stride m, which is known at launch; it "
      "is allocated before, give a number");
  kb.workspace("w", f32, {4});
  kb.workspace("v", f32, {4});
  refused(
      __LINE__, [&] { kb.tensor("x", f32, {4}); },
      "kernel k has the workspace 'v', and 'x' comes after it; declare what "
      "the "
      "caller passes first");
}
