// MutationSubjects: kernels of the corpus, and how they are launched so that
// every instruction that synchronises matters.
#pragma once

#include "broken/BrokenKernel.h"
#include "kiln/check/sim.h"
#include "kiln/measure/reference.h"
#include "sim/machine/memory/TensorMapImage.h"

#include <cstring>
#include <functional>

namespace kiln {

/// The parameters of a launch, in order, with what they point to.
struct Arguments {
  Device &device;
  std::vector<LaunchParameter> list = {};
  std::vector<Buffer> mapped = {}; ///< that only a tensor map refers to

  Buffer bytes(std::size_t count) {
    Buffer buffer = device.allocate(count);
    std::vector<std::uint8_t> zeros(count);
    device.copy_in(buffer, zeros.data(), count, Stream());
    return buffer;
  }
  Buffer numbers(Type type, std::size_t count) {
    std::vector<std::uint8_t> values(count * 8);
    fill_random(type, values.data(), count, 1);
    std::size_t size = count * static_cast<std::size_t>(size_bytes(type));
    Buffer buffer = device.allocate(size);
    device.copy_in(buffer, values.data(), size, Stream());
    return buffer;
  }
  Arguments &in(Type type, std::size_t count) {
    list.push_back({numbers(type, count)});
    return *this;
  }
  Arguments &zeros(std::size_t count) {
    list.push_back({bytes(count)});
    return *this;
  }
  /// Memory that nobody has written.
  Arguments &out(std::size_t count) {
    list.push_back({device.allocate(count)});
    return *this;
  }
  /// An address for a tensor map.
  std::uint64_t behindMap(Type type, std::size_t count) {
    return mapped.emplace_back(numbers(type, count)).address();
  }
  template <typename T> Arguments &value(T number) {
    std::vector<std::byte> raw(sizeof(T));
    std::memcpy(raw.data(), &number, sizeof(T));
    list.push_back({raw});
    return *this;
  }
};

/// Boxes of 64 x 64 of a matrix of halves.
inline TensorMap boxesOf(std::uint64_t address, std::uint64_t rows,
                         std::uint64_t columns) {
  return {.type = Type::f16,
          .address = address,
          .dims = {columns, rows},
          .strides_bytes = {columns * 2},
          .box = {64, 64},
          .element_strides = {1, 1},
          .swizzle = Swizzle::b128};
}

/// The map itself in global memory, as stock MLIR passes it.
inline Buffer imageOf(Arguments &arguments, const TensorMap &map) {
  auto image = sim::encode(map);
  Buffer buffer = arguments.device.allocate(image.size());
  arguments.device.copy_in(buffer, image.data(), image.size(), Stream());
  return buffer;
}

using Size = std::array<std::uint32_t, 3>;

struct Subject {
  std::string name; ///< of the entry, or of a file of kernels/
  std::string file; ///< of corpus/; empty: of kernels/
  Size grid, block;
  std::uint32_t smemBytes = 0;
  std::function<void(Arguments &)> fill = {};
  Size cluster = {1, 1, 1};

  std::string title() const { return file.empty() ? name : file + "_" + name; }
};

inline void PrintTo(const Subject &subject, std::ostream *stream) {
  *stream << subject.title();
}

inline std::vector<Subject> corpus() {
  return {
      {"block_sum",
       "reductions",
       {2, 1, 1},
       {256, 1, 1},
       0,
       [](Arguments &a) { a.in(Type::f32, 1000).out(8).value(1000); }},
      {"grid_sum",
       "reductions",
       {3, 1, 1},
       {128, 1, 1},
       0,
       [](Arguments &a) { a.in(Type::f32, 999).out(12).out(4).value(999); }},
      {"spin_lock",
       "locks",
       {2, 1, 1},
       {48, 1, 1},
       0,
       [](Arguments &a) { a.zeros(4).out(96 * 4); }},
      {"cluster_histogram",
       "cluster",
       {2, 1, 1},
       {96, 1, 1},
       0,
       [](Arguments &a) { a.zeros(400).zeros(512).value(100); }},
      {"multicast",
       "cluster",
       {2, 1, 1},
       {64, 1, 1},
       0,
       [](Arguments &a) {
         a.list.push_back({TensorMap{.type = Type::f32,
                                     .address = a.behindMap(Type::f32, 64 * 32),
                                     .dims = {32, 64},
                                     .strides_bytes = {128},
                                     .box = {32, 32},
                                     .element_strides = {1, 1}}});
         a.out(2 * 4096);
       }},
      {"histogram",
       "control",
       {2, 1, 1},
       {128, 1, 1},
       0,
       [](Arguments &a) { a.in(Type::u8, 1000).zeros(1024).value(1000); }},
      {"mma_gemm",
       "mma_gemm",
       {1, 2, 1},
       {128, 1, 1},
       0,
       [](Arguments &a) {
         a.in(Type::f16, 128 * 96).in(Type::f16, 64 * 96).out(128 * 64 * 4);
         a.value(64).value(96);
       }},
      {"hopper_gemm",
       "hopper_gemm",
       {1, 1, 1},
       {256, 1, 1},
       65536,
       [](Arguments &a) {
         constexpr int kK = 11 * 64;
         for (int i = 0; i < 2; ++i)
           a.list.push_back({boxesOf(a.behindMap(Type::f16, 64 * kK), 64, kK)});
         a.out(64 * 64 * 4).value(64).value(kK);
       }},
      {"nvgpu_gemm_kernel",
       "nvgpu_gemm",
       {1, 1, 1},
       {128, 1, 1},
       0,
       [](Arguments &a) {
         std::int64_t k = 192, tile = 64, zero = 0, one = 1;
         a.value(zero).value(tile).value(zero).value(one);
         a.list.push_back(
             {imageOf(a, boxesOf(a.behindMap(Type::f16, 64 * 192), 64, 192))});
         a.list.push_back(
             {imageOf(a, boxesOf(a.behindMap(Type::f16, 192 * 64), 192, 64))});
         Buffer to = a.device.allocate(64 * 64 * 4);
         a.value(k).value(tile);
         a.list.push_back({to});
         a.list.push_back({to});
         a.value(zero).value(tile).value(tile).value(tile).value(one);
       }},
      {"matmul",
       "triton_matmul",
       {1, 1, 1},
       {128, 1, 1},
       24576,
       [](Arguments &a) {
         a.in(Type::f16, 64 * 192).in(Type::f16, 192 * 64).out(64 * 64 * 2);
         a.value(64).value(64).value(192).out(8).out(8);
       }},
      {"softmax",
       "triton_softmax",
       {2, 1, 1},
       {128, 1, 1},
       16,
       [](Arguments &a) {
         a.out(2 * 200 * 4).in(Type::f32, 2 * 200).value(200).value(200);
         a.out(8).out(8);
       }},
  };
}

/// Those for sm_100a.
inline std::vector<Subject> blackwellCorpus() {
  auto product = [](const char *file, Type type, int m, int n, int k) {
    return Subject{
        "matmul", file, {2, 1, 1}, {128, 1, 1}, 32768, [=](Arguments &a) {
          a.in(type, m * k).in(type, k * n).out(m * n * 4);
          a.value(n).value(k).out(8).out(8);
        }};
  };
  auto scaled = [](const char *file, Type type, Type scale, int block) {
    return Subject{
        "scaled", file, {2, 1, 1}, {128, 1, 1}, 32768, [=](Arguments &a) {
          int k = 256, factors = 128 * k / block;
          a.in(type, 128 * k).in(type, 128 * k);
          a.in(scale, factors).in(scale, factors);
          a.out(128 * 128 * 4).value(128).value(k).out(8).out(8);
        }};
  };
  Subject pair = product("triton_sm100_pair", Type::f16, 256, 128, 192);
  pair.name = "pair";
  pair.grid = {4, 1, 1};
  pair.smemBytes = 20488;
  return {
      product("triton_sm100_f16", Type::f16, 128, 128, 192),
      product("triton_sm100_e4m3", Type::e4m3, 128, 128, 192),
      product("triton_sm100_tf32", Type::f32, 128, 128, 96),
      pair,
      scaled("triton_sm100_mxf8", Type::e4m3, Type::ue8m0, 32),
      scaled("triton_sm100_mxf4", Type::e2m1, Type::ue8m0, 32),
      scaled("triton_sm100_nvf4", Type::e2m1, Type::ue4m3, 16),
      {"product_kernel",
       "tilelang_sm100",
       {2, 2, 1},
       {256, 1, 1},
       65536,
       [](Arguments &a) {
         for (std::uint64_t columns : {192, 192, 256}) {
           TensorMap map =
               boxesOf(a.behindMap(Type::f16, 256 * columns), 256, columns);
           map.box[1] = 128;
           a.list.push_back({map});
         }
       }},
      {"attention",
       "triton_sm100_attention",
       {1, 1, 1},
       {128, 1, 1},
       16384,
       [](Arguments &a) {
         for (int i = 0; i < 3; ++i)
           a.in(Type::f16, 128 * 32);
         a.out(128 * 32 * 4).value(128).value(0.17f).out(8).out(8);
       }},
  };
}

/// All of them: of the corpus, and those with a defect of their own.
inline std::vector<Subject> allSubjects() {
  std::vector<Subject> subjects = corpus();
  for (Subject &subject : blackwellCorpus())
    subjects.push_back(std::move(subject));
  for (const BrokenKernel &kernel : allKernels())
    subjects.push_back({kernel.name, "", kernel.grid, kernel.block, 0,
                        [](Arguments &a) { a.zeros(8192).zeros(8192); },
                        kernel.cluster});
  return subjects;
}

inline std::vector<std::string> linesOf(const Subject &subject) {
  std::string path = std::string(KILN_SOURCE_DIR) + "/tests/";
  path += subject.file.empty() ? "broken/kernels/" + subject.name
                               : "corpus/" + subject.file;
  std::ifstream file(path + ".ptx");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

/// The first and the last line of the entry.
inline std::pair<std::size_t, std::size_t>
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

} // namespace kiln
