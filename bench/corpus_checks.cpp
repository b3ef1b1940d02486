// corpus_checks: what the checks cost on every kernel of the corpus.
//
//     build/bin/bench_corpus_checks [ENTRY...] > FILE.json
//
// Each kernel of tests/corpus is simulated by one thread of the host with the
// checks off and on in turns. What counts is the ratio of the medians. Times
// are those of the processor, so that others on the machine disturb little.
#include <kiln/measure/reference.h>
#include <kiln/check/sim.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

using namespace kiln;

using Size = std::array<std::uint32_t, 3>;

namespace {
/// A device with the checks on or off, and what a launch needs on it.
class Bench {
public:
  explicit Bench(bool has_checks) {
    SimOptions options;
    options.checks = has_checks;
    options.threads = 1;
    options.print = [](const std::string &) {};
    device_ = open_sim(options);
  }

  Buffer random(Type type, std::size_t count, double lo = 0.5,
                double hi = 1.5) {
    std::vector<std::uint8_t> bytes(count * size_bytes(type));
    fill_random(type, bytes.data(), count, 1, lo, hi);
    return buffer(bytes);
  }
  Buffer zeros(std::size_t bytes) {
    return buffer(std::vector<std::uint8_t>(bytes));
  }
  /// A row-major matrix of halves in boxes of 64 x 64, swizzled.
  TensorMap map(std::uint64_t rows, std::uint64_t columns) {
    return {.type = Type::f16,
            .address = random(Type::f16, rows * columns).address(),
            .dims = {columns, rows},
            .strides_bytes = {columns * 2},
            .box = {64, 64},
            .element_strides = {1, 1},
            .swizzle = Swizzle::b128};
  }
  /// A tensor map in memory, for kernels that take its address.
  Buffer image(const TensorMap &map) {
    std::array<std::byte, 128> bytes = sim_tensor_map(map);
    std::vector<std::uint8_t> copy(bytes.size());
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    return buffer(copy);
  }

  /// Seconds of the processor for one launch.
  double launch(const LaunchDescription &description) {
    auto now = [] {
      timespec time;
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) +
             static_cast<double>(time.tv_nsec) * 1e-9;
    };
    double start = now();
    LaunchResult result = device_->launch(description, Stream());
    double time = now() - start;
    if (!result.ok())
      throw RuntimeError(description.name + ": " + result.to_string());
    return time;
  }

private:
  Buffer buffer(const std::vector<std::uint8_t> &bytes) {
    buffers_.push_back(device_->allocate(bytes.size()));
    device_->copy_in(buffers_.back(), bytes.data(), bytes.size(), Stream());
    return buffers_.back();
  }

  std::shared_ptr<Device> device_;
  std::vector<Buffer> buffers_; ///< maps hold addresses alone
};

struct Case {
  const char *file, *entry;
  Size grid, block;
  std::uint32_t smem_bytes;
  std::vector<LaunchParameter> (*parameters)(Bench &);

  Case(const char *file, const char *entry, Size grid, Size block,
       std::uint32_t smem_bytes,
       std::vector<LaunchParameter> (*parameters)(Bench &))
      : file(file), entry(entry), grid(grid), block(block),
        smem_bytes(smem_bytes), parameters(parameters) {}
};
} // namespace

/// Parameters of a launch; a number has the type it is given with.
template <typename... P>
static std::vector<LaunchParameter> list(const P &...values) {
  std::vector<LaunchParameter> parameters;
  auto add = [&](const auto &value) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
      parameters.push_back({Scalar(value)});
    else
      parameters.push_back({value});
  };
  (add(values), ...);
  return parameters;
}

// A kernel without a loop has as many CTAs as give it some milliseconds.
static const Case kCases[] = {
    Case("arithmetic.ptx", "half_pairs", {256}, {128}, 0,
         [](Bench &b) {
           return list(b.random(f16, 65536), b.random(f16, 65536),
                       b.zeros(1 << 20), 32768);
         }),
    Case("arithmetic.ptx", "conversions", {256}, {128}, 0,
         [](Bench &b) { return list(b.random(f32, 32768), b.zeros(1 << 20)); }),
    Case("arithmetic.ptx", "doubles", {64}, {128}, 0,
         [](Bench &b) { return list(b.random(f64, 8192), b.zeros(1 << 19)); }),
    Case("arithmetic.ptx", "singles", {128}, {128}, 0,
         [](Bench &b) { return list(b.random(f32, 16384), b.zeros(1 << 19)); }),
    Case("arithmetic.ptx", "wide", {64}, {128}, 0,
         [](Bench &b) {
           return list(b.random(u64, 8192, 1, 1e18),
                       b.random(u64, 8192, 1, 1e9), b.zeros(1 << 19));
         }),
    Case("atomics.ptx", "grid_histogram", {4}, {1024}, 0,
         [](Bench &b) {
           return list(b.random(u8, 400000, 0, 255), b.zeros(1024),
                       b.zeros(1024), 400000);
         }),
    Case("atomics.ptx", "compact", {4}, {512}, 0,
         [](Bench &b) {
           return list(b.random(i32, 200000, 0, 99), b.zeros(1 << 25),
                       b.zeros(4), 200000, 50);
         }),
    Case("atomics.ptx", "float_max", {4}, {512}, 0,
         [](Bench &b) {
           return list(b.random(f32, 400000), b.zeros(16), 400000);
         }),
    Case("atomics.ptx", "digit_rounds", {2}, {1024}, 0,
         [](Bench &b) {
           return list(b.random(u32, 2048, 0, 4e9), b.zeros(8192), 32);
         }),
    Case("cluster.ptx", "cluster_histogram", {4}, {512}, 0,
         [](Bench &b) {
           return list(b.random(i32, 400000, 0, 127), b.zeros(512), 400000);
         }),
    Case("cluster.ptx", "multicast", {128}, {64}, 0,
         [](Bench &b) {
           TensorMap map{.type = f32,
                         .address = b.random(f32, 64 * 1024).address(),
                         .dims = {32, 2048},
                         .strides_bytes = {128},
                         .box = {32, 32},
                         .element_strides = {1, 1}};
           return list(map, b.zeros(128 * 4096));
         }),
    Case("control.ptx", "histogram", {1}, {1024}, 0,
         [](Bench &b) {
           return list(b.random(u8, 3200000, 0, 255), b.zeros(1024), 3200000);
         }),
    Case("control.ptx", "switched", {64}, {128}, 0,
         [](Bench &b) {
           return list(b.random(i32, 8192, 0, 1000), b.zeros(32768));
         }),
    Case("control.ptx", "local_sort", {64}, {32}, 0,
         [](Bench &b) {
           return list(b.random(i32, 24576, 0, 1000), b.zeros(98304));
         }),
    Case("functions.ptx", "by_name", {128}, {128}, 0,
         [](Bench &b) {
           return list(b.random(i32, 16384, 0, 1000), b.zeros(65536));
         }),
    Case("functions.ptx", "by_pointer", {64}, {128}, 0,
         [](Bench &b) {
           return list(b.random(i32, 8192, 0, 100), b.random(i32, 8192, 0, 100),
                       b.random(i32, 8192, 0, 3), b.zeros(32768));
         }),
    Case("functions.ptx", "recursion", {1}, {128}, 0,
         [](Bench &b) {
           return list(b.random(i32, 128, 0, 12), b.zeros(1024));
         }),
    Case("hopper_gemm.ptx", "hopper_gemm", {4, 4, 1}, {256}, 65536,
         [](Bench &b) {
           return list(b.map(256, 1024), b.map(256, 1024), b.zeros(1 << 18),
                       256, 1024);
         }),
    Case("locks.ptx", "spin_lock", {4}, {128}, 0,
         [](Bench &b) { return list(b.zeros(4), b.zeros(1 << 18)); }),
    Case("messages.ptx", "check", {512}, {32}, 0,
         [](Bench &b) { return list(b.random(i32, 32, 0, 9)); }),
    Case("messages.ptx", "greet", {16}, {32}, 0,
         [](Bench &) { return list(32); }),
    Case("mma_gemm.ptx", "mma_gemm", {4, 4, 1}, {128}, 0,
         [](Bench &b) {
           return list(b.random(f16, 131072), b.random(f16, 131072),
                       b.zeros(1 << 18), 256, 512);
         }),
    Case("nvgpu_gemm.ptx", "nvgpu_gemm_kernel", {1, 4, 1}, {128}, 0,
         [](Bench &b) {
           std::int64_t m = 256, n = 64, k = 1024, zero = 0, one = 1, tile = 64;
           Buffer to = b.zeros(1 << 16);
           return list(zero, tile, zero, one, b.image(b.map(256, 1024)),
                       b.image(b.map(1024, 64)), k, tile, to, to, zero, m, n, n,
                       one);
         }),
    Case("reductions.ptx", "block_sum", {8}, {256}, 0,
         [](Bench &b) {
           return list(b.random(f32, 400000), b.zeros(32), 400000);
         }),
    Case("reductions.ptx", "warp_reduce", {64}, {128}, 0,
         [](Bench &b) {
           return list(b.random(i32, 8192, 0, 20), b.zeros(6144));
         }),
    Case("reductions.ptx", "grid_sum", {8}, {128}, 0,
         [](Bench &b) {
           return list(b.random(f32, 400000), b.zeros(32), b.zeros(4), 400000);
         }),
    Case("triton_matmul.ptx", "matmul", {4, 4, 1}, {128}, 24576,
         [](Bench &b) {
           Buffer none = b.zeros(8);
           return list(b.random(f16, 131072), b.random(f16, 131072),
                       b.zeros(1 << 17), 256, 256, 512, none, none);
         }),
    Case("triton_softmax.ptx", "softmax", {256}, {128}, 16,
         [](Bench &b) {
           Buffer none = b.zeros(8);
           return list(b.zeros(1 << 18), b.random(f32, 65536), 256, 256, none,
                       none);
         }),
};

static std::string read_ptx(const std::string &file) {
  std::ifstream stream(KILN_SOURCE_DIR "/tests/corpus/" + file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

static double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// Milliseconds of launches in turns, the checks off and on.
static std::pair<double, double> measure(const Case &one) {
  constexpr int kRounds = 5;
  std::string ptx = read_ptx(one.file);
  auto positive = [](Size size) {
    for (std::uint32_t &extent : size)
      extent = std::max(extent, 1u);
    return size;
  };
  std::vector<double> times[2];
  for (int round = 0; round < kRounds; ++round)
    for (bool has_checks : {false, true}) {
      Bench bench(has_checks);
      LaunchDescription launch{.name = one.entry,
                               .ptx = ptx,
                               .grid = positive(one.grid),
                               .block = positive(one.block),
                               .dynamic_smem_bytes = one.smem_bytes,
                               .parameters = one.parameters(bench)};
      times[has_checks].push_back(1e3 * bench.launch(launch));
    }
  return {median(times[0]), median(times[1])};
}

int main(int argc, char **argv) try {
  auto is_wanted = [&](const char *entry) {
    return argc < 2 ||
           std::any_of(
               argv + 1, argv + argc,
               [&](char *name) { return !std::strcmp(name, entry); });
  };
  std::printf("{\n \"kernels\": [");
  const char *comma = "";
  for (const Case &one : kCases) {
    if (!is_wanted(one.entry))
      continue;
    auto [off, on] = measure(one);
    std::printf("%s\n  {\"file\": \"%s\", \"entry\": \"%s\", "
                "\"checks_off_ms\": %.2f, \"checks_on_ms\": %.2f, "
                "\"ratio\": %.2f}",
                comma, one.file, one.entry, off, on, on / off);
    std::fflush(stdout);
    comma = ",";
  }
  std::printf("\n ]\n}\n");
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
