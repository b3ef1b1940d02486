// Address: tensors and tensor maps behind pointers that the kernel loads.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

using namespace conformance;

namespace {
class Addresses : public OnDevice {};

/// Memory of the device that no contract names, filled from the host.
class Elsewhere {
public:
  Elsewhere(Device &device, std::vector<float> values, int skipped = 0)
      : device_(device), values_(std::move(values)),
        buffer_(device.allocate(bytes() + skipped)), skipped_(skipped) {
    device.fill(buffer_, 0xFF);
    if (bytes())
      device.copy_in(used(), values_.data(), bytes());
  }
  std::uint64_t address() const { return buffer_.address() + skipped_; }
  std::vector<float> read() const {
    std::vector<float> found(values_.size());
    if (bytes())
      device_.copy_out(found.data(), used(), bytes());
    return found;
  }

private:
  std::size_t bytes() const { return values_.size() * sizeof(float); }
  Buffer used() const { return buffer_.slice(skipped_, bytes()); }

  Device &device_;
  std::vector<float> values_;
  Buffer buffer_;
  int skipped_;
};
} // namespace
INSTANTIATE_ON_DEVICES(Addresses);

static std::vector<float> random_floats(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = between(random);
  return values;
}

static constexpr int kColumns = 20;

/// Each CTA adds 1 to one tensor, whose rows only it learns, 8 at a time; the
/// pointers are a multiple of `alignment` bytes.
static Kernel add_one(int tensors, int alignment) {
  KernelBuilder kb("add_one", {.threads = 32});
  kb.grid(tensors);
  Tensor pointers = kb.tensor("pointers", u64, {tensors});
  Tensor rows = kb.tensor("rows", i32, {tensors});
  Value one = block_id(), height = rows(one);
  Tensor x = kb.tensor_at(pointers(one), f32, {1000, kColumns}, {}, alignment)
                 .slice(0, 0, height);
  RegisterLayout layout = RegisterLayout::strided(32, 8, 32, 4);
  for_range(0, height, 8, [&](Value row) {
    (load_tile(layout, x, {row, 0}) + 1.0f).store(x, {row, 0});
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_FALSE(kernel.contract.arguments[0].is_output);
  EXPECT_EQ(kernel.contract.arguments.size(), 2u);
  // As wide as the promise allows.
  EXPECT_EQ(count(kernel.ptx, "ld.global.v4.b32") > 0, alignment == 16);
  EXPECT_EQ(count(kernel.ptx, "ld.global.v2.b32") > 0, alignment == 8);
  return kernel;
}

TEST_P(Addresses, TensorsBehindPointers) {
  std::vector<int> rows = {1, 0, 8, 37, 100};
  int tensors = static_cast<int>(rows.size());
  for (int alignment : {4, 8, 16}) {
    Kernel kernel = add_one(tensors, alignment);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<Elsewhere> memory;
    std::vector<std::vector<float>> expected;
    std::vector<std::uint64_t> pointers;
    for (int i = 0; i < tensors; ++i) {
      expected.push_back(random_floats(rows[i] * kColumns, 7 + i));
      memory.emplace_back(*device, expected.back(), alignment % 16);
      pointers.push_back(memory.back().address());
      for (float &value : expected.back())
        value += 1;
    }
    run(*device, kernel, pointers, rows);
    for (int i = 0; i < tensors; ++i)
      EXPECT_EQ(memory[i].read(), expected[i]) << i << ", " << alignment;
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Addresses, AtomicsVectorsAndCopies) {
  KernelBuilder kb("ways", {.threads = 32});
  Tensor pointers = kb.tensor("pointers", u64, {2});
  Tensor from = kb.tensor_at(pointers(0), f32, {32});
  Tensor to = kb.tensor_at(pointers(1), f32, {4, 32});
  SharedTile tile = kb.shared({f32, 1, 32});
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(128);
    bulk_copy(tile, from, {0}, 128, full);
  });
  sync_threads();
  full.wait(0);
  Value i = thread_id();
  to(0, i) = tile(0, i);
  to(1, i).store(from(i).load(CacheHint::streaming), CacheHint::no_allocate);
  if_(i < 8,
      [&] { to.store_vector({2, i * 4}, from.load_vector({i * 4}, 4)); });
  reduce_add(to(3, i), from(i));
  prefetch(from(i));
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<float> values = random_floats(32, 3), expected;
  for (int copy = 0; copy < 4; ++copy)
    expected.insert(expected.end(), values.begin(), values.end());
  Elsewhere in(device, values), out(device, std::vector<float>(128));
  std::vector<std::uint64_t> where = {in.address(), out.address()};
  run(device, kernel, where);
  EXPECT_EQ(out.read(), expected);
}

/// Each CTA moves 8 rows from `first` on of a tensor behind a pointer to `out`
/// through a tensor map of its own, and back into a second one.
static Kernel copy_through_maps(int tensors, bool changes_shape) {
  KernelBuilder kb("maps", {.threads = 64});
  kb.grid(tensors);
  TmaTensor model = kb.tensor_map("model", f32, {64, 32}, {.tile = {8, 16}});
  Tensor pointers = kb.tensor("pointers", u64, {2, tensors});
  Tensor rows = kb.tensor("rows", i32, {tensors});
  Tensor strides = kb.tensor("strides", i64, {tensors});
  Tensor rooms = kb.tensor("rooms", u8, {2, tensors, 128});
  Tensor out = kb.tensor("out", f32, {tensors, 8, 16});
  Value first = kb.scalar("first", i32);
  SharedTile tile = kb.shared(model.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  Value one = block_id();
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
  });
  sync_threads();
  if_(warp_id() == 0, [&] {
    TensorMapChange change;
    if (changes_shape)
      change = {.shape = {rows(one), 20}, .strides = {strides(one)}};
    TmaTensor from = model.at(pointers(0, one), rooms(0, one, 0), change);
    TmaTensor to = model.at(pointers(1, one), rooms(1, one, 0), change);
    EXPECT_EQ(from.name(), "model");
    if_(elect(), [&] {
      full.arrive_expect_tx(model.tile_bytes());
      tma_load(tile, from, {first, 8}, full);
      full.wait(0);
      tma_store(to, {first, 8}, tile);
      tma_store_commit();
      tma_store_wait(0);
    });
  });
  full.wait(0);
  for_range(thread_id(), 128, 64,
            [&](Value i) { out(one, i / 16, i % 16) = tile(i / 16, i % 16); });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "global_address"), 2);
  EXPECT_EQ(count(kernel.ptx, "global_dim"), changes_shape ? 4 : 0);
  EXPECT_FALSE(kernel.contract.arguments[0].is_output);
  EXPECT_TRUE(kernel.contract.arguments[4].is_output);
  EXPECT_EQ(kernel.contract.arguments[4].alignment_bytes, 128);
  return kernel;
}

TEST_P(Addresses, TensorMapsBehindPointers) {
  // Rows of so many elements; how many rows there are.
  std::vector<std::int64_t> strides = {32, 20, 64};
  std::vector<int> rows = {64, 13, 9};
  for (bool changes_shape : {false, true}) {
    Kernel kernel = copy_through_maps(3, changes_shape);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    for (int first : {0, 8, 11}) {
      std::vector<Elsewhere> in, out;
      std::vector<std::vector<float>> sources, written;
      std::vector<float> expected;
      for (int i = 0; i < 3; ++i) {
        auto stride = static_cast<int>(changes_shape ? strides[i] : 32);
        int height = changes_shape ? rows[i] : 64;
        int width = changes_shape ? 20 : 32;
        sources.push_back(random_floats(height * stride, 11 * i + first));
        written.emplace_back(height * stride, -1.0f);
        in.emplace_back(*device, sources[i]);
        out.emplace_back(*device, written[i]);
        for (int r = first; r < first + 8; ++r)
          for (int c = 8; c < 24; ++c) {
            bool is_inside = r < height && c < width;
            std::size_t at = static_cast<std::size_t>(r) * stride + c;
            expected.push_back(is_inside ? sources[i][at] : 0);
            if (is_inside)
              written[i][at] = sources[i][at];
          }
      }
      std::vector<std::uint64_t> pointers;
      for (const auto *list : {&in, &out})
        for (const Elsewhere &one : *list)
          pointers.push_back(one.address());
      std::vector<float> model(64 * 32), found(3 * 8 * 16, -2);
      std::vector<std::uint8_t> rooms(2 * 3 * 128);
      run(*device, kernel, model, pointers, rows, strides, rooms, found, first);
      EXPECT_EQ(found, expected) << changes_shape << " from " << first;
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(out[i].read(), written[i]) << i << " from " << first;
    }
  }
  SKIP_WITHOUT_DEVICE();
}
