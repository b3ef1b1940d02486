// gemm_matrices: fill, read, write and print the memory of a product.
#include "gemm_matrices.h"

#include "support/text/Npy.h"
#include "console/say.h"

#include <kiln/base/error.h>
#include <kiln/run/arguments.h>
#include <kiln/run/host_memory.h>

#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace kiln::cli {

static constexpr std::uint8_t kPoison = 0xff;
static constexpr std::int64_t kMostPrinted = 32;

namespace {

/// How a matrix is stored: lines of `length` elements, `step` apart, and
/// products, `product` apart.
struct Stored {
  Type type;
  std::int64_t lines, length, step;
  bool is_row_major;
  std::optional<std::int64_t> product;

  /// The first element of a line.
  std::int64_t at(std::int64_t of_product, std::int64_t line) const {
    return of_product * product.value_or(lines * step) + line * step;
  }
};

} // namespace

static Stored stored_a(const ReferenceGemm &gemm) {
  bool rows = gemm.a_row_major;
  return {gemm.type, rows ? gemm.m : gemm.k, rows ? gemm.k : gemm.m, gemm.lda,
          rows,      gemm.batch_stride_a};
}

static Stored stored_b(const ReferenceGemm &gemm) {
  bool rows = gemm.b_row_major;
  return {gemm.type, rows ? gemm.k : gemm.n, rows ? gemm.n : gemm.k, gemm.ldb,
          rows,      gemm.batch_stride_b};
}

static Stored stored_d(const ReferenceGemm &gemm) {
  bool rows = gemm.d_row_major;
  return {gemm.out, rows ? gemm.m : gemm.n, rows ? gemm.n : gemm.m, gemm.ldd,
          rows,     gemm.batch_stride_d};
}

static Stored stored_c(const ReferenceGemm &gemm) {
  Stored matrix = stored_d(gemm);
  matrix.step = gemm.ldc;
  matrix.product = gemm.batch_stride_c;
  return matrix;
}

void check_memory(const ReferenceGemm &gemm, bool has_c) {
  std::vector<std::pair<const char *, Stored>> matrices = {
      {"A", stored_a(gemm)}, {"B", stored_b(gemm)}, {"D", stored_d(gemm)}};
  if (has_c)
    matrices.push_back({"C", stored_c(gemm)});
  HostMemory together;
  for (const auto &[letter, matrix] : matrices) {
    std::int64_t step = matrix.step ? matrix.step : matrix.length;
    std::int64_t one = 0, elements = 0;
    if (__builtin_mul_overflow(step, matrix.lines, &one) ||
        __builtin_mul_overflow(matrix.product.value_or(one), gemm.batch - 1,
                               &elements) ||
        __builtin_add_overflow(elements, one, &elements))
      elements = std::numeric_limits<std::int64_t>::max() / 8;
    auto bytes = static_cast<std::uint64_t>(bytes_of(matrix.type, elements));
    together.take(bytes,
                  fmt::format("{}, {} x {} x {} of {}", letter, gemm.batch,
                              matrix.lines, step, name(matrix.type)));
  }
}

/// Random elements: floats from -1 to 1, of less than a byte from -4 to 4,
/// which are more of them; bytes over their whole range, so that their sign
/// shows.
static std::vector<std::byte> random_elements(const char *what, Type type,
                                              std::int64_t count,
                                              std::uint64_t seed) {
  auto size = static_cast<std::size_t>(count);
  std::vector<std::byte> data =
      host_bytes(what, static_cast<std::size_t>(bytes_of(type, count)));
  if (type == Type::i8 || type == Type::u8)
    fill_random(type, data.data(), size, seed, type == Type::i8 ? -128 : 0,
                type == Type::i8 ? 127 : 255);
  else if (is_subbyte(type))
    fill_random(type, data.data(), size, seed, -4, 4);
  else
    fill_random(type, data.data(), size, seed);
  return data;
}

/// Random factors around 1; powers of two from 1/8 to 8.
static std::vector<std::byte> random_factors(const ReferenceGemm &gemm,
                                             bool is_a, std::uint64_t seed) {
  std::int64_t count = is_a ? gemm.a_scale_count() : gemm.b_scale_count();
  Type type = block_of(gemm.scaling).type;
  std::vector<std::byte> data =
      host_bytes(is_a ? "the factors of A" : "the factors of B",
                 static_cast<std::size_t>(bytes_of(type, count)));
  fill_random(type, data.data(), static_cast<std::size_t>(count), seed, 0.125,
              2);
  return data;
}

GemmMatrices::GemmMatrices(const ReferenceGemm &gemm, bool has_c,
                           std::uint64_t seed)
    : a(random_elements("A", gemm.type, gemm.a_elements(), seed)),
      b(random_elements("B", gemm.type, gemm.b_elements(), seed + 1)),
      a_scales(random_factors(gemm, true, seed + 4)),
      b_scales(random_factors(gemm, false, seed + 5)),
      bias(random_elements("the bias", gemm.bias_type(), gemm.bias_elements(),
                           seed + 3)),
      d(host_bytes(
          "D",
          static_cast<std::size_t>(gemm.d_elements() * size_bytes(gemm.out)),
          std::byte{kPoison})) {
  if (has_c)
    c = random_elements("C", gemm.out, gemm.c_elements(), seed + 2);
}

ReferenceGemm GemmMatrices::of(ReferenceGemm gemm) const {
  gemm.a = a.data();
  gemm.b = b.data();
  gemm.a_scales = a_scales.data();
  gemm.b_scales = b_scales.data();
  gemm.c = c.data();
  gemm.bias = bias.data();
  gemm.poison = kPoison;
  return gemm;
}

GemmBuffers copy_in(Device &device, const GemmMatrices &host) {
  GemmBuffers buffers;
  for (auto [buffer, data] :
       {std::pair{&buffers.a, &host.a}, std::pair{&buffers.b, &host.b},
        std::pair{&buffers.a_scales, &host.a_scales},
        std::pair{&buffers.b_scales, &host.b_scales},
        std::pair{&buffers.c, &host.c}, std::pair{&buffers.bias, &host.bias},
        std::pair{&buffers.d, &host.d}}) {
    if (data->empty())
      continue;
    *buffer = device.allocate(data->size());
    device.copy_in(*buffer, data->data(), data->size());
  }
  return buffers;
}

std::vector<LaunchArgument> launch_arguments(const Kernel &kernel,
                                             const ReferenceGemm &gemm,
                                             const GemmBuffers &buffers) {
  const NamedArgument given[] = {{"a", buffers.a},
                                 {"b", buffers.b},
                                 {"a_scales", buffers.a_scales},
                                 {"b_scales", buffers.b_scales},
                                 {"c", buffers.c},
                                 {"bias", buffers.bias},
                                 {"d", buffers.d},
                                 {"alpha", Scalar(gemm.alpha)},
                                 {"beta", Scalar(gemm.beta)},
                                 {"m", Scalar(gemm.m)},
                                 {"n", Scalar(gemm.n)},
                                 {"k", Scalar(gemm.k)},
                                 {"batch", Scalar(gemm.batch)}};
  return arguments_by_name(kernel, given);
}

static std::vector<std::uint64_t> shape_of(const Stored &matrix,
                                           std::int64_t batch) {
  std::vector<std::uint64_t> shape = {
      static_cast<std::uint64_t>(matrix.lines),
      static_cast<std::uint64_t>(matrix.length)};
  if (batch != 1)
    shape.insert(shape.begin(), static_cast<std::uint64_t>(batch));
  return shape;
}

/// Copy line by line between memory with gaps and without.
static void copy_lines(const Stored &matrix, std::int64_t batch,
                       std::byte *with_gaps, std::byte *without,
                       bool is_reading) {
  auto bytes = static_cast<std::size_t>(size_bytes(matrix.type));
  std::size_t line = static_cast<std::size_t>(matrix.length) * bytes;
  for (std::int64_t i = 0; i < batch * matrix.lines; ++i) {
    std::int64_t at = matrix.at(i / matrix.lines, i % matrix.lines);
    std::byte *gapped = with_gaps + static_cast<std::size_t>(at) * bytes;
    std::byte *packed = without + static_cast<std::size_t>(i) * line;
    if (is_reading)
      std::memcpy(gapped, packed, line);
    else
      std::memcpy(packed, gapped, line);
  }
}

/// Round f32 to tf32, as it would be read.
static void round_to_tf32(std::vector<std::byte> &data) {
  for (std::size_t i = 0; i < data.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, &data[i], 4);
    auto bits = static_cast<std::uint32_t>(to_bits(Type::tf32, value));
    std::memcpy(&data[i], &bits, 4);
  }
}

static void read_matrix(const std::string &path, const Stored &matrix,
                        std::int64_t batch, std::vector<std::byte> &to,
                        const std::string &what) {
  if (is_subbyte(matrix.type))
    throw UserError(fmt::format("{} of {} is not read from a .npy file, which "
                                "holds whole bytes; leave it random",
                                what, name(matrix.type)));
  std::vector<std::byte> packed =
      readNpy(path, matrix.type, shape_of(matrix, batch), what);
  if (matrix.type == Type::tf32)
    round_to_tf32(packed);
  copy_lines(matrix, batch, to.data(), packed.data(), true);
}

void read_a(const std::string &path, const ReferenceGemm &gemm,
            std::vector<std::byte> &to) {
  read_matrix(path, stored_a(gemm), gemm.batch, to, "A");
}

void read_b(const std::string &path, const ReferenceGemm &gemm,
            std::vector<std::byte> &to) {
  read_matrix(path, stored_b(gemm), gemm.batch, to, "B");
}

void write_d(const std::string &path, const ReferenceGemm &gemm,
             const std::vector<std::byte> &d) {
  Stored matrix = stored_d(gemm);
  std::vector<std::byte> packed(static_cast<std::size_t>(
      gemm.batch * matrix.lines * matrix.length * size_bytes(matrix.type)));
  copy_lines(matrix, gemm.batch, const_cast<std::byte *>(d.data()),
             packed.data(), false);
  writeNpy(path, matrix.type, shape_of(matrix, gemm.batch), packed);
}

static void print_matrix(const char *what, const Stored &matrix,
                         std::int64_t batch,
                         const std::vector<std::byte> &data) {
  std::int64_t rows = matrix.is_row_major ? matrix.lines : matrix.length;
  std::int64_t cols = matrix.is_row_major ? matrix.length : matrix.lines;
  if (rows > kMostPrinted || cols > kMostPrinted) {
    say("{} is {} x {}: too large to print, {} x {} is the most\n", what, rows,
        cols, kMostPrinted, kMostPrinted);
    return;
  }
  for (std::int64_t p = 0; p < batch; ++p) {
    say("{}{} =\n", what, batch == 1 ? "" : fmt::format("[{}]", p));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) {
        std::int64_t at = matrix.at(p, matrix.is_row_major ? i : j) +
                          (matrix.is_row_major ? j : i);
        say(" {:9.4g}",
            from_bits(matrix.type, load_bits(matrix.type, data.data(), at)));
      }
      say("\n");
    }
  }
}

void print_matrices(const ReferenceGemm &gemm, const GemmMatrices &host) {
  print_matrix("A", stored_a(gemm), gemm.batch, host.a);
  print_matrix("B", stored_b(gemm), gemm.batch, host.b);
  print_matrix("D", stored_d(gemm), gemm.batch, host.d);
}

} // namespace kiln::cli
