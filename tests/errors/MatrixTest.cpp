// Matrix: matrices and packed words that no instruction takes.
#include "Refused.h"

using namespace errors;

namespace {
struct MatrixErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Tensor x = kb.tensor("x", f16, {8, 8});
  SharedTile tile = kb.shared({.type = f16, .rows = 8, .columns = 8});
  SharedTile wide = kb.shared({.type = f32, .rows = 8, .columns = 8});
  Value word = constant(u32, 1);
  Value real = constant(f32, 1);
  Value half = constant(f16, 1);
};
} // namespace

TEST_F(MatrixErrors, Counts) {
  for (int count : {0, 3, 8})
    refused(
        __LINE__, [&] { ldmatrix(tile(0, 0), count); },
        fmt::format("ldmatrix moves 1, 2 or 4 matrices, not {}", count));
  refused(
      __LINE__, [&] { stmatrix(tile(0, 0), {word, word, word}); },
      "stmatrix moves 1, 2 or 4 matrices, not 3");
}

TEST_F(MatrixErrors, Rows) {
  refused(
      __LINE__, [&] { ldmatrix(x(0, 0), 1); },
      "ldmatrix was given an element of a tensor; its rows lie in shared "
      "memory");
  refused(
      __LINE__, [&] { stmatrix(wide(0, 0), {word}); },
      "stmatrix was given an element of f32; its matrices have elements of 16 "
      "bits, or pairs of 8");
}

TEST_F(MatrixErrors, Words) {
  std::string message = "expected a value of type u32, found f32; `cast` "
                        "converts";
  refused(__LINE__, [&] { stmatrix(tile(0, 0), {real}); }, message);
  refused(__LINE__, [&] { movmatrix(real); }, message);
  refused(__LINE__, [&] { unpack(real, f16); }, message);
}

TEST_F(MatrixErrors, ProductsWithoutAForm) {
  std::string accepted =
      "; there are m16n8 with k 8 and 16 of f16 and bf16, 4 and 8 of tf32, 16 "
      "and 32 of i8 and u8, 4, 8 and 16 of f64, and m8n8k16 of i8 and u8, "
      "m8n8k4 of f64";
  refused(
      __LINE__, [&] { mma({.k = 32}, {}, {}, {}); },
      "there is no mma m16n8k32, f32 += f16 * f16" + accepted);
  refused(
      __LINE__, [&] { mma({.a = f16, .b = bf16}, {}, {}, {}); },
      "there is no mma m16n8k16, f32 += f16 * bf16" + accepted);
  refused(
      __LINE__, [&] { mma({.a = i8, .b = u8}, {}, {}, {}); },
      "there is no mma m16n8k16, f32 += i8 * u8" + accepted);
}

TEST_F(MatrixErrors, RegistersOfAProduct) {
  Values two(2, word), four(4, word), sums(4, real);
  refused(
      __LINE__, [&] { mma({}, two, two, sums); },
      "mma m16n8k16, f32 += f16 * f16 takes 4 registers of u32 for A, not 2");
  refused(
      __LINE__, [&] { mma({}, four, four, sums); },
      "mma m16n8k16, f32 += f16 * f16 takes 2 registers of u32 for B, not 4");
  refused(
      __LINE__, [&] { mma({.accumulator = f16}, four, two, sums); },
      "mma m16n8k16, f16 += f16 * f16 takes 2 registers of u32 for C, not 4");
  refused(
      __LINE__, [&] { mma({}, sums, two, sums); },
      "expected a value of type u32, found f32; `cast` converts");
}

TEST_F(MatrixErrors, Packing) {
  refused(
      __LINE__, [&] { pack({}); },
      "pack was given 0 values; a word of 32 bits takes two of 16 or four of "
      "8");
  refused(
      __LINE__, [&] { pack({half}); },
      "pack was given 1 values of f16; a word of 32 bits takes two of 16 or "
      "four of 8");
  refused(
      __LINE__, [&] { pack({half, constant(bf16, 1)}); },
      "pack of a vector of f16 and bf16; a vector has one type");
  refused(
      __LINE__, [&] { unpack(word, f32); },
      "unpack to f32; a word of 32 bits holds values of 8 or 16");
}

TEST_F(MatrixErrors, VectorsOfDifferentLengths) {
  refused(
      __LINE__, [&] { Values{half, half} + Values{half}; },
      "+ of vectors of 2 and 1 values; both have the same");
  refused(
      __LINE__, [&] { Values{half, real} * 2; },
      "* of a vector of f16 and f32; a vector has one type");
  refused(
      __LINE__, [&] { Values{half} + real; },
      "the operands of '+' are f16 and f32; `cast` one of them");
}
